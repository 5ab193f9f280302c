// Mutated GGUF and safetensors files: every one is refused with a sentence, or keeps the readers' promises.
#include <gtest/gtest.h>

#include "formats_probe.h"
#include "mutator.h"
#include "support/gguf_builder.h"
#include "support/safetensors_builder.h"

namespace steadfast::test {
namespace {

constexpr int kFiles = 400'000;  // a seed

std::vector<Bytes> gguf_corpus() {
  Bytes nested;  // {{1}, {2, 3}}
  append(nested, std::uint32_t{9});
  append(nested, std::uint64_t{2});
  for (const std::uint64_t count : {1, 2}) {
    append(nested, std::uint32_t{4});
    append(nested, count);
    for (std::uint64_t i = 0; i < count; ++i) append(nested, static_cast<std::uint32_t>(i));
  }
  const std::vector<float> ones(128, 1.0f);
  GgufBuilder all_kinds;
  all_kinds.add_kv("u8", std::uint8_t{1}).add_kv("i16", std::int16_t{-1}).add_kv("f64", 0.5).add_kv("yes", true);
  all_kinds.add_kv("name", "a model")
      .add_kv("tokens", std::vector<std::string>{"a", "bc", ""})
      .add_raw_kv("nest", 9, nested);
  GgufBuilder tensors;
  tensors.set_alignment(64).add_tensor("a.weight", DType::kF32, {2, 4}, std::vector<float>(8, 1.0f));
  tensors.add_tensor("b.weight", DType::kQ4_0, {2, 64}, ones).add_tensor("c.weight", DType::kQ4_1, {4, 32}, ones);
  tensors.add_tensor("d.weight", DType::kQ8_0, {128}, ones)
      .add_tensor("e", DType::kBF16, {2, 2, 2, 2}, std::vector<float>(16));
  GgufBuilder both = all_kinds;
  both.add_tensor("x", DType::kF16, {3}, std::vector<float>(3))
      .add_tensor("y", DType::kF32, {1}, std::vector<float>(1));
  return {all_kinds.build(), tensors.build(), both.build()};
}

std::vector<Bytes> safetensors_corpus() {
  SafetensorsBuilder plain;
  plain.add_tensor("a.weight", DType::kF32, {2, 4}, std::vector<float>(8)).add_tensor("b", DType::kU8, {0, 3}, Bytes());
  SafetensorsBuilder many;
  many.add_metadata("format", "pt").add_metadata("caf\xC3\xA9", "\n");
  for (int i = 0; i < 4; ++i) many.add_tensor("t" + std::to_string(i), DType::kBF16, {i + 1, 2}, Bytes(4u * (i + 1)));
  return {plain.build(), many.build(), safetensors_bytes("{}  ", {}),
          safetensors_bytes(R"({"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})", Bytes(16))};
}

class FormatsFuzz : public testing::TestWithParam<int> {
 protected:
  void run(const std::vector<Bytes>& corpus, bool (*probe)(std::span<const std::byte>)) {
    for (const Bytes& file : corpus) ASSERT_TRUE(probe(file)) << "the corpus is valid";
    Mutator mutator(static_cast<std::uint64_t>(GetParam()));
    int accepted = 0;
    for (int i = 0; i < kFiles; ++i) accepted += probe(mutator.next(corpus)) ? 1 : 0;
    EXPECT_GT(accepted, kFiles / 100) << "some damage falls where nothing is checked";
    EXPECT_LT(accepted, kFiles) << "some damage is found";
  }
};

TEST_P(FormatsFuzz, Gguf) { run(gguf_corpus(), probe_gguf); }
TEST_P(FormatsFuzz, Safetensors) { run(safetensors_corpus(), probe_safetensors); }

INSTANTIATE_TEST_SUITE_P(Seeds, FormatsFuzz, testing::Range(1, 6));

}  // namespace
}  // namespace steadfast::test
