// Chains of linears of few rows: what one linear leaves and the next reads stays in the kernels' layout, and linears
// that follow one another become one launch (device/linear_chain.h). Outputs have the bits of linear() (linear.h). A
// linear is held back until the next op is known: whoever appends anything else calls flush() first.
// Gate and up whose product the next linear reads (Prologue::kSiluMul) are not written to memory.
#pragma once

#include <vector>

#include "backend/cuda/linear.h"

namespace steadfast::cuda {

class LinearChains {
 public:
  // Memory that rows on the way need, with rows of at most `in` inputs; zeroed by nobody.
  static std::size_t bytes(int in);
  void use_memory(void* memory, int in);

  // Takes the linear, or leaves it to linear(): false, and what was held back is then appended.
  bool add(Recorder& recorder, const LinearInput& input, std::span<const LinearJobArgs> jobs);
  // Appends the launch of what is held back.
  void flush(Recorder& recorder);
  void drop() { stages_.clear(); }

 private:
  bool suits(const Recorder& recorder, const LinearInput& input, std::span<const LinearJobArgs> jobs) const;
  bool link(const LinearInput& input, ChainStage& next);

  std::uint8_t* rows_[2] = {};
  float *squares_[2] = {}, *factors_ = nullptr;
  int most_in_ = 0, current_ = 0;  // which of the two the newest stage reads
  Form form_ = Form::kFour;
  int row_count_ = 0;
  std::vector<ChainStage> stages_;
};

// One linear of one form of weights, as a launch of its own. x: bf16 rows as write_linear_input makes them, padded to
// none.
void launch_chain_of_one(Recorder& recorder, const std::uint8_t* x, const float* factors, int rows, int in,
                         std::span<const LinearJobArgs> jobs);

}  // namespace steadfast::cuda
