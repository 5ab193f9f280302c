// Scales and biases are exact in their type, as those of files are.
#include "contract/random_weights.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace steadfast::contract {
namespace {

Result<DType> parse_type(const std::string& name) {
  if (name == "bf16") return DType::kBF16;
  if (name == "f16") return DType::kF16;
  if (name == "f32") return DType::kF32;
  return Status::error("type \"{}\": use bf16, f16 or f32", name);
}

Result<WeightForm> parse_weight(const std::string& text, int in) {
  const auto halves = split(text, ':');
  if (halves.size() != 2) return Status::error("weight \"{}\": write OUT:BITS/GROUP/SCALES or OUT:dense/TYPE", text);
  WeightForm form;
  auto out = parse_number(halves[0]);
  if (!out) return out.status();
  if (*out < 1 || *out > 1 << 20) return Status::error("weight \"{}\": 1 to {} features", text, 1 << 20);
  form.out = *out;
  auto parts = split(halves[1], '/');
  if (parts.back() == "sym" && parts.size() == 4) form.symmetric = true, parts.pop_back();
  if (parts.back() == "large" && parts.size() == 4) form.largest = 40, parts.pop_back();
  auto type = parse_type(parts.back());
  if (!type) return type.status();
  form.type = *type;
  if (parts.size() == 2 && parts[0] == "dense") return form;
  if (parts.size() != 3) return Status::error("weight \"{}\": write OUT:BITS/GROUP/SCALES or OUT:dense/TYPE", text);
  auto bits = parse_number(parts[0]), group = parse_number(parts[1]);
  if (!bits) return bits.status();
  if (!group) return group.status();
  if (*bits < 2 || *bits > 8 || *bits == 7) return Status::error("weight \"{}\": 2, 3, 4, 5, 6 or 8 bits", text);
  if (*group != 32 && *group != 64 && *group != 128) return Status::error("weight \"{}\": groups of 32, 64, 128", text);
  if (in % *group != 0) return Status::error("weight \"{}\": groups of {} do not divide {} inputs", text, *group, in);
  form.bits = *bits;
  form.group = *group;
  return form;
}

// A tensor in memory, for DenseReader.
class OneTensor : public TensorSource {
 public:
  const TensorView* find(std::string_view name) const override { return name == view.name ? &view : nullptr; }
  std::vector<std::string> names() const override { return {view.name}; }
  void release(const TensorView&) const override {}
  TensorView view;
  std::vector<std::byte> bytes;
};

std::uint16_t narrow(float x, DType type) { return type == DType::kF16 ? f32_to_f16(x) : f32_to_bf16(x); }

}  // namespace

Result<std::vector<WeightForm>> parse_weights(const std::string& text, int in) {
  std::vector<WeightForm> forms;
  for (const std::string& part : split(text, ',')) {
    auto form = parse_weight(part, in);
    if (!form) return form.status();
    forms.push_back(*form);
  }
  return forms;
}

double round_bf16(double x) {
  const float nearest = static_cast<float>(x);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  std::uint32_t kept = bits & 0xFFFF0000u;
  const double low = static_cast<double>(std::bit_cast<float>(kept));
  const double high = static_cast<double>(std::bit_cast<float>(kept + 0x10000u));
  const double down = std::fabs(x - low), up = std::fabs(high - x);
  if (up < down || (up == down && (kept >> 16 & 1) != 0)) kept += 0x10000u;
  return static_cast<double>(std::bit_cast<float>(kept));
}

double stored_bytes(const WeightForm& form, int in) {
  const double elements = static_cast<double>(form.out) * in;
  if (form.dense()) return elements * (form.type == DType::kF32 ? 4 : 2);
  return elements * form.bits / 8 + elements / form.group * 2 * (form.type == DType::kF32 ? 4 : 2);
}

RandomWeight::RandomWeight(const WeightForm& form, int in, std::uint64_t seed) : form_(form), seed_(mix(seed + 11)) {
  out_ = form.out, in_ = in, bits_ = form.bits, group_ = form.group, scale_dtype_ = form.type;
}

float RandomWeight::stored(float x) const {
  if (form_.type == DType::kF16) return f16_to_f32(f32_to_f16(x));
  return form_.type == DType::kBF16 ? bf16_to_f32(f32_to_bf16(x)) : x;
}

