// Values pass through unchanged where they can: whole tensors without a copy, rows as bytes, codes as codes.
#include "convert/emit.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "base/exact_math.h"
#include "convert/quantise.h"
#include "quant/affine.h"
#include "quant/dense.h"

namespace steadfast {
namespace {

constexpr DType kBlockScales = DType::kF16;  // of GGUF's blocks
constexpr float kMostF16 = 65504.0f;

// The float32 nearest to ln(-a), or a neighbour that gives `a` back exactly as the loader computes it.
float log_of_negative(float a) {
  const auto back = [](float value) { return -static_cast<float>(exact_exp(static_cast<double>(value))); };
  const auto nearest = static_cast<float>(exact_log(-static_cast<double>(a)));
  float below = nearest, above = nearest;
  for (int step = 0; step < 4; ++step) {
    if (back(below) == a) return below;
    if (back(above) == a) return above;
    below = std::nextafter(below, -HUGE_VALF);
    above = std::nextafter(above, HUGE_VALF);
  }
  return nearest;
}

// Blocks of `block` elements of `in`, in the order of `columns`.
template <typename T>
void reorder(std::vector<T>& row, const std::vector<int>& columns, std::size_t block) {
  if (columns.empty() || block == 0) return;
  std::vector<T> ordered;
  ordered.reserve(row.size());
  for (const int column : columns) {
    const auto first = row.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(column) * block);
    ordered.insert(ordered.end(), first, first + static_cast<std::ptrdiff_t>(block));
  }
  row.swap(ordered);
}

}  // namespace

class Emitter {
 public:
  Emitter(const TensorSource& source, const TensorJob& job) : source_(source), job_(job) {
    const auto& shape = job.source->shape;
    // A vector whose elements are put in order is a matrix of one column.
    const bool by_element = shape.size() == 1 && !job.rows.empty();
    width_ = by_element ? 1 : shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
    rows_ = static_cast<std::size_t>(job.source->elements()) / width_;
  }

  Result<Emitted> emit() {
    auto status = job_.form ? (job_.kept ? keep() : quantise()) : dense();
    if (!status) return status;
    return std::move(out_);
  }

 private:
  std::size_t source_row(std::size_t row) const {
    return job_.rows.empty() ? row : static_cast<std::size_t>(job_.rows[row]);
  }

  std::span<std::byte> add_piece(std::size_t bytes) {
    out_.owned_.emplace_back(bytes);
    out_.pieces_.emplace_back(out_.owned_.back());
    return out_.owned_.back();
  }

  Status dense() {
    const bool as_bytes = job_.change == Change::kNone && job_.columns.empty();
    if (as_bytes && job_.rows.empty()) {
      out_.pieces_.push_back(job_.source->data);
      return Status::ok();
    }
    std::byte* to = add_piece(job_.source->data.size()).data();
    const std::size_t row_bytes = job_.source->data.size() / rows_;
    std::vector<float> values(width_);
    for (std::size_t row = 0; row < rows_; ++row) {
      if (as_bytes) {
        std::memcpy(to, job_.source->data.data() + source_row(row) * row_bytes, row_bytes);
        to += row_bytes;
        continue;
      }
      read_floats(source_row(row), values.data());
      reorder(values, job_.columns, static_cast<std::size_t>(job_.column_block));
      for (float& value : values)
        if (auto status = change(value); !status) return status;
      to = put_floats(job_.source->dtype, values.data(), width_, to);
    }
    return Status::ok();
  }

  Status change(float& value) const {
    if (job_.change == Change::kAddOne) value = 1.0f + value;
    if (job_.change != Change::kLogOfNegative) return Status::ok();
    if (!(value < 0) || std::isinf(value))
      return Status::error("{}: the file's {} is not -e^A_log; is the file whole?", job_.module, value);
    value = log_of_negative(value);
    return Status::ok();
  }

  void read_floats(std::size_t row, float* values) const {
    const std::size_t size = info(job_.source->dtype).block_bytes;
    const std::byte* from = job_.source->data.data() + row * width_ * size;
    if (size == 4) {
      std::memcpy(values, from, width_ * 4);
      return;
    }
    for (std::size_t i = 0; i < width_; ++i, from += 2) {
      std::uint16_t bits;
      std::memcpy(&bits, from, 2);
      values[i] = job_.source->dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    }
  }

