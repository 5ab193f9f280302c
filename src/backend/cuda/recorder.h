// Recorder: how ops reach the card. An op appends launches and the host data that they read; run() sends them, as plain
// launches or as a CUDA graph that is kept and replayed when a later round appends the same launches. What changes
// between such rounds (ids, positions, pages, pieces) is data in the arena, at the same addresses every time; what is
// fixed by shapes and row counts is a parameter. One thread, one CUDA stream, no allocation after create().
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <set>
#include <span>
#include <tuple>
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
  int kept_graphs = 64;
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

  // Appends a launch. name: op and shape key in words, for errors ("attention dim 256 bf16"); lives for ever.
  // Arguments are converted to the kernel's parameter types and copied.
  template <typename... Params, typename... Args>
  void launch(const char* name, void (*kernel)(Params...), const LaunchShape& shape, Args&&... args) {
    static_assert(sizeof...(Params) == sizeof...(Args), "as many arguments as the kernel has parameters");
    Launch& launch = begin(name, reinterpret_cast<const void*>(kernel), shape);
    (append(launch, static_cast<std::decay_t<Params>>(std::forward<Args>(args))), ...);
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
  void* scratch(std::size_t bytes) const {
    CHECK(bytes <= options_.scratch_bytes, "scratch of {} bytes, {} asked for", options_.scratch_bytes, bytes);
    return scratch_;
  }
  static constexpr std::size_t kCounterBytes = 64 * 1024;
  std::uint32_t* counters() const { return counters_; }

  // Sends what was appended (host data first) and forgets it. Errors of launches name the op; errors of kernels that
  // ran earlier surface here or in wait().
  Status run();
  Status wait();  // until the card has finished
  std::size_t graphs() const { return graphs_.size(); }
  std::uint64_t replays() const { return replays_; }

 private:
  static constexpr std::size_t kMostParameters = 24;
  struct Launch {
    const char* name = nullptr;
    const void* kernel = nullptr;
    LaunchShape shape;
    std::vector<std::byte> bytes;  // parameters, each at its offset
    std::array<std::uint32_t, kMostParameters> offsets{};
    int parameters = 0;
  };
  struct Graph {
    std::vector<std::byte> key;  // what the graph launches, compared exactly
    cudaGraphExec_t exec = nullptr;
    std::uint64_t used = 0;
  };

  Recorder() = default;
  Launch& begin(const char* name, const void* kernel, const LaunchShape& shape);
  template <typename T>
  void append(Launch& launch, const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 128);
    CHECK(launch.parameters < static_cast<int>(kMostParameters), "{}: too many parameters", launch.name);
    const std::size_t at = (launch.bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    launch.bytes.resize(at + sizeof(T));
    std::memcpy(launch.bytes.data() + at, &value, sizeof(T));
    launch.offsets[static_cast<std::size_t>(launch.parameters++)] = static_cast<std::uint32_t>(at);
  }
  std::vector<std::byte> key() const;
  Status send(const Launch& launch);
  Status send_all();
  Status replay();
  void shed_graphs();

  RecorderOptions options_;
  CardTraits card_;
  cudaStream_t stream_ = nullptr;
  std::byte *arena_ = nullptr, *host_arena_ = nullptr;  // device; pinned host, two halves used in turn
  cudaEvent_t half_free_[2] = {};
  int half_ = 0;
  std::size_t arena_used_ = 0;
  void* scratch_ = nullptr;
  std::uint32_t* counters_ = nullptr;
  std::vector<Launch> launches_;
  std::size_t used_ = 0;  // launches_[0, used_) are appended; the rest keep their memory
  std::unordered_map<std::uint64_t, Graph> graphs_;
  std::set<const void*> prepared_;  // kernels whose shared memory limit was raised
  std::uint64_t clock_ = 0, replays_ = 0;
};

}  // namespace steadfast::cuda
