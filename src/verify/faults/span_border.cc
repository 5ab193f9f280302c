// An attention of its own, in float on the host, whose spans are 512 + 16 x (pieces of the round) positions long.
// It keeps the rows that were stored, by where they lie, so that it knows no layout of the device.
#include <algorithm>
#include <cmath>
#include <map>

#include "verify/faults/forwarding_backend.h"
#include "verify/faults/planted.h"

namespace steadfast::planted {
namespace {

struct KeyValue {
  std::vector<float> key, value;  // all heads
};

class SpanBorder : public StoringBackend {
 public:
  using StoringBackend::StoringBackend;

  void store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first_position) override {
    inner().store_kv(keys, values, view, first_position);
    const std::vector<float> k = read(keys), v = read(values);
    const auto width = static_cast<std::ptrdiff_t>(keys.width);
    for (int row = 0; row < keys.rows; ++row) {
      KeyValue& place = at(view, first_position + row);
      place.key.assign(k.begin() + row * width, k.begin() + (row + 1) * width);
      place.value.assign(v.begin() + row * width, v.begin() + (row + 1) * width);
    }
  }

  void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                 std::span<const CacheView> views, const Matrix& out) override {
    const int span = 512 + 16 * static_cast<int>(pieces.size());
    std::vector<float> rows = read(queries);  // each becomes its result
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      std::vector<const KeyValue*> seen;
      for (int p = 0; p < pieces[i].first_position + pieces[i].rows; ++p) seen.push_back(&at(views[i], p));
      for (int r = 0; r < pieces[i].rows; ++r) {
        const auto visible = std::span(seen).first(static_cast<std::size_t>(pieces[i].first_position + r) + 1);
        float* row = rows.data() + static_cast<std::ptrdiff_t>(pieces[i].first_row + r) * queries.width;
        for (int head = 0; head < shape.heads; ++head)
          attend(row + head * shape.dim, visible, head / (shape.heads / shape.kv_heads) * shape.dim, shape, span);
      }
    }
    write(rows, out);
  }

 private:
  using Place = std::pair<const void*, std::ptrdiff_t>;  // a layer's keys, and the position among them

  KeyValue& at(const CacheView& view, int position) {
    const std::ptrdiff_t page = view.pages[position >> view.page_shift];
    return stored_[{view.keys, page * view.page_positions + (position & ((1 << view.page_shift) - 1))}];
  }

  // query becomes its result: spans in order, each with its own largest score, folded into what came before.
  void attend(float* query, std::span<const KeyValue* const> seen, int offset, const AttentionShape& shape, int span) {
    const auto dim = static_cast<std::size_t>(shape.dim), length = static_cast<std::size_t>(span);
    float peak = -INFINITY, total = 0;
    result_.assign(dim, 0);
    for (std::size_t first = 0; first < seen.size(); first += length) {
      const auto part = seen.subspan(first, std::min(length, seen.size() - first));
      const float own_peak = score(query, part, offset, shape);
      float own_total = 0;
      part_.assign(dim, 0);
      for (std::size_t p = 0; p < part.size(); ++p) {
        const float weight = std::exp(scores_[p] - own_peak);
        const float* value = part[p]->value.data() + offset;
        own_total += weight;
        for (std::size_t d = 0; d < dim; ++d) part_[d] += weight * value[d];
      }
      const float next = std::max(peak, own_peak), old_share = std::exp(peak - next),
                  new_share = std::exp(own_peak - next);
      for (std::size_t d = 0; d < dim; ++d) result_[d] = result_[d] * old_share + part_[d] * new_share;
      total = total * old_share + own_total * new_share;
      peak = next;
    }
    for (std::size_t d = 0; d < dim; ++d) query[d] = result_[d] / total;
  }

  // The scores of a span; the largest.
  float score(const float* query, std::span<const KeyValue* const> part, int offset, const AttentionShape& shape) {
    float peak = -INFINITY;
    scores_.clear();
    for (const KeyValue* row : part) {
      const float* key = row->key.data() + offset;
      float product = 0;
      for (int d = 0; d < shape.dim; ++d) product += query[d] * key[d];
      scores_.push_back(product * shape.scale);
      peak = std::max(peak, scores_.back());
    }
    return peak;
  }

  std::map<Place, KeyValue> stored_;
  std::vector<float> scores_, part_, result_;
};

}  // namespace

std::unique_ptr<Backend> span_border(std::unique_ptr<Backend> inner) {
  return std::make_unique<SpanBorder>(std::move(inner));
}

}  // namespace steadfast::planted