  struct Row {
    std::vector<std::uint8_t> codes;
    std::vector<float> scales, biases;
  };
  Row make_row() const {
    const std::size_t groups = width_ / static_cast<std::size_t>(job_.form->group);
    return {std::vector<std::uint8_t>(width_), std::vector<float>(groups), std::vector<float>(groups)};
  }

  void begin_quantised(DType scales) {
    scale_dtype_ = scales;
    const std::size_t groups = rows_ * width_ / static_cast<std::size_t>(job_.form->group);
    out_.owned_.reserve(3);
    words_ = add_piece(rows_ * width_ * static_cast<std::size_t>(job_.form->bits) / 8).data();
    scales_ = add_piece(groups * info(scales).block_bytes).data();
    biases_ = add_piece(groups * info(scales).block_bytes).data();
  }

  void put(const Row& row) {
    pack_codes(row.codes.data(), static_cast<int>(width_), job_.form->bits, words_);
    words_ += width_ * static_cast<std::size_t>(job_.form->bits) / 8;
    scales_ = put_floats(scale_dtype_, row.scales.data(), row.scales.size(), scales_);
    biases_ = put_floats(scale_dtype_, row.biases.data(), row.biases.size(), biases_);
  }

  Status keep() {
    auto reader = read_gguf_blocks(source_, *job_.source);
    if (!reader) return reader.status();
    begin_quantised(kBlockScales);
    const auto group = static_cast<std::size_t>(job_.form->group);
    const std::size_t block = static_cast<std::size_t>(job_.column_block);
    for (std::size_t r = 0; r < rows_; ++r) {
      Row row = make_row();
      (*reader)->read(static_cast<int>(source_row(r)), row.codes.data(), row.scales.data(), row.biases.data());
      for (const float bias : row.biases)
        if (std::isfinite(bias) && f16_to_f32(f32_to_f16(bias)) != bias)
          return Status::error(
              "{}: a bias of {} is beyond F16, so {} cannot be kept exactly; use the .gguf file itself", job_.module,
              bias, info(job_.source->dtype).name);
      reorder(row.codes, job_.columns, block);
      reorder(row.scales, job_.columns, block / group);
      reorder(row.biases, job_.columns, block / group);
      put(row);
    }
    return Status::ok();
  }

  Status quantise() {
    std::unique_ptr<AffineReader> blocks;
    if (is_affine_block(job_.source->dtype)) {
      auto reader = read_gguf_blocks(source_, *job_.source);
      if (!reader) return reader.status();
      blocks = std::move(*reader);
    }
    begin_quantised(blocks ? kBlockScales : job_.source->dtype);
    std::vector<float> values(width_);
    Row row = make_row();
    for (std::size_t r = 0; r < rows_; ++r) {
      if (blocks)
        expand_row(*blocks, static_cast<int>(source_row(r)), values.data());
      else
        read_floats(source_row(r), values.data());
      for (const float value : values)
        if (!(std::abs(value) <= (blocks ? kMostF16 : std::numeric_limits<float>::max())))
          return Status::error("{}: row {} holds {}, which cannot be quantised; is the checkpoint whole?", job_.module,
                               r, value);
      reorder(values, job_.columns, static_cast<std::size_t>(job_.column_block));
      quantise_row(values.data(), static_cast<int>(width_), job_.form->bits, job_.form->group, row.codes.data(),
                   row.scales.data(), row.biases.data());
      put(row);
    }
    return Status::ok();
  }

  const TensorSource& source_;
  const TensorJob& job_;
  std::size_t rows_ = 0, width_ = 0;
  Emitted out_;
  DType scale_dtype_ = DType::kF16;
  std::byte *words_ = nullptr, *scales_ = nullptr, *biases_ = nullptr;
};

Result<Emitted> Emitted::make(const TensorSource& source, const TensorJob& job) { return Emitter(source, job).emit(); }

std::vector<TensorView> outputs_of(const TensorJob& job) {
  if (!job.form) return {{job.name(), job.source->dtype, job.shape, {}}};
  const bool block = is_affine_block(job.source->dtype);
  const DType scales = block ? kBlockScales : job.source->dtype;
  const std::int64_t out = job.shape[0], in = job.shape[1];
  const std::vector<std::int64_t> words = {out, in * job.form->bits / 32}, groups = {out, in / job.form->group};
  return {{job.name(), DType::kU32, words, {}},
          {job.module + ".scales", scales, groups, {}},
          {job.module + ".biases", scales, groups, {}}};
}

}  // namespace steadfast
