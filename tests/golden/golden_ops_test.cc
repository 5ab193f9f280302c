// The CPU backend's recurrent ops against the stored float64 values (tools/goldens: ops) within bounds that follow from
// the roundings of their steps, on every instruction set of this machine; and the worked examples of model-spec 1.6.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "delta_bound.h"
#include "golden_ops.h"
#include "ops/delta.h"

namespace steadfast::test {
namespace {

class GoldenOps : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto made = make_cpu_backend({2, Act::kF32, GetParam()});
    if (!made) GTEST_SKIP() << made.message();
    backend_ = std::move(*made);
  }
  Backend& backend() { return *backend_; }

 private:
  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Cpu, GoldenOps, testing::Values("scalar", "avx2", "avx512"),
                         [](const auto& one) { return std::string(one.param); });

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Runs the rows in pieces of `step` rows and moves `state` on.
std::vector<float> convolve(Backend& backend, const DeltaShape& shape, std::vector<float> x,
                            const std::vector<float>& taps_first, std::vector<float>& state, int step) {
  const int width = shape.conv_width(), rows = static_cast<int>(x.size()) / width;
  std::vector<float> y(x.size());
  DeltaWeights weights;
  weights.conv = taps_first.data();
  for (int first = 0; first < rows; first += step) {
    const int here = std::min(step, rows - first);
    const Piece piece{nullptr, 0, here, first};
    const DeltaState at{state.data(), nullptr};
    const auto offset = static_cast<std::ptrdiff_t>(first) * width;
    ops::delta_conv(backend, Matrix(x.data() + offset, here, width), shape, weights, {&piece, 1}, {&at, 1},
                    Matrix(y.data() + offset, here, width));
  }
  return y;
}

TEST_P(GoldenOps, ConvolutionFollowsFloat64AndKeepsItsRows) {
  const auto tensors = read_ops("conv");
  for (const char* name : {"cold", "warm", "one", "short", "three_taps"}) {
    const auto get = [&](const char* part) { return tensors.at(name + std::string(".") + part); };
    const StoredTensor x = get("x"), weight = get("weight");
    const int width = static_cast<int>(weight.shape[0]), taps = static_cast<int>(weight.shape[1]),
              rows = static_cast<int>(x.shape[0]);
    const DeltaShape shape{1, 1, width / 4, width / 2, taps};
    ASSERT_EQ(shape.conv_width(), width);
    const auto by_channel = weight.floats(), inputs = x.floats(), before = get("state").floats();
    std::vector<float> by_tap(by_channel.size());
    for (int c = 0; c < width; ++c)
      for (int j = 0; j < taps; ++j)
        by_tap[static_cast<std::size_t>(j * width + c)] = by_channel[static_cast<std::size_t>(c * taps + j)];
    auto state = before, state_in_pieces = before;
    const auto y = convolve(backend(), shape, inputs, by_tap, state, rows);
    EXPECT_EQ(y, convolve(backend(), shape, inputs, by_tap, state_in_pieces, 1)) << name;
    EXPECT_EQ(state, get("state_after").floats()) << name;
    EXPECT_EQ(state_in_pieces, state) << name;
    const auto exact = get("y.f64").doubles();
    auto history = before;
    history.insert(history.end(), inputs.begin(), inputs.end());
    for (std::size_t i = 0; i < y.size(); ++i) {
      double size = 0;
      for (int j = 0; j < taps; ++j)
        size += std::fabs(
            static_cast<double>(history[i + static_cast<std::size_t>(j * width)]) *
            static_cast<double>(by_tap[static_cast<std::size_t>(j * width) + i % static_cast<std::size_t>(width)]));
      // A chain of fused multiply-adds, then silu, whose slope is below 1.1 and which rounds eight times.
      ASSERT_NEAR(y[i], exact[i], 1.1 * gamma_n(taps) * size + gamma_n(8) * std::fabs(exact[i])) << name << " " << i;
    }
  }
}

TEST_P(GoldenOps, ConvolutionOfTheWorkedExample) {
  const DeltaShape shape{0, 1, 0, 1, 4};
  std::vector<float> state(3);
  const auto y = convolve(backend(), shape, {1, 2, 3}, {.1f, .2f, .3f, .4f}, state, 3);
  EXPECT_NEAR(y[0], 0.239475, 1e-6);
  EXPECT_NEAR(y[1], 0.825286, 1e-6);
  EXPECT_NEAR(y[2], 1.761594, 1e-6);
  EXPECT_EQ(state, (std::vector<float>{1, 2, 3}));
}

