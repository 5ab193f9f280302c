// Checks on rows: streams of the crowd, each compared with itself alone, in one piece, in a whole window.
#include <algorithm>

#include "backend/cpu/kernels.h"
#include "verify/checks.h"

namespace steadfast {
namespace {

// Compares each stream of a run with the same stream of the crowd alone.
Status compare_all(Trial& trial, Equality& row, std::span<const int> streams, const std::vector<TakenRows>& taken,
                   const std::string& how) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    auto expected = trial.alone(streams[i]);
    if (!expected) return expected.status();
    trial.compare(row, fmt::format("stream {} of {}{}", streams[i], streams.size(), how), **expected, taken[i]);
  }
  return Status::ok();
}

std::vector<int> first_streams(int count) {
  std::vector<int> streams;
  for (int s = 0; s < count; ++s) streams.push_back(s);
  return streams;
}

Status run_and_compare(Trial& trial, Equality& row, const std::vector<StreamScript>& scripts,
                       const Placement& placement, const std::string& how) {
  auto taken = trial.run(scripts, placement);
  if (!taken) return taken.status();
  return compare_all(trial, row, first_streams(static_cast<int>(scripts.size())), *taken, how);
}

// Streams [first, first + count) of the crowd, together, on a model opened under other settings.
Status run_on(Trial& trial, Equality& row, const LoadedModel& other, int first, int count, const Placement& placement,
              const std::string& how) {
  std::vector<StreamScript> scripts = trial.crowd(first + count);
  scripts.erase(scripts.begin(), scripts.begin() + first);
  auto taken = run_rows(other, scripts, placement, trial.stride());
  if (!taken) return taken.status();
  std::vector<int> streams = first_streams(first + count);
  streams.erase(streams.begin(), streams.begin() + first);
  return compare_all(trial, row, streams, *taken, how);
}

Status run_under(Trial& trial, Equality& row, const LoadOptions& options, int first, int count,
                 const std::string& how) {
  auto other = trial.open(options);
  return other ? run_on(trial, row, **other, first, count, {}, how) : other.status();
}

std::string on_pages(int page) { return page > 0 ? fmt::format(", pages of {}", page) : ""; }

}  // namespace

Status check_threads(Trial& trial, Equality& row) {
  if (!trial.on_cpu()) {
    row.skipped = "not on this device: it has no threads of ours";
    return Status::ok();
  }
  for (const int threads : trial.full() ? std::vector{1, 2, 3, 4, 7} : std::vector{1, 2, 3, 4}) {
    LoadOptions options = trial.base();
    options.threads = threads;
    const std::string how = fmt::format(", {} threads", threads);
    if (auto status = run_under(trial, row, options, trial.full() ? 0 : 1, 3, how); !status) return status;
    if (trial.enough(row)) break;
  }
  return Status::ok();
}

Status check_instruction_sets(Trial& trial, Equality& row) {
  if (!trial.on_cpu()) {
    row.skipped = "not on this device: it has one instruction set";
    return Status::ok();
  }
  for (const char* isa : {"scalar", "avx2", "avx512"}) {
    if (cpu::select_kernels(isa) == nullptr) {
      row.skipped += fmt::format("{}this machine lacks {}", row.skipped.empty() ? "" : ", ", isa);
      continue;
    }
    LoadOptions options = trial.base();
    options.isa = isa;
    if (auto status = run_under(trial, row, options, 1, trial.full() ? 4 : 2, fmt::format(", {}", isa)); !status)
      return status;
  }
  return Status::ok();
}

Status check_graphs(Trial& trial, Equality& row) {
  if (trial.on_cpu()) {
    row.skipped = "not on this device: it has no graphs";
    return Status::ok();
  }
  LoadOptions options = trial.base();
  options.graphs = !options.graphs;
  const std::string how = options.graphs ? ", graphs" : ", plain launches";
  auto opened = trial.open(options);
  if (!opened) return opened.status();
  const std::shared_ptr<LoadedModel> other = std::move(*opened);
  for (const int page : {0, 16}) {
    for (const int streams : trial.full() ? std::vector{1, 2, 8, 17, 33} : std::vector{5})
      if (auto status = run_on(trial, row, *other, 0, streams, {page, true}, how + on_pages(page)); !status)
        return status;
  }
  return compare_replies_of(trial, row, other, how);
}

