// Faults of caches, positions and states: views and pieces altered on their way, rows stored where they do not belong,
// a copy cut short. They know no layout: what they write goes through the true backend's own ops.
#include <set>

#include "verify/faults/forwarding_backend.h"
#include "verify/faults/planted.h"

namespace steadfast::planted {
namespace {

constexpr int kWholeShift = 30;  // of a view on a whole window

bool on_pages(const CacheView& view) { return view.page_shift < kWholeShift; }

Matrix row_of(const Matrix& matrix, int row) { return {matrix.row(row), 1, matrix.width, matrix.stride}; }

// Attention sees the last two pages of each stream exchanged; the stores do not.
class TableSwap : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                 std::span<const CacheView> views, const Matrix& out) override {
    std::vector<std::vector<std::int32_t>> tables(views.size());
    std::vector<CacheView> swapped(views.begin(), views.end());
    for (std::size_t i = 0; i < views.size(); ++i) {
      const int last = pieces[i].first_position + pieces[i].rows - 1, count = (last >> views[i].page_shift) + 1;
      if (count < 2) continue;
      tables[i].assign(views[i].pages, views[i].pages + count);
      std::swap(tables[i][tables[i].size() - 1], tables[i][tables[i].size() - 2]);
      swapped[i].pages = tables[i].data();
    }
    inner().attention(queries, shape, pieces, swapped, out);
  }
};

// As soon as position 9 is stored on a page, it is stored over position 8 too.
class PageRow : public StoringBackend {
 public:
  using StoringBackend::StoringBackend;
  void store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) override {
    inner().store_kv(keys, values, view, first_position);
    constexpr int kPosition = 9;
    const int row = kPosition - first_position;
    if (!on_pages(view) || row < 0 || row >= keys.rows) return;
    inner().store_kv(row_of(keys, row), row_of(values, row), view, kPosition - 1);
  }
};

class Position : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                 std::span<const CacheView> views, const Matrix& out) override {
    std::vector<Piece> shifted(pieces.begin(), pieces.end());
    for (Piece& piece : shifted)
      if (piece.first_position > 0) --piece.first_position;
    inner().attention(queries, shape, shifted, views, out);
  }
};

// A copy back to where an earlier copy came from is a roll-back's: it stops half way.
class StaleState : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  Status copy(void* to, const void* from, std::size_t bytes) override {
    const bool restores = copies_.count({from, to}) != 0;
    copies_.insert({to, from});
    return inner().copy(to, from, restores ? bytes / 2 / sizeof(float) * sizeof(float) : bytes);
  }

 private:
  std::set<std::pair<const void*, const void*>> copies_;  // to, from
};

// Where a round's last stream has its first page in common with another stream of the round, its row goes there too.
class SharedWrite : public StoringBackend {
 public:
  using StoringBackend::StoringBackend;
  void store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) override {
    keys_ = row_of(keys, keys.rows - 1);
    values_ = row_of(values, values.rows - 1);
    inner().store_kv(keys, values, view, first_position);
  }
  void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                 std::span<const CacheView> views, const Matrix& out) override {
    const CacheView& last = views.back();
    bool shared = false;
    for (const CacheView& other : views.first(views.size() - 1))
      shared |= on_pages(last) && other.keys == last.keys && other.pages[0] == last.pages[0];
    if (shared) inner().store_kv(keys_, values_, last, 0);
    inner().attention(queries, shape, pieces, views, out);
  }

 private:
  Matrix keys_, values_;  // the row stored last, still in the round's workspace
};

}  // namespace

std::unique_ptr<Backend> table_swap(std::unique_ptr<Backend> inner) {
  return std::make_unique<TableSwap>(std::move(inner));
}
std::unique_ptr<Backend> page_row(std::unique_ptr<Backend> inner) {
  return std::make_unique<PageRow>(std::move(inner));
}
std::unique_ptr<Backend> position(std::unique_ptr<Backend> inner) {
  return std::make_unique<Position>(std::move(inner));
}
std::unique_ptr<Backend> stale_state(std::unique_ptr<Backend> inner) {
  return std::make_unique<StaleState>(std::move(inner));
}
std::unique_ptr<Backend> shared_write(std::unique_ptr<Backend> inner) {
  return std::make_unique<SharedWrite>(std::move(inner));
}

}  // namespace steadfast::planted
