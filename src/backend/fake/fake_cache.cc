// Keys and values as marks in the cache: a position's 16 bytes (position, token, chain), a byte an element, in the
// layout that CacheView states. Keys and values of every head hold the same.
#include <cstring>

#include "backend/fake/fake_backend.h"
#include "backend/fake/history.h"

namespace steadfast::fake {
namespace {

constexpr int kBytes = 16;

struct Slot {
  std::int32_t position = 0;
  TokenId token = 0;
  std::uint64_t chain = 0;  // salted with the layer
  bool operator==(const Slot&) const = default;
};
static_assert(sizeof(Slot) == kBytes);

std::uint64_t salt(int layer) { return mix(0x5a17, static_cast<std::uint64_t>(layer)); }

// Elements of one position and head: keys 16 apart, values side by side.
template <typename Element>
struct Place {
  Element* keys;
  Element* values;
};

template <typename Element>
Place<Element> place(const CacheView& view, int position, int head) {
  const int in_page = position & ((1 << view.page_shift) - 1), block = in_page / 16, lane = in_page % 16;
  const std::ptrdiff_t base = view.pages[position >> view.page_shift] * view.page_stride() + view.head_offset(head) +
                              static_cast<std::ptrdiff_t>(block) * view.dim * 16;
  return {static_cast<Element*>(view.keys) + base + lane,
          static_cast<Element*>(view.values) + base + static_cast<std::ptrdiff_t>(lane) * view.dim};
}

template <typename Element>
void store(const CacheView& view, int position, const Slot& slot) {
  std::uint8_t bytes[kBytes];
  std::memcpy(bytes, &slot, kBytes);
  for (int head = 0; head < view.kv_heads; ++head) {
    const auto at = place<Element>(view, position, head);
    for (int i = 0; i < kBytes; ++i) at.keys[i * 16] = at.values[i] = static_cast<Element>(bytes[i]);
  }
}

// The key's slot; `same` turns false where the value's differs.
template <typename Element>
Slot load(const CacheView& view, int position, bool& same) {
  std::uint8_t bytes[kBytes];
  const auto at = place<Element>(view, position, position % view.kv_heads);
  for (int i = 0; i < kBytes; ++i) {
    bytes[i] = static_cast<std::uint8_t>(at.keys[i * 16]);
    same = same && at.values[i] == at.keys[i * 16];
  }
  Slot slot;
  std::memcpy(&slot, bytes, kBytes);
  return slot;
}

template <typename Function>
auto with_element(const CacheView& view, Function&& function) {
  switch (info(view.dtype).block_bytes) {
    case 1:
      return function(std::uint8_t{});
    case 2:
      return function(std::uint16_t{});
    default:
      return function(std::uint32_t{});
  }
}

}  // namespace

void FakeBackend::store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) {
  CHECK(view.dim >= kBytes, "the fake backend needs heads of at least {} dims, not {}", kBytes, view.dim);
  with_element(view, [&](auto element) {
    using Element = decltype(element);
    for (int row = 0; row < keys.rows; ++row) {
      const Mark mark = read(keys.row(row));
      const int position = first_position + row;
      check_rotation(mark, position);
      if (read(values.row(row)).token != mark.token)
        ledger_->fault(fmt::format("position {}: the value is of another token than the key", position));
      std::uint64_t before = kStart;
      bool same = true;
      if (position > 0) before = load<Element>(view, position - 1, same).chain ^ salt(mark.layers);
      if (pool_ != nullptr && view.page_shift != CacheView().page_shift) {  // not a whole window
        const int page = view.pages[position >> view.page_shift];
        if (pool_->count(page) != 1)
          ledger_->fault(
              fmt::format("position {}: page {} was written while {} hold it", position, page, pool_->count(page)));
      }
      store<Element>(view, position, {position, mark.token, chain(before, mark.token, position) ^ salt(mark.layers)});
    }
  });
}

void FakeBackend::attention(const Matrix& queries, const AttentionShape&, std::span<const Piece> pieces,
                            std::span<const CacheView> views, const Matrix& out) {
  if (queries.rows > 0 && read(queries.row(0)).layers == 0) begin_round(pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const CacheView& view = views[i];
    const int layer = read(queries.row(piece.first_row)).layers;
    with_element(view, [&](auto element) {
      using Element = decltype(element);
      std::uint64_t here = kStart;
      for (int position = 0; position < piece.first_position + piece.rows; ++position) {
        bool same = true;
        const Slot slot = load<Element>(view, position, same);
        here = chain(here, slot.token, position);
        if (!same || slot.position != position || (slot.chain ^ salt(layer)) != here) {
          ledger_->fault(fmt::format(
              "layer {}, position {} of a stream that stands at {}: the cache holds position {}, token {}, {}", layer,
              position, piece.first_position, slot.position, slot.token,
              same ? "and another history" : "and a value unlike its key"));
          here = slot.chain ^ salt(layer);  // told once
        }
        if (position < piece.first_position) continue;
        const int row = piece.first_row + position - piece.first_position;
        Mark mark = read(queries.row(row));
        check_rotation(mark, position);
        if (mark.token != slot.token)
          ledger_->fault(fmt::format("position {}: token {} reads its own position as token {}", position, mark.token,
                                     slot.token));
        if (mark.recurrent > 0 && mark.history != here)
          ledger_->fault(fmt::format("position {}: the recurrent states are of another history", position));
        mark.hash = after_layer(mark.hash, here, layer);
        ++mark.layers;
        write(out.row(row), mark);
      }
    });
  }
}

}  // namespace steadfast::fake
