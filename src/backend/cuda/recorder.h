// Recorder: how ops reach the card. An op appends launches and the host data that they read; run() sends them, as plain
// launches or as CUDA graphs that are kept and replayed when a later round appends the same launches. What changes
// between such rounds (ids, positions, pages, pieces) is data in the arena, at the same addresses every time; what is
// fixed by shapes and row counts is a parameter. One thread, one CUDA stream, no allocation of the card after create().
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/cuda/cuda_check.h"
#include "base/check.h"

namespace steadfast::cuda {

struct LaunchShape {
  dim3 grid{1, 1, 1}, block{1, 1, 1};
  std::size_t shared = 0;  // dynamic shared memory, bytes
  int cluster = 1;         // blocks of a cluster along x
  bool early = false;      // programmatic dependent launch: the kernel calls griddepcontrol.wait before it reads what
                           // earlier launches wrote, and before it writes what they read
};

struct RecorderOptions {
  std::size_t arena_bytes = 0;    // host data of one round
  std::size_t scratch_bytes = 0;  // device memory that ops share, one after another
  bool graphs = true;
  int kept_graphs = 256;
  // Launches that are sent together: the card works on them while the next are appended. A run's first segment is
  // shorter, so that the card begins soon.
  int first_segment = 16, segment = 96;
  bool timed = false;  // every launch alone between two events, for times(); no graphs
};

// What kernels' schedules may depend on (and, where an op's contract says so, its arithmetic).
struct CardTraits {
  int major = 0, minor = 0, multiprocessors = 0;
  std::size_t shared_per_block = 0, l2_bytes = 0;
  bool wgmma() const { return major == 9; }
};

class Recorder {
 public:
  static Result<std::unique_ptr<Recorder>> create(int device, const RecorderOptions& options);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  const CardTraits& card() const { return card_; }
  cudaStream_t stream() const { return stream_; }

  // Appends a launch. name: the op in words, for errors and times ("attention dim 256 bf16"); lives for ever.
  // Arguments are converted to the kernel's parameter types and copied.
  template <typename... Params, typename... Args>
  void launch(const char* name, void (*kernel)(Params...), const LaunchShape& shape, Args&&... args) {
    static_assert(sizeof...(Params) == sizeof...(Args), "as many arguments as the kernel has parameters");
    static_assert(sizeof...(Params) <= kMostParameters, "too many parameters");
    begin(name, reinterpret_cast<const void*>(kernel), shape);
    (append(static_cast<std::decay_t<Params>>(std::forward<Args>(args))), ...);
    end();
  }

  // Copies host data into the round's arena; the device address is that of the same put() of an equal round.
  template <typename T>
  const T* put(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    return static_cast<const T*>(put_bytes(values.data(), values.size_bytes()));
  }
  const void* put_bytes(const void* data, std::size_t bytes);

  // Scratch for the launches of one op: the same address every time. Contents are undefined at the op's start, except
  // that the first kCounterBytes of counters() are zero whenever an op begins and each op leaves them zero.
  // More than there is fails the run.
  void* scratch(std::size_t bytes) {
    if (bytes > options_.scratch_bytes)
      status_ =
          Status::error("a round needs {} MiB of scratch, {} were planned", bytes >> 20, options_.scratch_bytes >> 20);
    return scratch_;
  }
  std::size_t scratch_bytes() const { return options_.scratch_bytes; }
  Status grow_scratch(std::size_t bytes);  // between rounds; graphs of the old address are forgotten
  static constexpr std::size_t kCounterBytes = 64 * 1024;
  std::uint32_t* counters() const { return counters_; }

  // Sends what was appended (host data first) and forgets it. Errors of launches name the op and its grid; errors of
  // kernels that ran earlier surface here or in wait().
  Status run();
  Status wait();  // until the card has finished
  void drop();    // forgets what was appended
  std::size_t graphs() const { return graphs_.size(); }
  std::uint64_t replays() const { return replays_; }
  std::uint64_t launches() const { return launched_; }

  // Milliseconds and launches of each name since create(); `timed` alone.
  struct Time {
    double milliseconds = 0;
    std::uint64_t launches = 0;
  };
  const std::map<std::string, Time>& times() const { return times_; }

 private:
  static constexpr std::size_t kMostParameters = 24;
  // One appended launch; its parameters follow it in appended_. No padding: graphs are found by these bytes.
  struct Launch {
    const char* name;
    const void* kernel;
    std::uint32_t grid[3], block[3];
    std::uint64_t shared;
    std::uint32_t cluster, early, parameters, bytes;
    std::uint16_t offsets[kMostParameters];  // of the parameters, from the end of this struct
  };
  static_assert(sizeof(Launch) == 112);
  struct Graph {
    std::vector<std::byte> key;  // what the graph launches, compared exactly
    cudaGraphExec_t exec = nullptr;
    std::uint64_t used = 0;
  };

  Recorder() = default;
  Status allocate();
  void begin(const char* name, const void* kernel, const LaunchShape& shape);
  template <typename T>
  void append(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 128);
    const std::size_t offset = (parameter_bytes_ + alignof(T) - 1) / alignof(T) * alignof(T);
    CHECK(offset + sizeof(T) <= sizeof parameters_, "{}: parameters of more than {} bytes", current_.name,
          sizeof parameters_);
    std::memset(parameters_ + parameter_bytes_, 0, offset - parameter_bytes_);
    std::memcpy(parameters_ + offset, &value, sizeof(T));
    current_.offsets[current_.parameters++] = static_cast<std::uint16_t>(offset);
    parameter_bytes_ = offset + sizeof(T);
  }
  void end();
  Status send(const std::byte* at);
  Status send_all();
  Status send_timed(const std::byte* at);
  Status replay();
  void flush();
  void shed_graphs();
  const Launch* launch_at(const std::byte* at) const { return reinterpret_cast<const Launch*>(at); }

  RecorderOptions options_;
  CardTraits card_;
  cudaStream_t stream_ = nullptr;
  std::byte *arena_ = nullptr, *host_arena_ = nullptr;  // device; pinned host, two halves used in turn
  cudaEvent_t half_free_[2] = {}, timer_[2] = {};
  int half_ = 0;
  std::size_t arena_used_ = 0, arena_sent_ = 0;
  void* scratch_ = nullptr;
  std::uint32_t* counters_ = nullptr;
  Launch current_{};
  alignas(128) std::byte parameters_[4096];
  std::size_t parameter_bytes_ = 0;
  std::vector<std::byte> appended_;  // launches since the last flush, each with its parameters, multiples of 8 bytes
  int count_ = 0;                    // of them
  bool begun_ = false;               // this run has sent its first segment
  Status status_;                    // of this run's earlier segments
  std::unordered_map<std::uint64_t, Graph> graphs_;
  std::set<const void*> prepared_;  // kernels whose shared memory limit was raised
  std::uint64_t clock_ = 0, replays_ = 0, launched_ = 0;
  std::map<std::string, Time> times_;
};

}  // namespace steadfast::cuda
