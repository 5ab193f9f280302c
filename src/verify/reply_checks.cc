// Checks on replies: ids and log-probabilities of the engine's replies, each compared with the reply to the same
// request alone, in an engine of its own, from nothing.
#include <algorithm>

#include "verify/checks.h"
#include "verify/compare.h"
#include "verify/redraw.h"

namespace steadfast {
namespace {

Status compare_with_alone(Trial& trial, Equality& row, std::span<const Request> requests,
                          const std::vector<Reply>& replies, const std::string& how) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto expected = trial.alone(requests[i]);
    if (!expected) return expected.status();
    const char* drawn = requests[i].sampling.temperature > 0 ? "sampled" : "greedy";
    trial.compare(row, fmt::format("{} reply {} of {}{}", drawn, i, requests.size(), how), requests[i], **expected,
                  replies[i]);
  }
  return Status::ok();
}

// Asks an engine for all and compares each reply.
Status ask_and_compare(Trial& trial, Equality& row, Engine& engine, std::span<const Request> requests,
                       const Asking& asking, const std::string& how) {
  auto replies = ask(engine, requests, asking);
  if (!replies) return replies.status();
  return compare_with_alone(trial, row, requests, *replies, how);
}

// Pages that hold all of these requests at once, each of its full length.
int pages_for(std::span<const Request> requests, int page) {
  int pages = 1;
  for (const Request& request : requests)
    pages += (static_cast<int>(request.prompt.size()) + request.max_tokens + page - 1) / page;
  return pages;
}

EngineOptions paged(std::span<const Request> requests, int page, int streams) {
  return {.streams = streams, .paged = true, .page = page, .pool_pages = pages_for(requests, page)};
}

// False, with the row's reason: no request fits into the window.
bool can_reply(Equality& row, std::span<const Request> requests) {
  if (requests.empty()) row.skipped = "the window has no room for a prompt and a reply";
  return !requests.empty();
}

}  // namespace

Status compare_replies_of(Trial& trial, Equality& row, const std::shared_ptr<LoadedModel>& other,
                          const std::string& how) {
  for (const int streams : trial.full() ? std::vector{1, 8, 33} : std::vector{5}) {
    const auto requests = trial.requests(streams);
    for (EngineOptions options : {EngineOptions{.streams = streams}, paged(requests, 64, streams)}) {
      if (requests.empty()) return Status::ok();
      options.context = trial.context();
      auto engine = Engine::create(other, options);
      if (!engine) return engine.status();
      if (auto status = ask_and_compare(trial, row, **engine, requests, {}, how); !status) return status;
    }
  }
  return Status::ok();
}

// What the engine drew and how probable it found it, from rows of a prompt that holds the reply.
Status check_reply_rows(Trial& trial, Equality& row) {
  const auto requests = trial.requests(trial.full() ? 17 : 6);
  if (!can_reply(row, requests)) return Status::ok();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto reply = trial.alone(requests[i]);
    if (!reply) return reply.status();
    auto again = redraw(trial.model(), requests[i], **reply, i % 2 == 0 ? 64 : 7);
    if (!again) return again.status();
    row.rows += static_cast<std::int64_t>(again->ids.size());
    trial.compare(row, fmt::format("reply {}", i), requests[i], *again, **reply);
    if (trial.enough(row)) break;
  }
  return Status::ok();
}

Status check_replies_together(Trial& trial, Equality& row) {
  const auto requests = trial.requests(33);
  if (!can_reply(row, requests)) return Status::ok();
  for (const int streams : trial.full() ? std::vector{1, 2, 3, 5, 8, 16, 17, 31, 32, 33} : std::vector{2, 5, 33}) {
    auto engine = trial.engine({.streams = streams});
    if (!engine) return engine.status();
    const auto some = std::span(requests).first(static_cast<std::size_t>(streams));
    if (auto status = ask_and_compare(trial, row, **engine, some, {}, " together"); !status) return status;
    if (trial.enough(row)) break;
  }
  return Status::ok();
}

// Requests come while others run, every third is cancelled on its way; what it had must be right too.
Status check_arrivals(Trial& trial, Equality& row) {
  for (const int count : trial.full() ? std::vector{9, 17, 33} : std::vector{9}) {
    const auto requests = trial.requests(count);
    if (!can_reply(row, requests)) return Status::ok();
    for (const int page : {0, 16}) {
      EngineOptions options = page > 0 ? paged(requests, page, 5) : EngineOptions{.streams = 5};
      options.row_budget = 48;
      auto engine = trial.engine(options);
      if (!engine) return engine.status();
      if (auto status = ask_and_compare(trial, row, **engine, requests, {.apart = 2, .cancel_every = 3},
                                        page > 0 ? " one by one, on pages" : " one by one");
          !status)
        return status;
      if (trial.enough(row)) return Status::ok();
    }
  }
  return Status::ok();
}

// Pages of each size, prompts in pieces of several sizes (--chunk).
Status check_replies_on_pages(Trial& trial, Equality& row) {
  const auto requests = trial.requests(trial.full() ? 9 : 5);
  if (!can_reply(row, requests)) return Status::ok();
  for (const int page : trial.full() ? std::vector{16, 64, 256, 1024} : std::vector{16, 256}) {
    for (const int piece : {0, 1, 7}) {
      EngineOptions options = paged(requests, page, static_cast<int>(requests.size()));
      options.piece = piece;
      auto engine = trial.engine(options);
      if (!engine) return engine.status();
      const std::string how =
          fmt::format(" on pages of {}{}", page, piece > 0 ? fmt::format(", --chunk {}", piece) : "");
      if (auto status = ask_and_compare(trial, row, **engine, requests, {}, how); !status) return status;
      if (trial.enough(row)) return Status::ok();
    }
  }
  return Status::ok();
}

