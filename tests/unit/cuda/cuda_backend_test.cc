// The CUDA backend's memory, small ops and errors. The ops beside the CPU's in float32, within the roundings of each.
#include "backend/cuda/cuda_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "ops/delta.h"
#include "ops/elementwise.h"
#include "ops/norm.h"

namespace steadfast {
namespace {

class CudaBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_devices() == 0) GTEST_SKIP() << "no NVIDIA card here";
    auto card = make_cuda_backend({});
    ASSERT_TRUE(card) << card.message();
    card_ = std::move(*card);
    cpu_ = std::move(make_cpu_backend({1, Act::kF32, ""})).value();
  }

  // A matrix on both backends with the same random rows.
  struct Both {
    std::unique_ptr<DeviceMemory> card, cpu;
    Matrix on_card, on_cpu;
  };
  Both both(int rows, int width, float spread = 1) {
    Both made;
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
    made.card = std::move(card_->allocate(count * 4)).value();
    made.cpu = std::move(cpu_->allocate(count * 4)).value();
    made.on_card = Matrix(static_cast<float*>(made.card->data()), rows, width);
    made.on_cpu = Matrix(static_cast<float*>(made.cpu->data()), rows, width);
    std::normal_distribution<float> normal(0, spread);
    for (std::size_t i = 0; i < count; ++i) made.on_cpu.data[i] = normal(dice_);
    EXPECT_TRUE(card_->upload(made.on_card.data, made.on_cpu.data, count * 4));
    return made;
  }

  // Largest relative difference, in units of float32's roundoff.
  double ulps(const Both& m) {
    const auto count = static_cast<std::size_t>(m.on_cpu.rows) * static_cast<std::size_t>(m.on_cpu.width);
    std::vector<float> got(count);
    const Status status = card_->download(got.data(), m.on_card.data, count * 4);
    EXPECT_TRUE(status) << status.message();
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double want = m.on_cpu.data[i], distance = std::abs(static_cast<double>(got[i]) - want);
      worst = std::max(worst, distance / std::max(std::abs(want), 1e-30) / 0x1p-24);
    }
    return worst;
  }

  std::unique_ptr<Backend> card_, cpu_;
  std::mt19937 dice_{7};
};

TEST_F(CudaBackendTest, MemoryIsZeroedAndCopiesComeBack) {
  const std::size_t bytes = (std::size_t{9} << 20) + 5;  // several pieces of the staging memory
  auto memory = card_->allocate(bytes);
  ASSERT_TRUE(memory) << memory.message();
  std::vector<unsigned char> host(bytes, 1), sent(bytes);
  ASSERT_TRUE(card_->download(host.data(), (*memory)->data(), bytes));
  EXPECT_EQ(host, std::vector<unsigned char>(bytes, 0));
  for (std::size_t i = 0; i < bytes; ++i) sent[i] = static_cast<unsigned char>(i * 31 + i / 255);
  ASSERT_TRUE(card_->upload((*memory)->data(), sent.data(), bytes));
  ASSERT_TRUE(card_->download(host.data(), (*memory)->data(), bytes));
  EXPECT_EQ(host, sent);
}

TEST_F(CudaBackendTest, MoreMemoryThanTheCardHasIsRefused) {
  const auto memory = card_->allocate(std::size_t{1} << 50);
  ASSERT_FALSE(memory);
  EXPECT_NE(memory.message().find("do not fit the card"), std::string::npos) << memory.message();
  EXPECT_TRUE(card_->finish());
}

TEST_F(CudaBackendTest, Norms) {
  for (const int width : {16, 100, 5120}) {
    const Both x = both(3, width), w = both(1, width), y = both(3, width);
    for (auto* backend : {card_.get(), cpu_.get()}) {
      const bool card = backend == card_.get();
      ops::rms_norm(*backend, card ? x.on_card : x.on_cpu, card ? w.on_card.data : w.on_cpu.data, 1e-6f,
                    card ? y.on_card : y.on_cpu);
    }
    EXPECT_LE(ulps(y), width / 32 + 12) << width;
  }
  const Both x = both(5, 6 * 64), gate = both(5, 6 * 64), w = both(1, 64);
  for (auto* backend : {card_.get(), cpu_.get()}) {
    const bool card = backend == card_.get();
    const float* weight = card ? w.on_card.data : w.on_cpu.data;
    ops::head_norm(*backend, card ? x.on_card : x.on_cpu, 6, 64, weight, 1e-6f);
    ops::gated_norm(*backend, card ? x.on_card : x.on_cpu, card ? gate.on_card : gate.on_cpu, 6, 64, weight, 1e-6f,
                    card ? x.on_card : x.on_cpu);
  }
  EXPECT_LE(ulps(x), 40);
}

