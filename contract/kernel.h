// What a kernel of the contract is: a name, the columns of its cases, a check that puts a case through the gates, and
// what a call costs at least. One file of gates/ each.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "contract/case.h"
#include "contract/device_rows.h"
#include "contract/random.h"

namespace steadfast::contract {

// Which of the arithmetics of docs/arithmetic.md a backend keeps.
enum class Arithmetic : std::uint8_t { kCpuInt8, kCpuBF16, kCpuF32, kCuda, kCudaInt8 };
constexpr bool is_cuda(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kCuda || arithmetic == Arithmetic::kCudaInt8;
}

// Another way to compute the same bits on the same memory and weights: other instructions, another number of threads,
// a schedule that the backend would not have chosen.
struct Schedule {
  std::string name;
  std::shared_ptr<Backend> backend;
  int least_rows = 1, most_rows = 1 << 30;  // of a call
  std::string only;                         // the one kernel that it differs in; "": all
};

struct Context {
  Backend& backend;
  Arithmetic arithmetic;
  std::vector<Schedule> schedules;
  std::optional<Arithmetic> prompts = std::nullopt;  // linears are those of prompts' rows, in this arithmetic
};

// One kernel's line of the table.
struct Tally {
  std::string kernel;
  int cases = 0;
  std::int64_t rows = 0;       // compared to the bit
  std::int64_t differing = 0;  // values whose bits differ
  std::int64_t overwritten = 0;
  double worst = 0;  // error as a share of its bound; above 1 is beyond it, infinite where a value is not finite
  int controls = 0, caught = 0;
  double seconds = 0;
  std::vector<std::string> findings;  // the first few, a sentence each
  bool fine() const { return differing == 0 && overwritten == 0 && worst <= 1 && caught == controls; }
};

// Takes a case's verdicts.
class Gates {
 public:
  Gates(Tally& tally, const Case& of) : tally_(&tally), case_(&of) {}

  // Bits. got, want: `rows` rows of `width` values.
  void equal(const std::string& what, const float* got, const float* want, int rows, int width);
  void equal_bytes(const std::string& what, std::span<const std::byte> got, std::span<const std::byte> want, int rows);
  // error as a share of its bound.
  void within(const std::string& what, double share);
  void untouched(const std::string& what, bool damage);
  // A planted fault: whether a gate went red.
  void control(const std::string& what, bool red);

 private:
  void find(std::string sentence);
  Tally* tally_;
  const Case* case_;
};

// Values whose bits differ.
std::int64_t differing(const float* got, const float* want, std::size_t count);

// The largest share of its bound that an error takes; a bound of zero allows no error.
class Share {
 public:
  void add(double got, double exact, double bound);
  double worst() const { return worst_; }

 private:
  double worst_ = 0;
};

// Unit roundoff of float32, and Higham's gamma_n = n u / (1 - n u): the relative error of n roundings.
constexpr double kRoundoff = 0x1p-24;
constexpr double gamma_n(double n) { return n * kRoundoff / (1 - n * kRoundoff); }

// Rows of a call that reach over every schedule of every backend, up to `most`.
std::vector<int> batch_sizes(int most);

// What one call must at least do.
struct Floor {
  double bytes = 0, operations = 0;
};
// A case made ready to be called again and again.
struct Timed {
  std::string what;  // "8 rows"
  Floor floor;
  std::function<void()> call;
};

struct Kernel {
  std::string name, sentence;
  std::vector<Column> columns;
  std::vector<std::string> gates, controls;
  void (*check)(Context& context, const Case& of, Gates& gates);
  std::vector<Timed> (*timed)(Context& context, const Case& of);
  // Why this backend has no kernel for the case; nullptr: it has one for all.
  Status (*supported)(Context& context, const Case& of) = nullptr;
};

// Takes the memory for rounds within these limits, of the backend and of those beside it.
void reserve(Context& context, RoundLimits limits);

// All kernels, in the order of the table.
const std::vector<Kernel>& all_kernels();
const Kernel* find_kernel(const std::string& name);

Kernel linear_kernel();
Kernel embed_kernel();
Kernel rms_norm_kernel();
Kernel head_norm_kernel();
Kernel gated_norm_kernel();
Kernel silu_mul_kernel();
Kernel sigmoid_mul_kernel();
Kernel copy_kernel();
Kernel rope_kernel();
Kernel store_kv_kernel();
Kernel attention_kernel();
Kernel delta_kernel();
Kernel draw_kernel();

}  // namespace steadfast::contract