TEST_P(GoldenOps, RecurrenceFollowsFloat64) {
  const auto tensors = read_ops("delta");
  for (const char* name : {"equal", "grouped", "odd", "real", "one"}) {
    const DeltaCase c(tensors, name);
    DeltaRun run(c), pieces(c);
    run.step(backend(), c.rows);
    pieces.step(backend(), 5);
    EXPECT_EQ(run.out, pieces.out) << name;
    EXPECT_EQ(run.state, pieces.state) << name;
    const DeltaBound bound = bound_of(c);
    const auto out = tensors.at(name + std::string(".o.f64")).doubles(),
               after = tensors.at(name + std::string(".state_after.f64")).doubles();
    double ratio = 0, size = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(run.out[i], out[i], bound.out[i]) << name << " value " << i;
      ratio = std::max(ratio, bound.out[i]);
      size = std::max(size, std::fabs(out[i]));
    }
    EXPECT_LT(ratio, 2e-4 * size) << name << ": the bound says nothing";
    const auto state = c.unpadded(run.state);
    for (std::size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(state[i], after[i], bound.state[i]) << name << " state " << i;
  }
}

// Reversed heads of the keys are seen by the same comparison.
TEST_P(GoldenOps, WrongKeysAreOutsideTheBound) {
  const auto tensors = read_ops("delta");
  DeltaCase c(tensors, "grouped");
  const DeltaBound bound = bound_of(c);
  std::reverse(c.k.begin(), c.k.end());
  DeltaRun run(c);
  run.step(backend(), c.rows);
  const auto out = tensors.at("grouped.o.f64").doubles();
  std::size_t outside = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    outside += std::fabs(static_cast<double>(run.out[i]) - out[i]) > bound.out[i];
  EXPECT_GT(outside, out.size() / 2);
}

TEST_P(GoldenOps, RecurrenceOfTheWorkedExample) {
  // Two key dims in heads of 16, whose queries are scaled by 16^-0.5; the vectors are of length one already.
  DeltaCase c;
  c.shape = {1, 1, 16, 2, 4};
  c.rows = 3;
  c.q.resize(48), c.k.resize(48);
  const float queries[3][2] = {{1, 0}, {0, 1}, {.6f, .8f}}, keys[3][2] = {{.6f, .8f}, {.8f, -.6f}, {1, 0}};
  for (std::size_t t = 0; t < 3; ++t)
    for (std::size_t i = 0; i < 2; ++i) c.q[16 * t + i] = queries[t][i], c.k[16 * t + i] = keys[t][i];
  c.v = {1, 2, 3, -1, 0, 1};
  c.beta = {.5f, .25f, .8f};
  for (const double decay : {.9, .5, .8}) c.g.push_back(static_cast<float>(std::log(decay)));
  c.state.assign(16 * 2, 0.0f);
  DeltaRun run(c);
  run.step(backend(), 1);
  const double out[] = {.3, .6, -.25, .55, -.088, .8416}, after[] = {.12, .816, -.2, .44};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(4 * run.out[i], out[i], 3e-6);
  const auto state = c.unpadded(run.state);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(state[i], after[i], 3e-6);
}

// One row, one value dim, keys along the first dim: with beta 0 and S = 1 the state becomes the decay; with S = 0 and
// v = 1 it becomes beta.
struct Gates {
  std::vector<float> decay, beta;
};

Gates gates(Backend& backend, std::vector<float> a, std::vector<float> b, const std::vector<float>& a_weight,
            const std::vector<float>& dt_bias) {
  const int heads = static_cast<int>(a.size());
  const DeltaShape shape{1, heads, 16, 1, 4};
  Gates result;
  for (const bool of_decay : {true, false}) {
    std::vector<float> mixed(static_cast<std::size_t>(shape.conv_width())), out(a.size()), state(shape.state_floats());
    mixed[0] = mixed[16] = 1e6f;  // so long that the norm's epsilon does not show
    auto used = b;
    if (of_decay) {
      used.assign(b.size(), -200.0f);
      for (std::size_t h = 0; h < a.size(); ++h) state[h * 16 * 16] = 1;
    } else {
      for (std::size_t h = 0; h < a.size(); ++h) mixed[32 + h] = 1;
    }
    DeltaWeights weights;
    weights.a = a_weight.data();
    weights.dt_bias = dt_bias.data();
    const Piece piece{nullptr, 0, 1, 0};
    const DeltaState at{nullptr, state.data()};
    ops::delta_rule(backend, Matrix(mixed.data(), 1, shape.conv_width()), Matrix(a.data(), 1, heads),
                    Matrix(used.data(), 1, heads), shape, weights, {&piece, 1}, {&at, 1}, Matrix(out.data(), 1, heads));
    for (std::size_t h = 0; h < a.size(); ++h) (of_decay ? result.decay : result.beta).push_back(state[h * 16 * 16]);
  }
  return result;
}

