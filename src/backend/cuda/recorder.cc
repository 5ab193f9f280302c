// Launch lists become graphs by stream capture. A graph is found by a hash of its launches and then compared byte by
// byte; the least recently used one goes when too many are kept. Host data goes up in one copy before the launches.
#include "backend/cuda/recorder.h"

#include <xxhash.h>

#include <algorithm>

namespace steadfast::cuda {
namespace {

constexpr std::size_t kAlign = 256;

template <typename T>
void add_bytes(std::vector<std::byte>& to, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof(T));
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::create(int device, const RecorderOptions& options) {
  std::unique_ptr<Recorder> recorder(new Recorder);
  recorder->options_ = options;
  cudaDeviceProp properties{};
  if (auto s = cuda_status(cudaSetDevice(device), "cudaSetDevice"); !s) return s;
  if (auto s = cuda_status(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"); !s) return s;
  recorder->card_ = {properties.major, properties.minor, properties.multiProcessorCount,
                     properties.sharedMemPerBlockOptin, static_cast<std::size_t>(properties.l2CacheSize)};
  if (auto s = cuda_status(cudaStreamCreateWithFlags(&recorder->stream_, cudaStreamNonBlocking), "cudaStreamCreate"); !s)
    return s;
  const std::size_t arena = std::max<std::size_t>(options.arena_bytes, kAlign);
  const auto device_memory = [](void** to, std::size_t bytes, const char* what) {
    const auto status = cuda_status(cudaMalloc(to, bytes), what);
    return status ? cuda_status(cudaMemset(*to, 0, bytes), what) : status;
  };
  void* memory = nullptr;
  if (auto s = device_memory(&memory, arena, "cudaMalloc of a round's host data"); !s) return s;
  recorder->arena_ = static_cast<std::byte*>(memory);
  if (auto s = cuda_status(cudaMallocHost(&memory, 2 * arena), "cudaMallocHost of a round's host data"); !s) return s;
  recorder->host_arena_ = static_cast<std::byte*>(memory);
  if (auto s = device_memory(&recorder->scratch_, std::max<std::size_t>(options.scratch_bytes, kAlign),
                             "cudaMalloc of scratch");
      !s)
    return s;
  if (auto s = device_memory(&memory, kCounterBytes, "cudaMalloc of counters"); !s) return s;
  recorder->counters_ = static_cast<std::uint32_t*>(memory);
  for (auto& event : recorder->half_free_)
    if (auto s = cuda_status(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate"); !s) return s;
  recorder->options_.arena_bytes = arena;
  return recorder;
}

Recorder::~Recorder() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  for (auto& [hash, graph] : graphs_) cudaGraphExecDestroy(graph.exec);
  for (auto& event : half_free_)
    if (event != nullptr) cudaEventDestroy(event);
  cudaFree(counters_);
  cudaFree(scratch_);
  cudaFreeHost(host_arena_);
  cudaFree(arena_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

const void* Recorder::put_bytes(const void* data, std::size_t bytes) {
  CHECK(arena_used_ + bytes <= options_.arena_bytes, "a round's host data: {} bytes more than {} of {}", bytes,
        arena_used_, options_.arena_bytes);
  // The half that this round fills may still be read by the copy of the round before the last.
  if (arena_used_ == 0) cudaEventSynchronize(half_free_[half_]);
  if (bytes > 0)
    std::memcpy(host_arena_ + static_cast<std::size_t>(half_) * options_.arena_bytes + arena_used_, data, bytes);
  const void* at = arena_ + arena_used_;
  arena_used_ = (arena_used_ + bytes + 15) / 16 * 16;
  return at;
}

Recorder::Launch& Recorder::begin(const char* name, const void* kernel, const LaunchShape& shape) {
  if (used_ == launches_.size()) launches_.emplace_back();
  Launch& launch = launches_[used_++];
  launch.name = name;
  launch.kernel = kernel;
  launch.shape = shape;
  launch.bytes.clear();
  launch.parameters = 0;
  return launch;
}

std::vector<std::byte> Recorder::key() const {
  std::vector<std::byte> key;
  for (std::size_t i = 0; i < used_; ++i) {
    const Launch& launch = launches_[i];
    add_bytes(key, launch.kernel);
    const dim3 &grid = launch.shape.grid, &block = launch.shape.block;
    for (const unsigned value : {grid.x, grid.y, grid.z, block.x, block.y, block.z}) add_bytes(key, value);
    add_bytes(key, launch.shape.shared);
    add_bytes(key, launch.shape.cluster * 2 + (launch.shape.early ? 1 : 0));
    add_bytes(key, launch.bytes.size());
    key.insert(key.end(), launch.bytes.begin(), launch.bytes.end());
  }
  return key;
}

Status Recorder::send(const Launch& launch) {
  if (launch.shape.shared > 48 * 1024 && prepared_.insert(launch.kernel).second) {
    // Once a kernel: room for whatever it may ask for later.
    const auto most = static_cast<int>(card_.shared_per_block);
    if (auto s = cuda_status(cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
                             launch.name);
        !s)
      return s;
  }
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config{};
  config.gridDim = launch.shape.grid;
  config.blockDim = launch.shape.block;
  config.dynamicSmemBytes = launch.shape.shared;
  config.stream = stream_;
  config.attrs = attributes;
  if (launch.shape.cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs++].val.clusterDim = {static_cast<unsigned>(launch.shape.cluster), 1, 1};
  }
  if (launch.shape.early && card_.major >= 9) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  void* parameters[kMostParameters];
  for (int i = 0; i < launch.parameters; ++i)
    parameters[i] = const_cast<std::byte*>(launch.bytes.data()) + launch.offsets[static_cast<std::size_t>(i)];
  return cuda_status(cudaLaunchKernelExC(&config, launch.kernel, parameters), launch.name);
}

Status Recorder::send_all() {
  for (std::size_t i = 0; i < used_; ++i)
    if (auto status = send(launches_[i]); !status) return status;
  return Status::ok();
}

void Recorder::shed_graphs() {
  while (graphs_.size() >= static_cast<std::size_t>(std::max(options_.kept_graphs, 1))) {
    const auto oldest = std::min_element(graphs_.begin(), graphs_.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    });
    cudaGraphExecDestroy(oldest->second.exec);
    graphs_.erase(oldest);
  }
}

// The first round of a kind runs as launches, the second is captured, later ones are replayed.
Status Recorder::replay() {
  std::vector<std::byte> wanted = key();
  const std::uint64_t hash = XXH3_64bits(wanted.data(), wanted.size());
  auto found = graphs_.find(hash);
  if (found == graphs_.end()) {
    shed_graphs();
    graphs_.emplace(hash, Graph{std::move(wanted), nullptr, ++clock_});
    return send_all();
  }
  Graph& graph = found->second;
  if (graph.key != wanted) return send_all();  // another list with the same hash
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

Status Recorder::run() {
  Status status = Status::ok();
  if (arena_used_ > 0) {
    status = cuda_status(cudaMemcpyAsync(arena_, host_arena_ + static_cast<std::size_t>(half_) * options_.arena_bytes,
                                         arena_used_, cudaMemcpyHostToDevice, stream_),
                         "upload of a round's host data");
    if (status) status = cuda_status(cudaEventRecord(half_free_[half_], stream_), "cudaEventRecord");
    half_ ^= 1;
  }
  if (status && used_ > 0) status = options_.graphs ? replay() : send_all();
  arena_used_ = used_ = 0;
  return status;
}

Status Recorder::wait() { return cuda_status(cudaStreamSynchronize(stream_), "waiting for the card"); }

}  // namespace steadfast::cuda