Status check_pieces(Trial& trial, Equality& row) {
  for (const int page : {0, 64}) {
    for (const int chunk : page == 0 || trial.full() ? std::vector{1, 7, 64, 256, 1000} : std::vector{7}) {
      std::vector<StreamScript> scripts = trial.crowd(1);
      scripts[0].steps = {chunk};
      if (auto status = run_and_compare(trial, row, scripts, {page, true},
                                        fmt::format(", pieces of {}{}", chunk, on_pages(page)));
          !status)
        return status;
      if (trial.enough(row)) return Status::ok();
    }
  }
  return Status::ok();
}

Status check_together(Trial& trial, Equality& row) {
  const std::vector<int> counts =
      trial.full() ? std::vector{1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 24, 31, 32, 33} : std::vector{1, 2, 3, 8, 17, 33};
  for (const int streams : counts) {
    if (auto status = run_and_compare(trial, row, trial.crowd(streams), {}, ""); !status) return status;
    if (trial.enough(row)) break;
  }
  return Status::ok();
}

// Some join while others run, every fourth leaves before its end and gives its memory back.
Status check_staggered(Trial& trial, Equality& row) {
  for (const int page : {0, 16}) {
    for (const int streams : trial.full() ? std::vector{7, 17, 33} : std::vector{9}) {
      std::vector<StreamScript> scripts = trial.crowd(streams);
      for (std::size_t s = 0; s < scripts.size(); ++s) {
        scripts[s].joins = static_cast<int>(s * 5 % 13);
        if (s % 4 == 3) scripts[s].leaves = std::max(1, static_cast<int>(scripts[s].ids.size()) / 2);
      }
      if (auto status = run_and_compare(trial, row, scripts, {page, false}, on_pages(page)); !status) return status;
      if (trial.enough(row)) return Status::ok();
    }
  }
  return Status::ok();
}

Status check_pages(Trial& trial, Equality& row) {
  const std::vector<int> pages = trial.full() ? std::vector{16, 32, 64, 128, 256, 512, 1024} : std::vector{16, 64, 256};
  for (const int page : pages) {
    for (const bool scattered : trial.full() ? std::vector{false, true} : std::vector{page == 64}) {
      const std::string how = on_pages(page) + (scattered ? " in random order" : " in turns");
      if (auto status = run_and_compare(trial, row, trial.crowd(trial.full() ? 8 : 5), {page, scattered}, how); !status)
        return status;
      if (trial.enough(row)) return Status::ok();
    }
  }
  return Status::ok();
}

// Rows that are run and rolled back leave no trace: not in a recurrent state, not in a cache.
Status check_rolled_back(Trial& trial, Equality& row) {
  for (const int page : {0, 16}) {
    for (const int kept : {0, 1, 3, 6}) {
      std::vector<StreamScript> scripts = trial.crowd(trial.full() ? 9 : 4);
      if (!trial.full()) scripts[0].leaves = std::min(64, static_cast<int>(scripts[0].ids.size()));
      for (StreamScript& script : scripts) {
        const int length = static_cast<int>(script.ids.size()), rows = kept + 3;
        for (int at = 0; at + rows <= std::min(length, 60); at += rows + 4) script.detours.push_back({at, kept, 3});
      }
      if (auto status = run_and_compare(trial, row, scripts, {page, false},
                                        fmt::format(", {} rows of {} kept{}", kept, kept + 3, on_pages(page)));
          !status)
        return status;
      if (trial.enough(row)) return Status::ok();
    }
  }
  if (trial.window() < 9) row.skipped = fmt::format("in part: a window of {} has no room for drafts", trial.window());
  return Status::ok();
}

}  // namespace steadfast
