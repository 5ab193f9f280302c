// The caches of the contract, read element by element.
#include "contract/kv_problem.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace steadfast::contract {

AttentionShape KvShape::attention() const { return {heads, kv_heads, dim, 1.0f / std::sqrt(static_cast<float>(dim))}; }

DType kv_dtype_of(const Case& of) {
  return of.is("kv", "fp8") ? DType::kF8E4M3 : of.is("kv", "bf16") ? DType::kBF16 : DType::kF32;
}

std::vector<Stream> make_streams(const KvShape& shape, const std::vector<std::pair<int, int>>& lengths, bool loud) {
  std::vector<Stream> streams;
  for (const auto& [positions, first] : lengths) {
    const std::uint64_t seed = streams.size() * 10 + 1;
    const auto kv = static_cast<std::size_t>(positions) * static_cast<std::size_t>(shape.kv_width());
    Stream one{
        positions, first, random_floats(kv, 1.5f, seed), random_floats(kv, 1, seed + 1),
        random_floats(static_cast<std::size_t>(positions - first) * static_cast<std::size_t>(shape.query_width()), 2,
                      seed + 2)};
    if (loud)
      for (std::size_t i = 0; i < kv; ++i)
        one.keys[i] *= static_cast<int>(i) / shape.kv_width() / 700 % 3 == 1 ? 40.0f : 1.0f;
    streams.push_back(std::move(one));
  }
  return streams;
}

Cache::Cache(Context& context, const KvShape& shape, int streams, int positions, int page, std::uint64_t seed)
    : shape_(shape),
      cuda_(is_cuda(context.arithmetic)),
      whole_(page == 0),
      page_(page == 0 ? (positions + 63) / 64 * 64 : page),
      pages_((positions + page_ - 1) / page_) {
  const auto all =
      static_cast<std::size_t>(streams) * static_cast<std::size_t>(pages_) * static_cast<std::size_t>(page_);
  const std::size_t bytes = all * static_cast<std::size_t>(shape.kv_width()) * element_bytes();
  const std::size_t scales = all * static_cast<std::size_t>(shape.kv_heads) * sizeof(float);
  for (auto* part : {&keys_, &values_}) *part = std::make_unique<Buffer>(context.backend, bytes, fill());
  for (auto* part : {&key_scales_, &value_scales_}) *part = std::make_unique<Buffer>(context.backend, scales, fill());
  tables_.resize(static_cast<std::size_t>(streams * pages_));
  std::iota(tables_.begin(), tables_.end(), 0);
  Dice dice(seed);
  for (int i = static_cast<int>(tables_.size()) - 1; i > 0 && !whole_; --i)
    std::swap(tables_[static_cast<std::size_t>(i)], tables_[static_cast<std::size_t>(dice.below(i + 1))]);
}

CacheView Cache::view(int stream) const {
  CacheView view;
  view.keys = keys_->data();
  view.values = values_->data();
  view.key_scales = key_scales_->floats();
  view.value_scales = value_scales_->floats();
  view.pages = tables_.data() + stream * pages_;
  view.page_shift = whole_ ? 30 : std::countr_zero(static_cast<unsigned>(page_));
  view.page_positions = page_;
  view.kv_heads = shape_.kv_heads;
  view.dim = shape_.dim;
  view.dtype = shape_.dtype;
  return view;
}

bool Cache::intact() const {
  return keys_->intact() && values_->intact() && key_scales_->intact() && value_scales_->intact();
}

std::size_t Cache::element_at(int page, int head, int within, int d, bool keys) const {
  const int dim = shape_.dim;
  const std::size_t part =
      (static_cast<std::size_t>(page) * static_cast<std::size_t>(shape_.kv_heads) + static_cast<std::size_t>(head)) *
      static_cast<std::size_t>(page_) * static_cast<std::size_t>(dim);
  int at = 0;
  if (!cuda_) {  // keys: blocks of 16 positions as [dim][16]; values: [position][dim]
    at = keys ? within / 16 * 16 * dim + d * 16 + within % 16 : within * dim + d;
    return (part + static_cast<std::size_t>(at)) * element_bytes();
  }
  // Tiles of 64 positions (or the page), blocks of 64 dims, 16-byte pieces swapped by position in full blocks.
  const int tile = std::min(page_, 64), block = d / 64, width = std::min(64, dim - block * 64), in = d % 64;
  const int row = within % tile;
  const int base = within / tile * tile * dim + block * tile * 64 + row * width;
  if (shape_.fp8()) {
    const int piece = width == 64 ? in / 16 ^ row / 2 % 4 : in / 16;
    at = base + piece * 16 + in % 8 * 2 + in % 16 / 8;
  } else {
    const int piece = width == 64 ? in / 8 ^ row % 8 : in / 8;
    at = base + piece * 8 + in % 8;
  }
  return (part + static_cast<std::size_t>(at)) * element_bytes();
}

