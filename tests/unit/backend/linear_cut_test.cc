// How linears of some rows are shared among workers: every step of chunks once and in order, slices shared by
// neighbours alone and without waiting in a circle, columns' names their own.
#include "backend/cuda/linear_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "backend/cuda/linear_plan.h"

namespace steadfast::cuda {
namespace {

struct Segment {
  int worker, order, column, slice, from, to;
  bool opens, closes;
};

std::vector<Segment> segments_of(const LinearCut& cut) {
  std::vector<Segment> segments;
  for (int worker = 0; worker < cut.workers; ++worker) {
    LinearWalk walk;
    for (int order = 0; walk.next(cut, worker); ++order)
      segments.push_back({worker, order, walk.column, walk.slice, walk.from, walk.to, walk.opens, walk.closes});
  }
  return segments;
}

void check(const LinearCut& cut) {
  SCOPED_TRACE(testing::Message() << cut.columns << " columns of " << cut.steps() << " steps, " << cut.slices
                                  << " slices, " << cut.workers << " workers");
  const std::vector<Segment> segments = segments_of(cut);
  std::vector<int> done(static_cast<std::size_t>(cut.all()));
  std::vector<const Segment*> head(static_cast<std::size_t>(cut.workers)), rest(head.size());
  for (const Segment& s : segments) {
    ASSERT_LT(s.from, s.to);
    ASSERT_GE(s.from, cut.slice_start(s.slice));
    ASSERT_LE(s.to, cut.slice_start(s.slice + 1));
    EXPECT_EQ(s.opens, s.from == cut.slice_start(s.slice));
    EXPECT_EQ(s.closes, s.to == cut.slice_start(s.slice + 1));
    EXPECT_TRUE(s.opens || s.closes) << "a slice of three workers";
    for (int step = s.from; step < s.to; ++step) ++done[static_cast<std::size_t>(s.column * cut.steps() + step)];
    if (!s.closes) {
      EXPECT_EQ(s.order, 0) << "a head is handed on before its worker waits for anything";
      head[static_cast<std::size_t>(s.worker)] = &s;
    }
    if (!s.opens) rest[static_cast<std::size_t>(s.worker)] = &s;
  }
  for (const int times : done) ASSERT_EQ(times, 1);
  for (std::size_t worker = 0; worker < head.size(); ++worker) {  // what one hands on, the next one takes
    const Segment* taken = worker + 1 < rest.size() ? rest[worker + 1] : nullptr;
    ASSERT_EQ(head[worker] != nullptr, taken != nullptr);
    if (taken == nullptr) continue;
    EXPECT_EQ(head[worker]->column, taken->column);
    EXPECT_EQ(head[worker]->slice, taken->slice);
    EXPECT_EQ(head[worker]->to, taken->from);
  }
  std::set<int> names;
  for (int column = 0; column < cut.columns; ++column) {
    bool whole = false;
    for (int worker = 0; worker < cut.workers; ++worker) whole = whole || cut.has_whole_column(worker, column);
    if (whole) continue;
    const int name = cut.worker_behind(column * cut.steps());
    EXPECT_TRUE(names.insert(name).second);
    EXPECT_GT(cut.begin(name), column * cut.steps());
    EXPECT_LT(cut.begin(name), (column + 1) * cut.steps());
  }
}

TEST(LinearCut, EveryStepOnceAndSlicesSharedByNeighbours) {
  for (const int chunks : {2, 4, 6, 8, 10, 14, 16, 18, 22, 26, 30, 80, 90, 272})
    for (const int slices : {1, linear_slices(48, chunks * kChunk)})
      for (const int columns : {1, 2, 3, 17, 20, 65, 136, 485})
        for (const int most : {1, 2, 7, 66, 132, 1000}) {
          LinearCut cut{columns, chunks, slices, 1};
          cut.workers = std::min(most, cut.most_workers());
          check(cut);
          if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(LinearCut, SlicesAreThoseOfTheArithmetic) {
  for (const int out : {48, 5120, 17408})
    for (const int in : {64, 576, 1024, 1088, 5120, 17408}) {
      const int slices = linear_slices(out, in), chunks = chunks_of(in);
      const LinearCut cut{1, chunks, slices, 1};
      EXPECT_EQ(cut.slice_start(slices), cut.steps());
      for (int s = 0; s < slices; ++s) EXPECT_EQ(kSliceUnit * cut.slice_start(s), slice_begin(chunks, slices, s));
    }
}

}  // namespace
}  // namespace steadfast::cuda
