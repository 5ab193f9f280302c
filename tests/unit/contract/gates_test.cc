// Wrong kernels, each wrong in one way, and the gate of the contract that each turns red: a Backend around the true one
// that falsifies what it hands on.
#include <gmock/gmock.h>

#include <bit>

#include "backend/cpu/cpu_backend.h"
#include "contract/contract.h"
#include "verify/faults/forwarding_backend.h"

namespace steadfast::contract {
namespace {

std::unique_ptr<Backend> cpu() {
  CpuOptions options;
  options.threads = 1;
  options.act = Act::kBF16;
  return std::move(*make_cpu_backend(options));
}

class Wrong : public ForwardingBackend {
 public:
  Wrong() : ForwardingBackend(cpu()) {}
  using ForwardingBackend::linear;
  void linear(const LinearInput& input, std::span<const LinearJob> jobs) override { linear_in_parts(input, jobs); }

 protected:
  // The next float: the least difference that bits can show.
  static void nudge(float& x) { x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ 1u); }
};

// One kernel's cases of these names (all quick ones: none named) through its gates.
Tally run(std::unique_ptr<Backend> backend, const std::string& kernel, const std::vector<std::string>& names = {}) {
  Options options;
  options.schedules = false;
  for (const Case& one : built_in_cases())
    if (one.kernel == kernel && (names.empty() || std::find(names.begin(), names.end(), one.name) != names.end()))
      options.cases.push_back(one);
  auto outcome = check(std::move(backend), options);
  EXPECT_TRUE(outcome.is_ok()) << outcome.message();
  EXPECT_EQ(outcome->table.size(), 1u);
  EXPECT_EQ(outcome->fine(), outcome->table[0].fine());
  return outcome->table[0];
}

struct Verdict {
  bool bits = false, error = false, memory = false, unseen = false;
};
void expect(const Tally& tally, const Verdict& red) {
  EXPECT_EQ(tally.differing > 0, red.bits) << fmt::format("{}", fmt::join(tally.findings, "\n"));
  EXPECT_EQ(!(tally.worst <= 1), red.error) << tally.worst;
  EXPECT_EQ(tally.overwritten > 0, red.memory);
  EXPECT_EQ(tally.caught < tally.controls, red.unseen);
  EXPECT_FALSE(tally.fine());
  EXPECT_FALSE(tally.findings.empty());
}

TEST(Gates, LetTheTrueKernelsThrough) {
  for (const Kernel& kernel : all_kernels()) {
    Options options;
    options.cases = built_in_cases();
    options.selection.kernels = kernel.name;
    options.selection.smallest = true;
    auto outcome = check(cpu(), options);
    ASSERT_TRUE(outcome.is_ok()) << outcome.message();
    EXPECT_TRUE(outcome->fine()) << fmt::format("{}", fmt::join(outcome->table[0].findings, "\n"));
    EXPECT_GT(outcome->table[0].rows, 0);
    EXPECT_GT(outcome->table[0].controls, 0);
  }
}

// The last row of a call of many rows, off by one bit: within every bound, but not the row alone.
TEST(Gates, SeeOneBitThatFollowsTheBatch) {
  struct Fault : Wrong {
    using Wrong::linear;
    void linear(const Matrix& x, std::span<const LinearJob> jobs) override {
      Wrong::linear(x, jobs);
      if (x.rows > 64) nudge(jobs[0].out.row(x.rows - 1)[0]);
    }
  };
  expect(run(std::make_unique<Fault>(), "linear", {"odd shapes"}), {.bits = true});
}

TEST(Gates, SeeOneBitThatFollowsThePlace) {
  struct Fault : Wrong {
    void rms_norm(const Matrix& x, const float* weight, float eps, const Matrix& out) override {
      Wrong::rms_norm(x, weight, eps, out);
      if (x.rows == 2) nudge(out.row(1)[3]);
    }
  };
  expect(run(std::make_unique<Fault>(), "rms_norm", {"tiny"}), {.bits = true});
}

TEST(Gates, SeeAnErrorThatEveryRowHas) {
  struct Fault : Wrong {
    void rms_norm(const Matrix& x, const float* weight, float, const Matrix& out) override {
      Wrong::rms_norm(x, weight, 1e-3f, out);
    }
  };
  expect(run(std::make_unique<Fault>(), "rms_norm"), {.error = true});
  struct Dropped : Wrong {
    using Wrong::linear;
    void linear(const Matrix& x, std::span<const LinearJob> jobs) override {
      std::vector<LinearJob> without(jobs.begin(), jobs.end());
      for (LinearJob& job : without) job.bias = nullptr;
      Wrong::linear(x, without);
    }
  };
  expect(run(std::make_unique<Dropped>(), "linear", {"dense bf16"}), {.error = true});
}

TEST(Gates, SeeMemoryOutsideTheRows) {
  struct Behind : Wrong {
    void silu_mul(const Matrix& gate, const Matrix& up, const Matrix& out) override {
      Wrong::silu_mul(gate, up, out);
      out.row(out.rows - 1)[out.width] = 1;
    }
  };
  expect(run(std::make_unique<Behind>(), "silu_mul", {"tiny"}), {.memory = true});
  struct Next : Wrong {
    void sigmoid_mul(const Matrix& x, const Matrix& gate, const Matrix& out) override {
      Wrong::sigmoid_mul(x, gate, out);
      out.row(0)[-1] = 1;
    }
  };
  expect(run(std::make_unique<Next>(), "sigmoid_mul", {"tiny"}), {.memory = true});
}

// A kernel that reads nothing: its rows are alike in every batch, and no planted fault changes them.
TEST(Gates, SayWhichPlantedFaultWasNotSeen) {
  struct Fault : Wrong {
    void head_norm(const Matrix& x, int, int, const float*, float) override {
      for (int row = 0; row < x.rows; ++row) std::fill_n(x.row(row), x.width, 0.5f);
    }
  };
  const Tally tally = run(std::make_unique<Fault>(), "head_norm", {"tiny"});
  expect(tally, {.error = true, .unseen = true});
  EXPECT_THAT(tally.findings, testing::Contains(testing::HasSubstr("\"two rows swapped\" was not caught")));
}

TEST(Gates, SeeRowsThatAreNotCopies) {
  struct Fault : Wrong {
    void gather(const Matrix& x, std::span<const int> rows, const Matrix& out) override {
      std::vector<int> from(rows.begin(), rows.end());
      if (from.size() > 1) from.back() = from.front();
      Wrong::gather(x, from, out);
    }
  };
  expect(run(std::make_unique<Fault>(), "copy", {"odd width, gathered"}), {.bits = true});
  struct Ids : Wrong {
    void embed(const Weight& table, std::span<const TokenId> ids, const Matrix& out) override {
      std::vector<TokenId> other(ids.begin(), ids.end());
      for (TokenId& id : other) id = std::max(0, id - 1);
      Wrong::embed(table, other, out);
    }
  };
  const Tally tally = run(std::make_unique<Ids>(), "embed", {"8 bits, f32"});
  EXPECT_FALSE(tally.worst <= 1);
}

TEST(Gates, SeeAWrongAngle) {
  struct Fault : Wrong {
    void rope_table(std::span<const std::int32_t> positions, const float* inverse, int half, float magnitude,
                    float* cosine, float* sine) override {
      Wrong::rope_table(positions, inverse, half, magnitude * 1.0000005f, cosine, sine);
    }
  };
  expect(run(std::make_unique<Fault>(), "rope", {"half of the dims"}), {.error = true});
  struct Pairs : Wrong {
    void rope(const Matrix& x, int heads, int dim, const RopeTable& table) override {
      Wrong::rope(x, heads, dim, {table.cosine, table.sine, x.rows > 16 ? table.dims - 2 : table.dims});
    }
  };
  EXPECT_GT(run(std::make_unique<Pairs>(), "rope", {"half of the dims"}).differing, 0);
}

// A row is stored a second time one position on, where the piece ends.
TEST(Gates, SeeAStoreBehindThePiece) {
  struct Fault : Wrong {
    void store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first) override {
      Wrong::store_kv(keys, values, view, first);
      const int last = keys.rows - 1;
      const Matrix key(keys.row(last), 1, keys.width), value(values.row(last), 1, values.width);
      if ((first + last) % 16 != 15) Wrong::store_kv(key, value, view, first + keys.rows);
    }
  };
  const Tally tally = run(std::make_unique<Fault>(), "store_kv", {"dim 64, bf16"});
  EXPECT_GT(tally.overwritten, 0);
}