TEST_F(CudaBackendTest, Products) {
  const Both a = both(7, 300, 8), b = both(7, 300);
  for (auto* backend : {card_.get(), cpu_.get()}) {
    const bool card = backend == card_.get();
    const Matrix &x = card ? a.on_card : a.on_cpu, &y = card ? b.on_card : b.on_cpu;
    ops::silu_mul(*backend, x, y, x);
    ops::sigmoid_mul(*backend, x, y, x);
  }
  EXPECT_LE(ulps(a), 24);
}

TEST_F(CudaBackendTest, RotationIsThatOfTheCpuToTheBit) {
  const Both x = both(4, 3 * 64), inverse = both(1, 16), cosine = both(4, 16), sine = both(4, 16);
  const std::vector<std::int32_t> positions = {0, 1, 4095, 262143};
  for (auto* backend : {card_.get(), cpu_.get()}) {
    const bool card = backend == card_.get();
    float* const c = card ? cosine.on_card.data : cosine.on_cpu.data;
    float* const s = card ? sine.on_card.data : sine.on_cpu.data;
    backend->rope_table(positions, card ? inverse.on_card.data : inverse.on_cpu.data, 16, 1.25f, c, s);
    backend->rope(card ? x.on_card : x.on_cpu, 3, 64, {c, s, 32});
  }
  EXPECT_EQ(ulps(cosine), 0);
  EXPECT_EQ(ulps(sine), 0);
  EXPECT_EQ(ulps(x), 0);
}

TEST_F(CudaBackendTest, RowsAreGatheredAndCopied) {
  const Both x = both(6, 50), y = both(2, 50);
  for (auto* backend : {card_.get(), cpu_.get()}) {
    const bool card = backend == card_.get();
    const std::vector<int> rows = {5, 2};
    ops::gather(*backend, card ? x.on_card : x.on_cpu, rows, card ? y.on_card : y.on_cpu);
    backend->copy_rows((card ? y.on_card : y.on_cpu).columns(0, 20), (card ? y.on_card : y.on_cpu).columns(30, 20));
  }
  EXPECT_EQ(ulps(y), 0);
}

TEST_F(CudaBackendTest, AFailedLaunchIsNamedOnceAndTheCardGoesOn) {
  const Both x = both(1, 64);
  card_->rms_norm(Matrix(x.on_card.data, 0, 64), x.on_card.data, 1e-6f, x.on_card);  // no rows: no grid
  const Status status = card_->finish();
  ASSERT_FALSE(status);
  EXPECT_NE(status.message().find("rms_norm, grid 0"), std::string::npos) << status.message();
  EXPECT_TRUE(card_->finish());
  EXPECT_EQ(ulps(x), 0);
}

// Attention multiplies what lies behind a stream's last position by zero: it has to be finite, whoever left it there.
TEST_F(CudaBackendTest, StoresNoValueThatIsNotFinite) {
  constexpr int kDim = 64, kPositions = 64;
  const float bad[] = {NAN, INFINITY, -INFINITY, 3.4e38f};
  Both rows = both(2, kDim);
  for (int i = 0; i < kDim; ++i) rows.on_cpu.data[kDim + i] = bad[i % 4];
  ASSERT_TRUE(card_->upload(rows.on_card.data, rows.on_cpu.data, 2 * kDim * sizeof(float)));
  std::vector<std::uint16_t> stored(kPositions * kDim);
  auto keys = std::move(card_->allocate(stored.size() * 2)).value(),
       values = std::move(card_->allocate(stored.size() * 2)).value();
  CacheView view;
  view.keys = keys->data();
  view.values = values->data();
  view.page_positions = kPositions;
  view.kv_heads = 1;
  view.dim = kDim;
  card_->store_kv(rows.on_card, rows.on_card, view, 0);
  ASSERT_TRUE(card_->download(stored.data(), values->data(), stored.size() * 2));
  int large = 0;
  for (const std::uint16_t value : stored) {
    EXPECT_NE(value & 0x7F80, 0x7F80);
    large += (value & 0x7FFF) == 0x7F7F;
  }
  EXPECT_EQ(large, kDim);  // the second row's
  ASSERT_TRUE(card_->download(stored.data(), keys->data(), stored.size() * 2));
  EXPECT_TRUE(std::any_of(stored.begin(), stored.end(), [](std::uint16_t key) { return (key & 0x7F80) == 0x7F80; }));
}

}  // namespace
}  // namespace steadfast