TEST_P(GoldenOps, GatesFollowFloat64) {
  const auto tensors = read_ops("gates");
  const auto a = tensors.at("x.a").floats(), b = tensors.at("x.b").floats(), a_log = tensors.at("x.A_log").floats(),
             dt = tensors.at("x.dt_bias").floats();
  const auto g64 = tensors.at("x.g.f64").doubles(), beta64 = tensors.at("x.beta.f64").doubles();
  std::vector<float> weight;
  for (const float value : a_log) weight.push_back(-static_cast<float>(std::exp(static_cast<double>(value))));
  for (std::size_t row = 0; row < a.size() / 8; ++row) {
    const auto of_row = [row](const std::vector<float>& all) {
      return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(8 * row),
                                all.begin() + static_cast<std::ptrdiff_t>(8 * row + 8));
    };
    const Gates got = gates(backend(), of_row(a), of_row(b), weight, dt);
    for (std::size_t h = 0; h < 8; ++h) {
      const double g = g64[8 * row + h], beta = beta64[8 * row + h], decay = std::exp(g),
                   x = static_cast<double>(a[8 * row + h]) + static_cast<double>(dt[h]);
      // -e^A_log and a + dt_bias are rounded once each, the decay once.
      const double of_g =
          kUnit * (std::fabs(g) + std::fabs(static_cast<double>(weight[h])) * sigmoid(x) * std::fabs(x));
      EXPECT_NEAR(got.decay[h], decay, decay * (1.01 * of_g + 2 * kUnit) + kTiny) << row << " " << h;
      EXPECT_NEAR(got.beta[h], beta, gamma_n(6) * beta + kTiny) << row << " " << h;  // beta, and the key's norm of 1
    }
  }
}

TEST_P(GoldenOps, DecayOfTheWorkedExample) {
  EXPECT_NEAR(gates(backend(), {1}, {0}, {-1}, {.5f}).decay[0], 0.182426, 1e-6);
  EXPECT_NEAR(gates(backend(), {1}, {0}, {-1}, {.5f}).beta[0], 0.5, 1e-6);
}

TEST_P(GoldenOps, KeysAndQueriesAreNormed) {
  const auto tensors = read_ops("l2norm");
  const auto x = tensors.at("x.x").floats();
  const auto y = tensors.at("x.y.f64").doubles();
  const DeltaShape shape{1, 1, 128, 16, 4};
  for (std::size_t row = 0; row < x.size() / 128; ++row) {
    std::vector<float> mixed(x.begin() + static_cast<std::ptrdiff_t>(128 * row),
                             x.begin() + static_cast<std::ptrdiff_t>(128 * row + 128));
    mixed.insert(mixed.end(), x.begin() + static_cast<std::ptrdiff_t>(128 * row),
                 x.begin() + static_cast<std::ptrdiff_t>(128 * row + 128));
    mixed.resize(static_cast<std::size_t>(shape.conv_width()));
    std::vector<float> out(16), state(shape.state_floats()), gate(1), weight(1);
    DeltaWeights weights;
    weights.a = weights.dt_bias = weight.data();
    const Piece piece{nullptr, 0, 1, 0};
    const DeltaState at{nullptr, state.data()};
    const Matrix one(gate.data(), 1, 1);
    ops::delta_rule(backend(), Matrix(mixed.data(), 1, shape.conv_width()), one, one, shape, weights, {&piece, 1},
                    {&at, 1}, Matrix(out.data(), 1, 16));
    for (std::size_t i = 0; i < 128; ++i) {
      const double exact = y[128 * row + i];
      ASSERT_NEAR(mixed[128 + i], exact, norm_error(128) * std::fabs(exact)) << row << " " << i;
      ASSERT_NEAR(mixed[i], exact / std::sqrt(128.0), norm_error(128) * std::fabs(exact)) << row << " " << i;
    }
  }
}

TEST_P(GoldenOps, GatedNormFollowsFloat64) {
  const auto tensors = read_ops("gated_norm");
  for (const int width : {32, 128}) {
    const auto get = [&](const char* part) { return tensors.at("w" + std::to_string(width) + "." + part); };
    auto x = get("x").floats(), z = get("z").floats();
    const auto weight = get("weight").floats();
    const auto exact = get("y.f64").doubles();
    const int rows = static_cast<int>(x.size()) / width;
    std::vector<float> y(x.size());
    const Matrix gate(z.data(), rows, width), in(x.data(), rows, width);
    ops::gated_norm(backend(), in, gate, 1, width, weight.data(), 1e-6f, Matrix(y.data(), rows, width));
    // The norm, its weight, silu (eight roundings), the product.
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], exact[i], (norm_error(width) + gamma_n(11)) * std::fabs(exact[i])) << width << " " << i;
    ops::gated_norm(backend(), in, gate, 1, width, weight.data(), 1e-6f, in);
    EXPECT_EQ(x, y) << "in place";
  }
}

}  // namespace
}  // namespace steadfast::test