TEST(Gates, SeeARowThatWasNotStored) {
  struct Fault : Wrong {
    void store_kv(const Matrix& keys, const Matrix& values, const CacheView& view, int first) override {
      const int rows = keys.rows > 64 ? keys.rows - 1 : keys.rows;
      Wrong::store_kv(Matrix(keys.data, rows, keys.width), Matrix(values.data, rows, values.width), view, first);
    }
  };
  const Tally tally = run(std::make_unique<Fault>(), "store_kv", {"dim 80, fp8"});
  EXPECT_GT(tally.differing, 0);
}

TEST(Gates, SeeALayoutThatChangesARow) {
  struct Fault : Wrong {
    void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                   std::span<const CacheView> views, const Matrix& out) override {
      Wrong::attention(queries, shape, pieces, views, out);
      if (views[0].page_shift < 30 && pieces[0].first_position % 16 == 15) nudge(out.row(0)[0]);
    }
  };
  const Tally tally = run(std::make_unique<Fault>(), "attention", {"40 rows"});
  EXPECT_GT(tally.differing, 0);
  EXPECT_LE(tally.worst, 1);
}

// A page table is read with its first two entries exchanged: page against page alike, but not a whole window.
TEST(Gates, SeeAPageTableReadWrongly) {
  struct Fault : Wrong {
    void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                   std::span<const CacheView> views, const Matrix& out) override {
      std::vector<std::int32_t> table;
      std::vector<CacheView> other(views.begin(), views.end());
      const bool two = views[0].page_shift == 4 && pieces[0].first_position + pieces[0].rows > 16 &&
                       pieces[0].first_position + pieces[0].rows <= 32;
      if (two) table = {views[0].pages[1], views[0].pages[0]}, other[0].pages = table.data();
      Wrong::attention(queries, shape, pieces, other, out);
    }
  };
  EXPECT_GT(run(std::make_unique<Fault>(), "attention", {"40 rows"}).differing, 0);
}