void Cache::copy_position(const std::vector<std::byte>& from, int stream, int position, bool keys,
                          std::byte* to) const {
  const int page = tables_[static_cast<std::size_t>(stream * pages_ + position / page_)];
  for (int head = 0; head < shape_.kv_heads; ++head)
    for (int d = 0; d < shape_.dim; ++d, to += element_bytes())
      std::memcpy(to, &from[element_at(page, head, position % page_, d, keys)], element_bytes());
}

std::size_t Cache::position_bytes() const {
  const std::size_t scales = shape_.fp8() ? static_cast<std::size_t>(shape_.kv_heads) * sizeof(float) : 0;
  return 2 * (static_cast<std::size_t>(shape_.kv_width()) * element_bytes() + scales);
}

std::vector<std::byte> Cache::contents(int stream, int positions) const {
  const auto keys = keys_->download(), values = values_->download();
  const auto key_scales = key_scales_->download(), value_scales = value_scales_->download();
  const std::size_t side = position_bytes() / 2, row = static_cast<std::size_t>(shape_.kv_width()) * element_bytes();
  std::vector<std::byte> all(static_cast<std::size_t>(positions) * 2 * side);
  std::byte* to = all.data();
  for (int position = 0; position < positions; ++position) {
    const int page = tables_[static_cast<std::size_t>(stream * pages_ + position / page_)];
    for (const bool is_key : {true, false}) {
      copy_position(is_key ? keys : values, stream, position, is_key, to);
      const auto& scales = is_key ? key_scales : value_scales;
      for (int head = 0; head < shape_.kv_heads && shape_.fp8(); ++head) {
        const auto at = (static_cast<std::size_t>(page) * static_cast<std::size_t>(shape_.kv_heads) +
                         static_cast<std::size_t>(head)) *
                            static_cast<std::size_t>(page_) +
                        static_cast<std::size_t>(position % page_);
        std::memcpy(to + row + static_cast<std::size_t>(head) * sizeof(float), &scales[at * sizeof(float)],
                    sizeof(float));
      }
      to += side;
    }
  }
  return all;
}

bool Cache::poisoned_from(int stream, int from) const {
  const auto keys = keys_->download(), values = values_->download();
  std::vector<std::byte> row(static_cast<std::size_t>(shape_.kv_width()) * element_bytes());
  for (int position = from; position < pages_ * page_; ++position)
    for (const bool is_key : {true, false}) {
      copy_position(is_key ? keys : values, stream, position, is_key, row.data());
      if (std::any_of(row.begin(), row.end(), [this](std::byte byte) { return byte != std::byte{fill()}; }))
        return false;
    }
  return true;
}

void Cache::plant(int stream, int to, int from) {
  const auto page_of = [&](int position) {
    return tables_[static_cast<std::size_t>(stream * pages_ + position / page_)];
  };
  for (const bool is_key : {true, false}) {
    Buffer& buffer = is_key ? *keys_ : *values_;
    auto bytes = buffer.download();
    for (int head = 0; head < shape_.kv_heads; ++head)
      for (int d = 0; d < shape_.dim; ++d)
        std::memcpy(&bytes[element_at(page_of(to), head, to % page_, d, is_key)],
                    &bytes[element_at(page_of(from), head, from % page_, d, is_key)], element_bytes());
    buffer.upload(bytes.data(), bytes.size());
  }
}

