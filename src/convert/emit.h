// The bytes of one planned tensor, or of a quantised module's three, from its source.
#pragma once

#include <span>
#include <vector>

#include "convert/plan.h"

namespace steadfast {

// Names, types and shapes of what `job` becomes, in the order of its bytes; the views hold no data.
std::vector<TensorView> outputs_of(const TensorJob& job);

class Emitted {
 public:
  // Fails, naming the module, where values are not finite or not exact in the result's types.
  static Result<Emitted> make(const TensorSource& source, const TensorJob& job);
  // One piece for each of outputs_of(), which may lie in the source's memory.
  const std::vector<std::span<const std::byte>>& pieces() const { return pieces_; }

 private:
  friend class Emitter;
  std::vector<std::vector<std::byte>> owned_;
  std::vector<std::span<const std::byte>> pieces_;
};

}  // namespace steadfast