TEST(Gates, SeeAWrongScaleOfScores) {
  struct Fault : Wrong {
    void attention(const Matrix& queries, const AttentionShape& shape, std::span<const Piece> pieces,
                   std::span<const CacheView> views, const Matrix& out) override {
      AttentionShape other = shape;
      other.scale *= 1.001f;
      Wrong::attention(queries, other, pieces, views, out);
    }
  };
  expect(run(std::make_unique<Fault>(), "attention", {"40 rows"}), {.error = true});
}

TEST(Gates, SeeARecurrenceThatFollowsItsPieces) {
  struct Fault : Wrong {
    void delta(const Matrix& x, const Matrix& a, const Matrix& b, const DeltaShape& shape, const DeltaWeights& weights,
               std::span<const Piece> pieces, std::span<const DeltaState> states, const Matrix& mixed,
               const Matrix& out) override {
      Wrong::delta(x, a, b, shape, weights, pieces, states, mixed, out);
      if (pieces[0].rows == 7) nudge(states[0].state[5]);
    }
  };
  const Tally tally = run(std::make_unique<Fault>(), "delta", {"tiny"});
  EXPECT_GT(tally.differing, 0);
  EXPECT_LE(tally.worst, 1);
}

TEST(Gates, SeeAWrongGateAndAnOverrunState) {
  struct Fault : Wrong {
    void delta(const Matrix& x, const Matrix& a, const Matrix& b, const DeltaShape& shape, const DeltaWeights& weights,
               std::span<const Piece> pieces, std::span<const DeltaState> states, const Matrix& mixed,
               const Matrix& out) override {
      Wrong::delta(x, b, b, shape, weights, pieces, states, mixed, out);
      (void)a;
    }
  };
  EXPECT_GT(run(std::make_unique<Fault>(), "delta", {"tiny"}).worst, 1);
  struct Overrun : Wrong {
    void delta(const Matrix& x, const Matrix& a, const Matrix& b, const DeltaShape& shape, const DeltaWeights& weights,
               std::span<const Piece> pieces, std::span<const DeltaState> states, const Matrix& mixed,
               const Matrix& out) override {
      Wrong::delta(x, a, b, shape, weights, pieces, states, mixed, out);
      states[0].state[shape.state_floats()] = 0;
    }
  };
  expect(run(std::make_unique<Overrun>(), "delta", {"tiny"}), {.memory = true});
}

TEST(Gates, SeeADrawThatFollowsTheBatchAndAWrongLogProbability) {
  struct Fault : Wrong {
    Status draw(const Matrix& logits, std::span<const DrawJob> jobs, std::span<Drawn> drawn) override {
      auto status = Wrong::draw(logits, jobs, drawn);
      if (jobs.size() > 7) drawn[7].id = drawn[6].id;
      return status;
    }
  };
  expect(run(std::make_unique<Fault>(), "draw", {"small"}), {.bits = true});
  struct Probability : Wrong {
    Status draw(const Matrix& logits, std::span<const DrawJob> jobs, std::span<Drawn> drawn) override {
      auto status = Wrong::draw(logits, jobs, drawn);
      for (Drawn& one : drawn)
        if (one.logprob) one.logprob->logprob += 1e-4f;
      return status;
    }
  };
  expect(run(std::make_unique<Probability>(), "draw", {"small"}), {.error = true});
}

TEST(Gates, ReportWhatTheDeviceFailsIn) {
  struct Fault : Wrong {
    Status finish() override { return Status::error("the card is on fire; call somebody"); }
  };
  Options options;
  options.cases = built_in_cases();
  options.selection = {"silu_mul", false, true};
  const auto outcome = check(std::make_unique<Fault>(), options);
  ASSERT_FALSE(outcome.is_ok());
  EXPECT_EQ(outcome.message(), "silu_mul, tiny: the card is on fire; call somebody");
}

}  // namespace
}  // namespace steadfast::contract