void append_rounded(const KvShape& shape, const float* key, const float* value, std::vector<std::byte>& to) {
  const auto append = [&to](const auto& x) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&x);
    to.insert(to.end(), bytes, bytes + sizeof x);
  };
  for (const float* row : {key, value}) {
    std::vector<float> scales;
    for (int head = 0; head < shape.kv_heads; ++head) {
      const float* x = row + head * shape.dim;
      float largest = 0;
      for (int d = 0; d < shape.dim; ++d) largest = std::max(largest, std::fabs(x[d]));
      // The least power of two that keeps the largest magnitude at or below 448; 1 for zeros.
      int exponent = 0;
      while (largest > 0 && std::ldexp(448.0, exponent) < static_cast<double>(largest)) ++exponent;
      while (largest > 0 && std::ldexp(448.0, exponent - 1) >= static_cast<double>(largest)) --exponent;
      scales.push_back(std::ldexp(1.0f, exponent));
      for (int d = 0; d < shape.dim; ++d) {
        if (shape.dtype == DType::kF32) append(x[d]);
        if (shape.dtype == DType::kBF16) append(f32_to_bf16(x[d]));
        if (shape.fp8()) append(f32_to_f8e4m3(x[d] / scales.back()));
      }
    }
    for (const float scale : scales)
      if (shape.fp8()) append(scale);
  }
}

std::vector<double> stored_values(const KvShape& shape, const float* row) {
  std::vector<double> values;
  std::vector<std::byte> bytes;
  if (shape.fp8()) append_rounded(shape, row, row, bytes);
  const auto width = static_cast<std::size_t>(shape.kv_width());
  for (std::size_t i = 0; i < width; ++i) {
    if (shape.dtype == DType::kF32) values.push_back(static_cast<double>(row[i]));
    if (shape.dtype == DType::kBF16) values.push_back(static_cast<double>(bf16_to_f32(f32_to_bf16(row[i]))));
    if (!shape.fp8()) continue;
    float scale = 0;
    std::memcpy(&scale, &bytes[width + i / static_cast<std::size_t>(shape.dim) * sizeof(float)], sizeof scale);
    values.push_back(static_cast<double>(f8e4m3_to_f32(static_cast<std::uint8_t>(bytes[i]))) *
                     static_cast<double>(scale));
  }
  return values;
}

void store(Backend& backend, const KvShape& shape, const std::vector<Stream>& streams, Cache& cache,
           const std::vector<Cut>& cuts) {
  const int width = shape.kv_width();
  std::unique_ptr<InputRows> keys, values;
  int held = -1;
  for (const Cut& cut : cuts) {
    if (cut.stream != held) {
      const Stream& stream = streams[static_cast<std::size_t>(cut.stream)];
      keys = std::make_unique<InputRows>(backend, stream.keys, width);
      values = std::make_unique<InputRows>(backend, stream.values, width);
      held = cut.stream;
    }
    backend.store_kv(keys->matrix(cut.first, cut.rows), values->matrix(cut.first, cut.rows), cache.view(cut.stream),
                     cut.first);
    settle(backend, keys->matrix(0, 1).data);
  }
}

std::vector<float> attend(Backend& backend, const KvShape& shape, const std::vector<Stream>& streams, Cache& cache,
                          const std::vector<Cut>& cuts, bool& damage) {
  std::vector<Piece> pieces;
  std::vector<CacheView> views;
  std::vector<float> queries;
  int rows = 0;
  for (const Cut& cut : cuts) {
    const Stream& stream = streams[static_cast<std::size_t>(cut.stream)];
    const auto from =
        stream.queries.begin() + static_cast<std::ptrdiff_t>(cut.first - stream.first_query) * shape.query_width();
    queries.insert(queries.end(), from, from + static_cast<std::ptrdiff_t>(cut.rows) * shape.query_width());
    pieces.push_back({nullptr, rows, cut.rows, cut.first});
    views.push_back(cache.view(cut.stream));
    rows += cut.rows;
  }
  const InputRows in(backend, std::move(queries), shape.query_width());
  OutputRows out(backend, rows, shape.query_width());
  out.poison(rows);
  backend.attention(in.matrix(0, rows), shape.attention(), pieces, views, out.matrix(rows));
  settle(backend, in.matrix(0, 1).data);
  auto result = out.take(rows, damage);
  if (!in.intact() || !cache.intact()) damage = true;
  return result;
}

std::vector<Cut> cut_stream(int stream, int first, int positions, int rows, std::uint64_t seed) {
  std::vector<Cut> cuts;
  Dice dice(seed);
  while (first < positions) {
    const int wanted = rows > 0 ? rows : dice.below(3) == 0 ? 1 : 1 + dice.below(90);
    cuts.push_back({stream, first, std::min(wanted, positions - first)});
    first += cuts.back().rows;
  }
  return cuts;
}

}  // namespace steadfast::contract
