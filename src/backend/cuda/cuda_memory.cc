// Making the CUDA backend, its memory and its errors. Memory is zeroed; nothing is allocated while rounds run but a new
// stream's window.
#include <algorithm>

#include "backend/cuda/attention.h"
#include "backend/cuda/cuda_backend_impl.h"
#include "backend/cuda/delta.h"
#include "backend/cuda/kv_pieces.h"
#include "backend/cuda/linear_int8.h"
#include "base/cores.h"

namespace steadfast {

int cuda_devices() {
  int count = 0;
  const bool found = cudaGetDeviceCount(&count) == cudaSuccess;
  if (!found) cudaGetLastError();
  return found ? count : 0;
}

Result<std::unique_ptr<Backend>> make_cuda_backend(const CudaOptions& options) {
  return cuda::CudaBackend::create(options);
}

namespace cuda {
namespace {

constexpr std::size_t kStaging = std::size_t{4} << 20;
constexpr std::size_t kReserve = std::size_t{512} << 20;  // left for the driver, graphs and other programs
constexpr std::size_t kArena = std::size_t{32} << 20;     // host data of a round

class CardMemory : public DeviceMemory {
 public:
  CardMemory(int device, void* data, std::size_t bytes) : device_(device), data_(data), bytes_(bytes) {}
  ~CardMemory() override {
    cudaSetDevice(device_);
    cudaFree(data_);
  }
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;
  void* data() override { return data_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  int device_;
  void* data_;
  std::size_t bytes_;
};

// Scratch that the largest op of a round needs.
std::size_t scratch_bytes(const CardTraits& card, const RoundLimits& l) {
  std::size_t most = std::max(linear_scratch_bytes(card, l.rows, l.widest), int8_scratch_bytes(l.rows, l.widest));
  most = std::max(most, attention_scratch_bytes(card, l.shapes.attention, l.rows, l.rows, l.positions));
  if (l.shapes.recurrent) most = std::max(most, delta_scratch_bytes(l.shapes.delta, l.rows, l.rows));
  return std::max(most, draw_scratch_bytes(l.logit_rows, l.vocab));
}

// bf16 queries of a round.
std::size_t query_bytes(const RoundLimits& l) {
  const auto width = static_cast<std::size_t>(l.shapes.attention.heads * l.shapes.attention.dim);
  return static_cast<std::size_t>(l.rows) * width * 2;
}

}  // namespace

Result<std::unique_ptr<Backend>> CudaBackend::create(const CudaOptions& options) {
  const int count = cuda_devices();
  if (count == 0)
    return Status::error("--device cuda: no NVIDIA card is there, or its driver is missing; use --device cpu");
  if (options.device < 0 || options.device >= count)
    return Status::error("--device cuda:{}: this machine has {} card{}, numbered from 0", options.device, count,
                         count == 1 ? "" : "s");
  std::unique_ptr<CudaBackend> backend(new CudaBackend);
  backend->options_ = options;
  cudaDeviceProp properties{};
  if (auto s = cuda_status(cudaGetDeviceProperties(&properties, options.device), "cudaGetDeviceProperties"); !s)
    return s;
  backend->name_ = properties.name;
  if (properties.major < 8)
    return Status::error("--device cuda:{}: {} has compute capability {}.{}; the kernels need 8.0; use --device cpu",
                         options.device, properties.name, properties.major, properties.minor);
  RecorderOptions recording;
  recording.arena_bytes = kArena;
  recording.graphs = options.graphs;
  recording.timed = options.timed;
  auto recorder = Recorder::create(options.device, recording);
  if (!recorder) return recorder.status();
  backend->recorder_ = std::move(*recorder);
  auto loader = WeightLoader::create(options.threads > 0 ? options.threads : usable_cores());
  if (!loader) return loader.status();
  backend->loader_ = std::move(*loader);
  void* staging = nullptr;
  if (auto s = cuda_status(cudaMallocHost(&staging, kStaging), "cudaMallocHost of staging"); !s) return s;
  backend->staging_ = static_cast<std::byte*>(staging);
  return std::unique_ptr<Backend>(std::move(backend));
}

CudaBackend::~CudaBackend() {
  cudaSetDevice(options_.device);
  cudaFreeHost(staging_);
}

std::string CudaBackend::describe() const {
  const CardTraits& card = recorder_->card();
  const char* prompts = options_.prompt_act == Act::kInt8 ? ", prompts int8" : "";
  return fmt::format("cuda:{} {}, sm_{}{}, bf16{}", options_.device, name_, card.major, card.minor, prompts);
}

std::string CudaBackend::target() const {
  return fmt::format("cuda sm_{}{}", recorder_->card().major, recorder_->card().minor);
}

std::size_t CudaBackend::memory_bytes() const {
  std::size_t free = 0, total = 0;
  if (!ready() || cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  return total > kReserve ? total - kReserve : 0;
}

std::size_t CudaBackend::memory_used() const {
  std::size_t free = 0, total = 0;
  if (!ready() || cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  return total - free;
}

std::size_t CudaBackend::round_bytes(const RoundLimits& limits) const {
  return scratch_bytes(recorder_->card(), limits) + query_bytes(limits) + LinearChains::bytes(limits.widest) + kArena;
}

Status CudaBackend::ready() const {
  if (!failed_) return failed_;
  return cuda_status(cudaSetDevice(options_.device), "cudaSetDevice");
}

Status CudaBackend::note(Status status) {
  if (status) return status;
  recorder_->drop();
  chains_.drop();
  stored_queries_ = nullptr;
  cudaGetLastError();
  const cudaError_t after = cudaDeviceSynchronize();
  if (after != cudaSuccess && failed_)
    failed_ = Status::error("the card {} failed in an earlier round and takes no more; start this program again ({})",
                            name_, status.message());
  return status;
}

Result<std::unique_ptr<Weight>> CudaBackend::pack(const AffineReader& reader, std::span<const int> row_map) {
  if (auto status = ready(); !status) return status;
  return loader_->pack(reader, row_map);
}

Result<std::unique_ptr<Weight>> CudaBackend::pack(const DenseReader& reader, std::span<const int> row_map) {
  if (auto status = ready(); !status) return status;
  return loader_->pack(reader, row_map);
}

Result<std::unique_ptr<DeviceMemory>> CudaBackend::allocate(std::size_t bytes) {
  if (auto status = ready(); !status) return status;
  std::size_t free = 0, total = 0;
  if (auto s = cuda_status(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"); !s) return s;
  const std::size_t usable = free > kReserve ? free - kReserve : 0;
  void* data = nullptr;
  if (bytes > usable || (bytes > 0 && cudaMalloc(&data, bytes) != cudaSuccess)) {
    cudaGetLastError();
    return Status::error(
        "{} MiB more do not fit the card: {} MiB of {} are free, {} of them reserved; use a smaller "
        "--context, fewer streams (--parallel) or --kv-dtype fp8",
        bytes >> 20, free >> 20, total >> 20, kReserve >> 20);
  }
  auto memory = std::make_unique<CardMemory>(options_.device, data, bytes);
  if (bytes > 0)
    if (auto s = cuda_status(cudaMemsetAsync(data, 0, bytes, recorder_->stream()), "cudaMemset"); !s) return s;
  return std::unique_ptr<DeviceMemory>(std::move(memory));
}

Status CudaBackend::staged_copy(void* host, void* device, std::size_t bytes, bool up) {
  if (auto status = finish(); !status) return status;
  for (std::size_t at = 0; at < bytes; at += kStaging) {
    const std::size_t part = std::min(kStaging, bytes - at);
    auto* here = static_cast<std::byte*>(host) + at;
    auto* there = static_cast<std::byte*>(device) + at;
    if (up) std::memcpy(staging_, here, part);
    const auto sent = up ? cudaMemcpyAsync(there, staging_, part, cudaMemcpyHostToDevice, recorder_->stream())
                         : cudaMemcpyAsync(staging_, there, part, cudaMemcpyDeviceToHost, recorder_->stream());
    if (auto status = note(cuda_status(sent, up ? "upload" : "download")); !status) return status;
    if (auto status = note(recorder_->wait()); !status) return status;
    if (!up) std::memcpy(here, staging_, part);
  }
  return Status::ok();
}

Status CudaBackend::upload(void* device, const void* host, std::size_t bytes) {
  return staged_copy(const_cast<void*>(host), device, bytes, true);
}

Status CudaBackend::download(void* host, const void* device, std::size_t bytes) {
  return staged_copy(host, const_cast<void*>(device), bytes, false);
}

Status CudaBackend::copy(void* to, const void* from, std::size_t bytes) {
  if (auto status = finish(); !status) return status;
  const auto sent = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, recorder_->stream());
  return note(cuda_status(sent, "copy of device memory"));
}

Status CudaBackend::finish() {
  if (auto status = ready(); !status) {
    recorder_->drop();
    chains_.drop();
    return status;
  }
  return note(recorder().run());
}

Status CudaBackend::check_model(const ModelShapes& shapes) const {
  if (auto status = check_kv(shapes.kv_dtype, shapes.attention.dim); !status) return status;
  return shapes.recurrent ? check_delta_shape(shapes.delta) : Status::ok();
}

Status CudaBackend::reserve_round(const RoundLimits& wanted) {
  if (auto status = ready(); !status) return status;
  RoundLimits& l = limits_;
  const CardTraits& card = recorder_->card();
  l.rows = std::max(l.rows, wanted.rows);
  l.logit_rows = std::max(l.logit_rows, wanted.logit_rows);
  l.widest = std::max(l.widest, wanted.widest);
  l.vocab = std::max(l.vocab, wanted.vocab);
  l.positions = std::max(l.positions, wanted.positions);
  l.shapes = wanted.shapes;
  if (auto status = recorder_->grow_scratch(scratch_bytes(card, l)); !status) return status;
  auto queries = allocate(query_bytes(l));
  if (!queries) return queries.status();
  query_rows_ = std::move(*queries);
  auto chain = allocate(LinearChains::bytes(l.widest));
  if (!chain) return chain.status();
  chain_memory_ = std::move(*chain);
  chains_.use_memory(chain_memory_->data(), l.widest);
  auto results = allocate(static_cast<std::size_t>(l.logit_rows) * sizeof(DrawResult));
  if (!results) return results.status();
  results_ = std::move(*results);
  return Status::ok();
}

std::vector<OpTime> CudaBackend::op_times() const {
  std::vector<OpTime> times;
  for (const auto& [name, time] : recorder_->times()) times.push_back({name, time.milliseconds, time.launches});
  return times;
}

std::vector<std::pair<std::string, std::string>> CudaBackend::kernels(const ModelShapes& shapes) const {
  const CardTraits& card = recorder_->card();
  std::vector<std::pair<std::string, std::string>> list;
  list.emplace_back(
      "linear", fmt::format("bf16, {} (1 row), {} (512 rows)", linear_schedule(card, 1), linear_schedule(card, 512)));
  if (options_.prompt_act == Act::kInt8)
    list.emplace_back("linear, prompts", "int8, mma.sync; unquantised weights: bf16");
  list.emplace_back("attention", attention_kernel_name(card, shapes.attention.dim));
  if (shapes.recurrent) list.emplace_back("recurrence", "anchored chunks of 16, mma.sync");
  list.emplace_back("rounds", options_.graphs ? "CUDA graphs, replayed" : "plain launches");
  return list;
}

}  // namespace cuda
}  // namespace steadfast
