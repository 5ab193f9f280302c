// One loop over rounds: collect the streams' next rows, forward, take logits, roll back, let go.
#include "verify/row_run.h"

#include <algorithm>
#include <random>

namespace steadfast {
namespace {

struct Member {
  const StreamScript* script = nullptr;
  std::unique_ptr<StreamState> state;
  int done = 0, round = 0, detour = 0;
  bool over = false;
  TakenRows taken;

  int end() const { return script->leaves > 0 ? script->leaves : static_cast<int>(script->ids.size()); }
  const Detour* next_detour() const {
    return detour < static_cast<int>(script->detours.size()) ? &script->detours[static_cast<std::size_t>(detour)]
                                                             : nullptr;
  }
};

// What a stream gives to a round.
struct Share {
  Member* member = nullptr;
  std::vector<TokenId> ids;
  int right = 0;  // of these, rows that stay
  bool detour = false;
};

constexpr std::size_t kHeadRows = 16;

class RowRun {
 public:
  RowRun(const LoadedModel& loaded, const Placement& placement, int stride)
      : loaded_(loaded), model_(*loaded.model), placement_(placement), stride_(stride) {}

  Status prepare(std::span<const StreamScript> scripts) {
    int rows = 0, pages = 0;
    std::size_t positions = 0;
    for (const StreamScript& script : scripts) {
      CHECK(!script.ids.empty() && !script.steps.empty(), "a script of {} ids, {} steps", script.ids.size(),
            script.steps.size());
      int most = *std::max_element(script.steps.begin(), script.steps.end());
      for (const Detour& detour : script.detours) most = std::max(most, detour.kept + detour.wrong);
      positions += script.ids.size();
      rows += std::min(most, static_cast<int>(script.ids.size()));
      if (placement_.page > 0) pages += (static_cast<int>(script.ids.size()) + placement_.page - 1) / placement_.page;
      members_.emplace_back().script = &script;
    }
    auto workspace = Workspace::create(model_.backend(), model_.config(), rows, kHeadRows, positions);
    if (!workspace) return workspace.status();
    workspace_ = std::move(*workspace);
    return placement_.page > 0 ? make_pool(pages) : Status::ok();
  }

  Result<std::vector<TakenRows>> run() {
    for (int round = 0; std::any_of(members_.begin(), members_.end(), [](const Member& m) { return !m.over; }); ++round)
      if (auto status = run_round(round); !status) return status;
    std::vector<TakenRows> taken;
    for (Member& member : members_) taken.push_back(std::move(member.taken));
    return taken;
  }

 private:
  Status make_pool(int pages) {
    auto pool = PagePool::create(model_.backend(), model_.cache_shape(loaded_.kv_dtype), placement_.page, pages);
    if (!pool) return pool.status();
    pool_ = std::move(*pool);
    if (!placement_.scattered) return Status::ok();
    std::vector<int> all;
    for (int i = 0; i < pages; ++i) all.push_back(pool_->take());
    std::shuffle(all.begin(), all.end(), std::mt19937(1));
    for (const int page : all) pool_->drop(page);
    return Status::ok();
  }

  Status open(Member& member) {
    const int window = static_cast<int>(member.script->ids.size());
    auto state = pool_ ? StreamState::create_paged(model_.backend(), *pool_, window)
                       : StreamState::create(model_.backend(), model_.cache_shape(loaded_.kv_dtype), window);
    if (!state) return state.status();
    member.state = std::move(*state);
    return Status::ok();
  }

  // The member's rows of this round.
  Share next(Member& member) const {
    const StreamScript& script = *member.script;
    Share share{&member, {}, 0, false};
    const auto from = script.ids.begin() + member.done;
    const Detour* detour = member.next_detour();
    if (detour != nullptr && detour->at == member.done) {
      share.detour = true;
      share.right = detour->kept;
      share.ids.assign(from, from + detour->kept + detour->wrong);
      for (std::size_t i = static_cast<std::size_t>(detour->kept); i < share.ids.size(); ++i)
        share.ids[i] = (share.ids[i] + 1) % static_cast<TokenId>(loaded_.card.vocab_size);
      return share;
    }
    const int step = script.steps[static_cast<std::size_t>(member.round) % script.steps.size()];
    const int border = detour != nullptr ? std::min(detour->at, member.end()) : member.end();
    share.right = std::min(step, border - member.done);
    share.ids.assign(from, from + share.right);
    return share;
  }

  Status run_round(int number) {
    std::vector<Share> shares;
    Round round;
    std::vector<TakenRows*> takers;  // one for each logit row
    for (Member& member : members_) {
      if (member.over || member.script->joins > number) continue;
      if (!member.state)
        if (auto status = open(member); !status) return status;
      Share share = next(member);
      const int count = static_cast<int>(share.ids.size());
      if (share.detour)
        if (auto status = member.state->record(model_.backend(), count); !status) return status;
      CHECK(member.state->reserve(member.done + count), "a pool planned too small");
      for (int i = 0; i < share.right; ++i) {
        const int position = member.done + i;
        if (position % stride_ != 0 && position + 1 != member.end()) continue;
        round.logit_rows.push_back(round.rows() + i);
        member.taken.positions.push_back(position);
        takers.push_back(&member.taken);
      }
      round.add(*member.state, member.done, share.ids.data(), count, member.script->prompt);
      shares.push_back(std::move(share));
    }
    if (shares.empty()) return Status::ok();  // all that is left joins later
    if (auto status = model_.forward(round, *workspace_); !status) return status;
    if (auto status = take(takers); !status) return status;
    for (const Share& share : shares)
      if (auto status = settle(share); !status) return status;
    return Status::ok();
  }

  Status take(const std::vector<TakenRows*>& takers) {
    const auto vocab = static_cast<std::size_t>(loaded_.card.vocab_size);
    logits_.resize(kHeadRows * vocab);
    for (std::size_t first = 0; first < takers.size(); first += kHeadRows) {
      const std::size_t rows = std::min(kHeadRows, takers.size() - first);
      const Matrix host(logits_.data(), static_cast<int>(rows), static_cast<int>(vocab));
      if (auto status = model_.head(*workspace_, static_cast<int>(first), host); !status) return status;
      for (std::size_t r = 0; r < rows; ++r) {
        const auto from = logits_.begin() + static_cast<std::ptrdiff_t>(r * vocab);
        auto& to = takers[first + r]->logits;
        to.insert(to.end(), from, from + static_cast<std::ptrdiff_t>(vocab));
      }
    }
    return Status::ok();
  }

  Status settle(const Share& share) {
    Member& member = *share.member;
    if (share.detour) {
      ++member.detour;
      if (auto status = model_.roll_back(*member.state, share.right, *workspace_); !status) return status;
    }
    member.done += share.right;
    ++member.round;
    if (member.done < member.end()) return Status::ok();
    member.over = true;
    member.state.reset();
    return Status::ok();
  }

  const LoadedModel& loaded_;
  const Model& model_;
  Placement placement_;
  int stride_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<Workspace> workspace_;
  std::vector<Member> members_;  // after the pool: freed first
  std::vector<float> logits_;
};

}  // namespace

Result<std::vector<TakenRows>> run_rows(const LoadedModel& loaded, std::span<const StreamScript> scripts,
                                        const Placement& placement, int stride) {
  RowRun run(loaded, placement, stride);
  if (auto status = run.prepare(scripts); !status) return status;
  return run.run();
}

}  // namespace steadfast