namespace {

// Prompts that share page - 1, page, page + 1 and more positions, and one twice.
std::vector<Request> sharing(const Trial& trial, int page) {
  const auto base = some_ids(trial.model(), 3 * page, 300);
  std::vector<Request> requests;
  int number = 0;
  for (const int shared : {page - 1, page, page + 1, 2 * page - 1, 2 * page, 2 * page + 1}) {
    std::vector<TokenId> prompt(base.begin(), base.begin() + shared);
    for (const TokenId id : some_ids(trial.model(), 3, 310 + static_cast<std::uint64_t>(number))) prompt.push_back(id);
    if (static_cast<int>(prompt.size()) >= trial.context()) break;
    requests.push_back(trial.request(std::move(prompt), number++));
  }
  if (!requests.empty()) requests.push_back(requests.back());
  return requests;
}

}  // namespace

Status check_warm(Trial& trial, Equality& row) {
  std::uint64_t resumed = 0;
  for (const int page : trial.full() ? std::vector{16, 64, 256} : std::vector{16}) {
    const auto requests = sharing(trial, page);
    if (requests.size() < 3) {
      row.skipped = fmt::format("a window of {} holds no page of {} and more", trial.context(), page);
      return Status::ok();
    }
    EngineOptions on_pages = paged(requests, page, 4);
    on_pages.pool_pages *= 2;
    for (const EngineOptions& options : {on_pages, EngineOptions{.streams = 4}}) {
      auto engine = trial.engine(options);
      if (!engine) return engine.status();
      for (const char* time : {"first time", "again", "a third time"}) {
        const std::string how =
            fmt::format(" sharing {} positions, {}, {}", page, options.paged ? "paged" : "whole", time);
        if (auto status = ask_and_compare(trial, row, **engine, requests, {}, how); !status) return status;
        if (trial.enough(row)) return Status::ok();
      }
      resumed += (*engine)->counters().prompt_tokens_reused;
    }
  }
  if (resumed == 0) row.skipped = "no prefix was resumed";
  return Status::ok();
}

// Each turn's prompt is the one before, its reply, and something new.
Status check_growing_chat(Trial& trial, Equality& row) {
  constexpr int kPage = 16;
  const int turns = trial.full() ? 16 : 6, window_pages = (trial.context() + kPage - 1) / kPage;
  const EngineOptions on_pages{
      .streams = 2, .paged = true, .page = kPage, .pool_pages = std::min(64, window_pages * 2)};
  std::uint64_t resumed = 0;
  for (const EngineOptions& options : {on_pages, EngineOptions{.streams = 2}}) {
    auto engine = trial.engine(options);
    if (!engine) return engine.status();
    std::vector<TokenId> prompt = some_ids(trial.model(), std::clamp(trial.context() / 2, 1, 21), 400);
    for (int turn = 0; turn < turns && static_cast<int>(prompt.size()) < trial.context(); ++turn) {
      const Request request = trial.request(prompt, turn);
      auto replies = ask(**engine, {&request, 1}, Asking{});
      if (!replies) return replies.status();
      const std::string how = fmt::format(", turn {}, {}", turn, options.paged ? "paged" : "whole");
      if (auto status = compare_with_alone(trial, row, {&request, 1}, *replies, how); !status) return status;
      if (trial.enough(row)) return Status::ok();
      prompt.insert(prompt.end(), replies->front().ids.begin(), replies->front().ids.end());
      for (const TokenId id : some_ids(trial.model(), 5, 410 + static_cast<std::uint64_t>(turn))) prompt.push_back(id);
    }
    resumed += (*engine)->counters().prompt_tokens_reused;
  }
  if (resumed == 0) row.skipped = "no prefix was resumed: the window is too small for pages and turns";
  return Status::ok();
}

// A pool that holds the prompts and not the replies: streams are set aside as they grow, and computed again.
Status check_set_aside(Trial& trial, Equality& row) {
  constexpr int kPage = 16;
  auto requests = trial.requests(trial.full() ? 17 : 8);
  if (!can_reply(row, requests)) return Status::ok();
  int longest = 1;
  for (Request& request : requests) {
    request.prompt.resize(std::min<std::size_t>(request.prompt.size(), 13));
    request.max_tokens = std::min(52, trial.context() - static_cast<int>(request.prompt.size()));
    longest = std::max(longest, pages_for({&request, 1}, kPage));
  }
  EngineOptions options = paged(requests, kPage, static_cast<int>(requests.size()));
  options.pool_pages = std::max(longest, static_cast<int>(requests.size()));
  options.row_budget = 40;
  auto engine = trial.engine(options);
  if (!engine) return engine.status();
  const std::string how = fmt::format(", pool of {} pages", options.pool_pages);
  if (auto status = ask_and_compare(trial, row, **engine, requests, {}, how); !status) return status;
  if ((*engine)->counters().streams_set_aside == 0) row.skipped = "no stream had to be set aside";
  return Status::ok();
}

}  // namespace steadfast
