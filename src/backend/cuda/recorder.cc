// Launch lists become graphs by stream capture, a segment of a round each. A graph is found by a hash of its launches
// and then compared byte by byte; the least recently used one goes when too many are kept. A segment's host data goes
// up in one copy before its launches.
#include "backend/cuda/recorder.h"

#include <xxhash.h>

#include <algorithm>

namespace steadfast::cuda {
namespace {

constexpr std::size_t kAlign = 256;

Status device_memory(void** to, std::size_t bytes, const char* what) {
  const auto status = cuda_status(cudaMalloc(to, bytes), what);
  return status ? cuda_status(cudaMemset(*to, 0, bytes), what) : status;
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::create(int device, const RecorderOptions& options) {
  std::unique_ptr<Recorder> recorder(new Recorder);
  recorder->options_ = options;
  recorder->options_.arena_bytes = std::max<std::size_t>(options.arena_bytes, kAlign);
  recorder->options_.scratch_bytes = std::max<std::size_t>(options.scratch_bytes, kAlign);
  cudaDeviceProp properties{};
  if (auto s = cuda_status(cudaSetDevice(device), "cudaSetDevice"); !s) return s;
  if (auto s = cuda_status(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"); !s) return s;
  recorder->card_ = {properties.major, properties.minor, properties.multiProcessorCount,
                     properties.sharedMemPerBlockOptin, static_cast<std::size_t>(properties.l2CacheSize)};
  if (auto status = recorder->allocate(); !status) return status;
  return recorder;
}

Status Recorder::allocate() {
  if (auto s = cuda_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); !s)
    return s;
  void* memory = nullptr;
  if (auto s = device_memory(&memory, options_.arena_bytes, "cudaMalloc of a round's host data"); !s) return s;
  arena_ = static_cast<std::byte*>(memory);
  if (auto s = cuda_status(cudaMallocHost(&memory, 2 * options_.arena_bytes), "cudaMallocHost of a round's host data");
      !s)
    return s;
  host_arena_ = static_cast<std::byte*>(memory);
  if (auto s = device_memory(&scratch_, options_.scratch_bytes, "cudaMalloc of scratch"); !s) return s;
  if (auto s = device_memory(&memory, kCounterBytes, "cudaMalloc of counters"); !s) return s;
  counters_ = static_cast<std::uint32_t*>(memory);
  for (auto& event : half_free_)
    if (auto s = cuda_status(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate"); !s) return s;
  for (auto& event : timer_)
    if (auto s = cuda_status(cudaEventCreate(&event), "cudaEventCreate"); !s) return s;
  return cuda_status(cudaDeviceSynchronize(), "first use of the card");
}

Recorder::~Recorder() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  for (auto& [hash, graph] : graphs_)
    if (graph.exec != nullptr) cudaGraphExecDestroy(graph.exec);
  for (cudaEvent_t event : {half_free_[0], half_free_[1], timer_[0], timer_[1]})
    if (event != nullptr) cudaEventDestroy(event);
  cudaFree(counters_);
  cudaFree(scratch_);
  cudaFreeHost(host_arena_);
  cudaFree(arena_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

Status Recorder::grow_scratch(std::size_t bytes) {
  if (bytes <= options_.scratch_bytes) return Status::ok();
  if (auto status = wait(); !status) return status;
  for (auto& [hash, graph] : graphs_)
    if (graph.exec != nullptr) cudaGraphExecDestroy(graph.exec);
  graphs_.clear();
  cudaFree(scratch_);
  scratch_ = nullptr;
  options_.scratch_bytes = 0;
  if (auto status = device_memory(&scratch_, bytes, "cudaMalloc of scratch"); !status) return status;
  options_.scratch_bytes = bytes;
  return Status::ok();
}

const void* Recorder::put_bytes(const void* data, std::size_t bytes) {
  if (arena_used_ + bytes > options_.arena_bytes) {
    status_ = Status::error("a round's host data takes more than {} MiB; use fewer streams (--parallel)",
                            options_.arena_bytes >> 20);
    return arena_;
  }
  // The half that this round fills may still be read by the copy of the round before the last.
  if (arena_used_ == 0) cudaEventSynchronize(half_free_[half_]);
  if (bytes > 0)
    std::memcpy(host_arena_ + static_cast<std::size_t>(half_) * options_.arena_bytes + arena_used_, data, bytes);
  const void* at = arena_ + arena_used_;
  arena_used_ = std::min((arena_used_ + bytes + 15) / 16 * 16, options_.arena_bytes);
  return at;
}

void Recorder::begin(const char* name, const void* kernel, const LaunchShape& shape) {
  current_ = {};
  current_.name = name;
  current_.kernel = kernel;
  const unsigned grid[] = {shape.grid.x, shape.grid.y, shape.grid.z},
                 block[] = {shape.block.x, shape.block.y, shape.block.z};
  std::copy_n(grid, 3, current_.grid);
  std::copy_n(block, 3, current_.block);
  current_.shared = shape.shared;
  current_.cluster = static_cast<std::uint32_t>(shape.cluster);
  current_.early = shape.early ? 1 : 0;
  parameter_bytes_ = 0;
}

void Recorder::end() {
  const std::size_t padded = (parameter_bytes_ + 7) / 8 * 8, at = appended_.size();
  std::memset(parameters_ + parameter_bytes_, 0, padded - parameter_bytes_);
  current_.bytes = static_cast<std::uint32_t>(padded);
  appended_.resize(at + sizeof(Launch) + padded);
  std::memcpy(appended_.data() + at, &current_, sizeof(Launch));
  std::memcpy(appended_.data() + at + sizeof(Launch), parameters_, padded);
  ++launched_;
  if (++count_ >= (begun_ ? options_.segment : options_.first_segment)) flush();
}

Status Recorder::send(const std::byte* at) {
  const Launch& launch = *launch_at(at);
  if (launch.shared > 0 && prepared_.insert(launch.kernel).second) {
    // Once a kernel: room for whatever it may ask for later, beside its static shared memory.
    cudaFuncAttributes own{};
    if (auto s = cuda_status(cudaFuncGetAttributes(&own, launch.kernel), launch.name); !s) return s;
    const auto most = static_cast<int>(card_.shared_per_block - own.sharedSizeBytes);
    if (auto s = cuda_status(cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
                             launch.name);
        !s)
      return s;
  }
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
  config.blockDim = dim3(launch.block[0], launch.block[1], launch.block[2]);
  config.dynamicSmemBytes = launch.shared;
  config.stream = stream_;
  config.attrs = attributes;
  if (launch.cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs++].val.clusterDim = {launch.cluster, 1, 1};
  }
  if (launch.early != 0 && card_.major >= 9) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  void* parameters[kMostParameters];
  for (std::uint32_t i = 0; i < launch.parameters; ++i)
    parameters[i] = const_cast<std::byte*>(at) + sizeof(Launch) + launch.offsets[i];
  const cudaError_t error = cudaLaunchKernelExC(&config, launch.kernel, parameters);
  if (error == cudaSuccess) return Status::ok();
  return Status::error("{}, grid {} x {} x {} of {} threads, {} bytes shared: {} ({})", launch.name, launch.grid[0],
                       launch.grid[1], launch.grid[2], launch.block[0] * launch.block[1] * launch.block[2],
                       launch.shared, cudaGetErrorString(error), cudaGetErrorName(error));
}

Status Recorder::send_timed(const std::byte* at) {
  cudaEventRecord(timer_[0], stream_);
  if (auto status = send(at); !status) return status;
  cudaEventRecord(timer_[1], stream_);
  const char* name = launch_at(at)->name;
  if (auto status = cuda_status(cudaEventSynchronize(timer_[1]), name); !status) return status;
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, timer_[0], timer_[1]);
  Time& time = times_[name];
  time.milliseconds += static_cast<double>(milliseconds);
  ++time.launches;
  return Status::ok();
}

Status Recorder::send_all() {
  const std::byte* at = appended_.data();
  for (int i = 0; i < count_; ++i) {
    if (auto status = options_.timed ? send_timed(at) : send(at); !status) return status;
    at += sizeof(Launch) + launch_at(at)->bytes;
  }
  return Status::ok();
}

void Recorder::shed_graphs() {
  while (graphs_.size() >= static_cast<std::size_t>(std::max(options_.kept_graphs, 1))) {
    const auto oldest = std::min_element(graphs_.begin(), graphs_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    if (oldest->second.exec != nullptr) cudaGraphExecDestroy(oldest->second.exec);
    graphs_.erase(oldest);
  }
}

// The first segment of a kind runs as launches, the second is captured, later ones are replayed.
Status Recorder::replay() {
  const std::uint64_t hash = XXH3_64bits(appended_.data(), appended_.size());
  auto found = graphs_.find(hash);
  if (found == graphs_.end()) {
    shed_graphs();
    graphs_.emplace(hash, Graph{appended_, nullptr, ++clock_});
    return send_all();
  }
  Graph& graph = found->second;
  if (graph.key != appended_) return send_all();  // another list with the same hash
  graph.used = ++clock_;
  if (graph.exec == nullptr) {
    if (auto s = cuda_status(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture of a round");
        !s)
      return s;
    const Status sent = send_all();
    cudaGraph_t captured = nullptr;
    const Status ended = cuda_status(cudaStreamEndCapture(stream_, &captured), "end of a round's capture");
    if (!sent || !ended) return sent ? ended : sent;
    const Status made = cuda_status(cudaGraphInstantiate(&graph.exec, captured, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(captured);
    if (!made) return made;
  }
  ++replays_;
  return cuda_status(cudaGraphLaunch(graph.exec, stream_), "replay of a round's graph");
}

// Sends the launches appended so far and the host data that they read.
void Recorder::flush() {
  if (status_ && arena_used_ > arena_sent_) {
    const std::byte* from = host_arena_ + static_cast<std::size_t>(half_) * options_.arena_bytes + arena_sent_;
    status_ = cuda_status(
        cudaMemcpyAsync(arena_ + arena_sent_, from, arena_used_ - arena_sent_, cudaMemcpyHostToDevice, stream_),
        "upload of a round's host data");
    arena_sent_ = arena_used_;
  }
  if (status_ && count_ > 0) status_ = options_.graphs && !options_.timed ? replay() : send_all();
  appended_.clear();
  count_ = 0;
  begun_ = true;
}

Status Recorder::run() {
  flush();
  begun_ = false;
  if (arena_used_ > 0) {
    const Status marked = cuda_status(cudaEventRecord(half_free_[half_], stream_), "cudaEventRecord");
    if (status_) status_ = marked;
    half_ ^= 1;
  }
  arena_used_ = arena_sent_ = 0;
  return std::exchange(status_, Status::ok());
}

void Recorder::drop() {
  appended_.clear();
  begun_ = false;
  count_ = 0;
  arena_used_ = arena_sent_ = 0;
  status_ = Status::ok();
}

Status Recorder::wait() { return cuda_status(cudaStreamSynchronize(stream_), "waiting for the card"); }

}  // namespace steadfast::cuda
