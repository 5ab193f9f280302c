// Recurrent states as marks: how many positions they have seen and the chain over them, in the convolution's memory and
// in the state's own.
#include <cstring>

#include "backend/fake/fake_backend.h"
#include "backend/fake/history.h"

namespace steadfast::fake {
namespace {

struct Seen {
  std::int32_t positions = 0;
  std::uint64_t chain = kStart;
};

Seen load(const float* memory) {
  Seen seen;
  std::memcpy(&seen.positions, memory, sizeof seen.positions);
  std::memcpy(&seen.chain, memory + 1, sizeof seen.chain);
  return seen;
}

void store(float* memory, const Seen& seen) {
  std::memcpy(static_cast<void*>(memory), &seen.positions, sizeof seen.positions);
  std::memcpy(static_cast<void*>(memory + 1), &seen.chain, sizeof seen.chain);
}

// Moves a state over a piece's rows.
template <typename Row>
void advance(Ledger& ledger, const char* what, const Piece& piece, float* memory, Row&& row) {
  Seen seen = load(memory);
  if (seen.positions != piece.first_position)
    ledger.fault(fmt::format("a stream's {} has seen {} positions and is fed position {}", what, seen.positions,
                             piece.first_position));
  for (int r = 0; r < piece.rows; ++r) {
    seen.chain = row(piece.first_row + r, seen);
    ++seen.positions;
  }
  store(memory, seen);
}

}  // namespace

void FakeBackend::delta_conv(const Matrix& x, const DeltaShape&, const DeltaWeights&, std::span<const Piece> pieces,
                             std::span<const DeltaState> states, const Matrix& out) {
  if (x.rows > 0 && read(x.row(0)).layers == 0) begin_round(pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    advance(*ledger_, "convolution", pieces[i], states[i].conv, [&](int row, const Seen& seen) {
      Mark mark = read(x.row(row));
      mark.history = chain(seen.chain, mark.token, seen.positions);
      write(out.row(row), mark);
      return mark.history;
    });
}

void FakeBackend::delta_rule(const Matrix& mixed, const Matrix&, const Matrix&, const DeltaShape&, const DeltaWeights&,
                             std::span<const Piece> pieces, std::span<const DeltaState> states, const Matrix& out) {
  for (std::size_t i = 0; i < pieces.size(); ++i)
    advance(*ledger_, "recurrent state", pieces[i], states[i].state, [&](int row, const Seen& seen) {
      Mark mark = read(mixed.row(row));
      const std::uint64_t here = chain(seen.chain, mark.token, seen.positions);
      if (here != mark.history)
        ledger_->fault(
            fmt::format("position {}: convolution and recurrent state are of two histories", seen.positions));
      mark.history = here;
      mark.hash = after_layer(mark.hash, here, mark.layers);
      ++mark.layers;
      ++mark.recurrent;
      write(out.row(row), mark);
      return here;
    });
}

}  // namespace steadfast::fake
