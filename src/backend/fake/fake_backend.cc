// Memory, and the ops that hand a row's mark on.
#include "backend/fake/fake_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/fake/history.h"

namespace steadfast::fake {
namespace {

constexpr std::uint32_t kMagic = 0x46414b45;

class FakeWeight : public Weight {
 public:
  FakeWeight(int out, int in) {
    out_ = out;
    in_ = in;
    format_ = "fake";
  }
};

}  // namespace

// Zeroed host memory of at least 16 bytes, so that every block has its own address.
class Memory : public DeviceMemory {
 public:
  Memory(std::shared_ptr<Ledger> ledger, std::size_t bytes)
      : ledger_(std::move(ledger)), bytes_(bytes), words_(std::max<std::size_t>(2, (bytes + 7) / 8)) {
    ledger_->live_bytes_ += static_cast<std::int64_t>(bytes_);
  }
  ~Memory() override {
    ledger_->live_bytes_ -= static_cast<std::int64_t>(bytes_);
    const std::lock_guard lock(ledger_->mutex_);
    ledger_->fed_.erase(words_.data());
  }
  void* data() override { return words_.data(); }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Ledger> ledger_;
  std::size_t bytes_;
  std::vector<std::uint64_t> words_;
};

void Ledger::fault(std::string what) {
  constexpr std::size_t kMost = 20;
  ++faults_;
  const std::lock_guard lock(mutex_);
  if (sentences_.size() < kMost) sentences_.push_back(std::move(what));
}

std::vector<std::string> Ledger::sentences() const {
  const std::lock_guard lock(mutex_);
  return sentences_;
}

Result<std::unique_ptr<Weight>> FakeBackend::pack(const AffineReader& reader, std::span<const int> row_map) {
  const int out = row_map.empty() ? reader.out() : static_cast<int>(row_map.size());
  return std::unique_ptr<Weight>(std::make_unique<FakeWeight>(out, reader.in()));
}

Result<std::unique_ptr<Weight>> FakeBackend::pack(const DenseReader& reader, std::span<const int> row_map) {
  const int out = row_map.empty() ? reader.out() : static_cast<int>(row_map.size());
  return std::unique_ptr<Weight>(std::make_unique<FakeWeight>(out, reader.in()));
}

Result<std::unique_ptr<DeviceMemory>> FakeBackend::allocate(std::size_t bytes) {
  return std::unique_ptr<DeviceMemory>(std::make_unique<Memory>(ledger_, bytes));
}

Status FakeBackend::upload(void* device, const void* host, std::size_t bytes) {
  std::memcpy(device, host, bytes);
  return Status::ok();
}

Status FakeBackend::download(void* host, const void* device, std::size_t bytes) {
  std::memcpy(host, device, bytes);
  return Status::ok();
}

Status FakeBackend::copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return Status::ok();
}

void FakeBackend::copy_rows(const Matrix& from, const Matrix& to) {
  for (int row = 0; row < from.rows; ++row)
    std::memcpy(to.row(row), from.row(row), static_cast<std::size_t>(from.width) * sizeof(float));
}

void write(float* row, const Mark& mark) { std::memcpy(static_cast<void*>(row), &mark, sizeof mark); }

Mark FakeBackend::read(const float* row) {
  Mark mark;
  std::memcpy(static_cast<void*>(&mark), row, sizeof mark);
  if (mark.magic != kMagic) ledger_->fault("a row was read that no op wrote");
  return mark;
}

void FakeBackend::hand_on(const Matrix& from, const Matrix& to) {
  for (int row = 0; row < from.rows; ++row) write(to.row(row), read(from.row(row)));
}

void FakeBackend::embed(const Weight&, std::span<const TokenId> ids, const Matrix& out) {
  for (int row = 0; row < out.rows; ++row) {
    Mark mark;
    mark.magic = kMagic;
    mark.token = ids[static_cast<std::size_t>(row)];
    write(out.row(row), mark);
  }
}

void FakeBackend::linear(const Matrix& x, std::span<const LinearJob> jobs) {
  for (const LinearJob& job : jobs) {
    if (job.fine) {  // the head
      for (int row = 0; row < x.rows; ++row)
        fill_logits(read(x.row(row)).hash, {job.out.row(row), static_cast<std::size_t>(job.out.width)});
      continue;
    }
    for (int row = 0; row < x.rows && job.out.width >= kMarkFloats; ++row) {  // gates of few heads carry nothing
      const Mark mark = read(x.row(row));
      if (job.add != nullptr) {
        const TokenId token = read(job.add + row * job.out.stride).token;
        if (token != mark.token)
          ledger_->fault(fmt::format("row {}: token {} was added to the row of token {}", row, mark.token, token));
      }
      write(job.out.row(row), mark);
    }
  }
}

void FakeBackend::rms_norm(const Matrix& x, const float*, float, const Matrix& out) { hand_on(x, out); }
void FakeBackend::silu_mul(const Matrix& gate, const Matrix&, const Matrix& out) { hand_on(gate, out); }
void FakeBackend::sigmoid_mul(const Matrix& x, const Matrix&, const Matrix& out) { hand_on(x, out); }
void FakeBackend::gated_norm(const Matrix& x, const Matrix&, int, int, const float*, float, const Matrix& out) {
  hand_on(x, out);
}

void FakeBackend::gather(const Matrix& x, std::span<const int> rows, const Matrix& out) {
  for (int row = 0; row < out.rows; ++row) write(out.row(row), read(x.row(rows[static_cast<std::size_t>(row)])));
}

void FakeBackend::rope(const Matrix& x, int, int, const RopeTable& table) {
  for (int row = 0; row < x.rows; ++row) {
    Mark mark = read(x.row(row));
    mark.cosine = table.cosine[static_cast<std::ptrdiff_t>(row) * table.dims / 2];
    mark.sine = table.sine[static_cast<std::ptrdiff_t>(row) * table.dims / 2];
    write(x.row(row), mark);
  }
}

// The first pair's angle is the position itself.
void FakeBackend::check_rotation(const Mark& mark, int position) {
  constexpr double kClose = 1e-5;
  if (std::abs(mark.cosine - std::cos(position)) > kClose || std::abs(mark.sine - std::sin(position)) > kClose)
    ledger_->fault(fmt::format("token {} at position {} was rotated for another position", mark.token, position));
}

// The first layer of a round: each stream goes on where it stood. A whole window may be handed to a new stream, which
// begins behind whatever prefix it holds or was given (what it holds is checked as it is read); a recorded piece may be
// taken back, and its rows that stay are replayed.
void FakeBackend::begin_round(std::span<const Piece> pieces) {
  if (on_round_) on_round_(pieces);
  for (const Piece& piece : pieces) {
    const bool whole = piece.stream->view(0).page_shift == CacheView().page_shift;
    std::string wrong;
    {
      const std::lock_guard lock(ledger_->mutex_);
      const auto [entry, fresh] = ledger_->fed_.try_emplace(piece.stream->state_data());
      Ledger::Fed& fed = entry->second;
      const bool back = piece.first_position < fed.next && fed.recorded && piece.first_position >= fed.last;
      if (!fresh && !whole && piece.first_position != fed.next && !back)
        wrong = fmt::format("a stream that stood at position {} was fed position {}", fed.next, piece.first_position);
      fed = {piece.first_position + piece.rows, piece.first_position, piece.stream->recording()};
    }
    if (!wrong.empty()) ledger_->fault(std::move(wrong));
  }
}

}  // namespace steadfast::fake
