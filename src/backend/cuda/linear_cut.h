// How the mid kernels (device/linear_mid.h) share a launch's work: columns, each with its slices of K one after
// another, in steps of kSliceUnit chunks, are cut into equal runs, one a worker. A cut may fall inside a slice: the
// worker before it then does the slice's head first of all and hands its sums on, the worker behind it does the rest
// last of all, so nobody waits for one who waits. Host and kernels; schedule alone.
#pragma once

#include "backend/cuda/linear_plan.h"

namespace steadfast::cuda {

struct LinearCut {
  int columns, chunks, slices;  // chunks of a column, in slices as slice_begin() has them
  int workers;                  // at most most_workers()

  constexpr int steps() const { return divide_up(chunks, kSliceUnit); }
  constexpr int all() const { return columns * steps(); }
  // Where a worker's run begins, and where that of worker `workers` would.
  constexpr int begin(int worker) const {
    return static_cast<int>(static_cast<unsigned>(all()) * static_cast<unsigned>(worker) /
                            static_cast<unsigned>(workers));
  }
  // The first worker whose run begins behind step `at`.
  constexpr int worker_behind(int at) const {
    return static_cast<int>(
        (static_cast<unsigned>(at + 1) * static_cast<unsigned>(workers) + static_cast<unsigned>(all() - 1)) /
        static_cast<unsigned>(all()));
  }
  // Products stay below 2^32.
  constexpr bool fits() const { return static_cast<long long>(all()) * (workers + 1) < 1LL << 32; }
  constexpr bool has_whole_column(int worker, int column) const {
    return begin(worker) <= column * steps() && begin(worker + 1) >= (column + 1) * steps();
  }
  constexpr int slice_start(int slice) const { return divide_up(slice_begin(chunks, slices, slice), kSliceUnit); }
  constexpr int slice_at(int step) const {
    int slice = 0;
    while (slice_start(slice + 1) <= step) ++slice;
    return slice;
  }
  // With more, a slice might be shared by three.
  constexpr int most_workers() const {
    int longest = 1;
    for (int s = 0; s < slices; ++s) {
      const int length = slice_start(s + 1) - slice_start(s);
      longest = length > longest ? length : longest;
    }
    const int limit = longest > 1 ? all() / (longest - 1) : all();
    return limit < columns * slices ? limit : columns * slices;
  }
};

// A worker's segments in order: the head of the slice that it does not finish, whole slices ascending, the rest of the
// slice that the worker before it began. Little state, since its registers are scarce: the rest is computed anew.
struct LinearWalk {
  static constexpr int kBefore = -1, kBehind = -2;
  int at = kBefore;           // where the next whole slice begins
  int column = 0, slice = 0;  // the segment: steps [from, to) of a slice of a column
  int from = 0, to = 0;
  bool opens = false, closes = false;  // it has the slice's first step, its last

  // False behind the last segment.
  constexpr bool next(const LinearCut& cut, int worker) {
    const int first = cut.begin(worker), last = cut.begin(worker + 1);
    const int in_column = last % cut.steps(), whole_end = last - in_column + cut.slice_start(cut.slice_at(in_column));
    if (at == kBefore) {
      const int into = first % cut.steps(), slice_in = cut.slice_at(into);
      at = first - into + cut.slice_start(into == cut.slice_start(slice_in) ? slice_in : slice_in + 1);
      if (whole_end < last) return set(cut, whole_end, last);
    }
    if (at == kBehind) return false;
    if (at < whole_end) {
      set(cut, at, whole_end);
      at += to - from;
      return true;
    }
    at = kBehind;
    const int into = first % cut.steps(), slice_in = cut.slice_at(into);
    if (into == cut.slice_start(slice_in)) return false;
    return set(cut, first, first - into + cut.slice_start(slice_in + 1));
  }

 private:
  constexpr bool set(const LinearCut& cut, int first, int limit) {
    column = first / cut.steps(), from = first % cut.steps();
    slice = cut.slice_at(from);
    const int end = cut.slice_start(slice + 1), most = from + limit - first;
    to = end < most ? end : most;
    opens = from == cut.slice_start(slice), closes = to == end;
    return true;
  }
};

}  // namespace steadfast::cuda