void RandomWeight::read(int row, std::uint8_t* codes, float* scales, float* biases) const {
  const unsigned mask = (1u << bits_) - 1;
  for (int k = 0; k < in_; k += 8) {
    const std::uint64_t word = mix(seed_ + static_cast<std::uint64_t>(row) * 1000003u + static_cast<std::uint64_t>(k));
    for (int i = 0; i < 8 && k + i < in_; ++i) codes[k + i] = static_cast<std::uint8_t>(word >> 8 * i & mask);
  }
  if (row == planted_row_) codes[planted_k_] ^= static_cast<std::uint8_t>(1u << (bits_ - 1));
  for (int g = 0; g < groups(); ++g) {
    const std::uint64_t key = seed_ * 31 + static_cast<std::uint64_t>(row) * 7919u + static_cast<std::uint64_t>(g);
    const float scale = stored(form_.largest / static_cast<float>(1 << bits_) * (1.25f + uniform(key) / 2));
    const float middle = static_cast<float>(mask) / 2 * (1 + uniform(key + 1) / 8);
    scales[g] = scale;
    biases[g] = form_.symmetric ? -scale * static_cast<float>(1 << (bits_ - 1)) : stored(-scale * middle);
  }
}

std::vector<float> RandomWeight::dense_row(int row) const {
  std::vector<float> values =
      random_floats(static_cast<std::size_t>(in_), form_.largest, seed_ + static_cast<std::uint64_t>(row) * 1000003u);
  for (float& value : values) value = stored(value);
  if (row == planted_row_) values[static_cast<std::size_t>(planted_k_)] *= -1;
  return values;
}

std::unique_ptr<Weight> RandomWeight::pack(Backend& backend) const {
  if (!form_.dense()) return need(backend.pack(*this, {}));
  OneTensor tensor;
  const std::size_t size = form_.type == DType::kF32 ? 4 : 2;
  tensor.bytes.resize(static_cast<std::size_t>(out_) * static_cast<std::size_t>(in_) * size);
  std::byte* to = tensor.bytes.data();
  for (int row = 0; row < out_; ++row)
    for (const float value : dense_row(row)) {
      const std::uint16_t half = narrow(value, form_.type);
      std::memcpy(to, size == 4 ? static_cast<const void*>(&value) : &half, size);
      to += size;
    }
  tensor.view = {"weight", form_.type, {out_, in_}, tensor.bytes};
  auto reader = need(DenseReader::open(tensor, tensor.view));
  return need(backend.pack(reader, {}));
}

std::vector<double> expanded(const RandomWeight& weight, int row, Arithmetic arithmetic) {
  const auto in = static_cast<std::size_t>(weight.in());
  const bool rounds = is_cuda(arithmetic) || arithmetic == Arithmetic::kCpuBF16;
  std::vector<double> weights(in);
  if (weight.form().dense()) {
    const auto stored = weight.dense_row(row);
    for (std::size_t k = 0; k < in; ++k)
      weights[k] = static_cast<double>(rounds ? bf16_to_f32(f32_to_bf16(stored[k])) : stored[k]);
    return weights;
  }
  std::vector<std::uint8_t> codes(in);
  std::vector<float> scales(static_cast<std::size_t>(weight.groups())), biases(scales.size());
  weight.read(row, codes.data(), scales.data(), biases.data());
  // CUDA expands bf16 scales in one rounding where they fit its form (`large` ones do not), all else through float32.
  const bool once = is_cuda(arithmetic) && weight.form().type == DType::kBF16 && weight.form().largest < 1;
  for (std::size_t k = 0; k < in; ++k) {
    const std::size_t g = k / static_cast<std::size_t>(weight.group());
    const double whole =
        std::fma(static_cast<double>(codes[k]), static_cast<double>(scales[g]), static_cast<double>(biases[g]));
    const float through = std::fma(static_cast<float>(codes[k]), scales[g], biases[g]);
    weights[k] = !rounds ? whole : once ? round_bf16(whole) : round_bf16(static_cast<double>(through));
  }
  return weights;
}

}  // namespace steadfast::contract
