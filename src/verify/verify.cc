// The checks in order, each for every cache type; a planted fault's own ones only.
#include "verify/verify.h"

#include <algorithm>
#include <chrono>

#include "verify/checks.h"

namespace steadfast {
namespace {

constexpr Check kThreads{"any number of threads", check_threads, Check::Types::kFirst};
constexpr Check kInstructionSets{"scalar = AVX2 = AVX-512", check_instruction_sets, Check::Types::kFirst};
constexpr Check kGraphs{"a graph's replay = the launches", check_graphs, Check::Types::kEvery};
constexpr Check kPieces{"a prompt in pieces of 1 to 1000 rows = in one piece", check_pieces};
constexpr Check kTogether{"streams in shared rounds = each alone", check_together};
constexpr Check kStaggered{"streams that join and leave = each alone", check_staggered};
constexpr Check kPages{"on pages of every size = in a whole window", check_pages, Check::Types::kEvery};
constexpr Check kRolledBack{"rows rolled back = never run", check_rolled_back};
constexpr Check kReplyRows{"a reply's rows = a prompt's rows", check_reply_rows};
constexpr Check kRepliesTogether{"replies together = each alone", check_replies_together};
constexpr Check kArrivals{"replies that arrive and are cancelled = each alone", check_arrivals};
constexpr Check kRepliesOnPages{"replies on pages, in pieces = in whole windows", check_replies_on_pages,
                                Check::Types::kEvery};
constexpr Check kWarm{"resumed from a kept prefix = from nothing", check_warm};
constexpr Check kGrowingChat{"a growing chat, resumed = from nothing", check_growing_chat};
constexpr Check kSetAside{"set aside for want of pages = never set aside", check_set_aside};

std::vector<Check> all_checks() {
  return {kThreads,   kInstructionSets, kGraphs,   kPieces,         kTogether, kStaggered,   kPages,   kRolledBack,
          kReplyRows, kRepliesTogether, kArrivals, kRepliesOnPages, kWarm,     kGrowingChat, kSetAside};
}

// The equalities that a fault of this kind has to break.
std::vector<Check> checks_for(Fault fault, bool on_cpu) {
  switch (fault) {
    case Fault::kTableSwap:
    case Fault::kPageRow:
      return {kPages, kRepliesOnPages};
    case Fault::kPosition:
    case Fault::kNeighbourScale:
      return {kPieces, kTogether};
    case Fault::kStaleState:
      return {kRolledBack};
    case Fault::kSharedWrite:
      return {kWarm};
    case Fault::kSpanBorder:
      return {kTogether, kStaggered};
    case Fault::kThreadSum:
      break;
  }
  return on_cpu ? std::vector{kThreads} : std::vector{kPieces, kTogether};
}

void add_type(Equality& row, DType kv) { row.kv += fmt::format("{}{}", row.kv.empty() ? "" : " ", kv_dtype_name(kv)); }

Status run(const Check& check, Trial& trial, Equality& row) {
  const auto start = std::chrono::steady_clock::now();
  row.name = check.name;
  for (const DType kv : trial.kv_types()) {
    trial.use(kv);
    add_type(row, kv);
    if (auto status = check.run(trial, row); !status) return status;
    const bool all = check.types == Check::Types::kEvery || (check.types == Check::Types::kFullOnly && trial.full());
    if (!all || trial.enough(row)) break;
  }
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Status::ok();
}

FaultGround ground_of(const LoadedModel& model) {
  const ModelConfig& config = model.model->config();
  return {config.recurrent_layers() < config.layers, config.recurrent_layers() > 0, model.card.window};
}

}  // namespace

const Equality* Verification::first_differing() const {
  const auto found = std::find_if(table.begin(), table.end(), [](const Equality& row) { return row.differing > 0; });
  return found == table.end() ? nullptr : &*found;
}

std::int64_t Verification::rows() const {
  std::int64_t sum = 0;
  for (const Equality& row : table) sum += row.rows;
  return sum;
}

std::int64_t Verification::replies() const {
  std::int64_t sum = 0;
  for (const Equality& row : table) sum += row.replies;
  return sum;
}

Result<Verification> verify(const std::filesystem::path& model, const LoadOptions& base, const VerifyOptions& options) {
  auto trial = Trial::create(model, base, options);
  if (!trial) return trial.status();
  Verification result;
  result.device = (*trial)->model().backend->describe();
  if (options.plant) result.cannot_carry = cannot_carry(*options.plant, ground_of((*trial)->model()));
  if (!result.cannot_carry.empty()) return result;
  for (const Check& check : options.plant ? checks_for(*options.plant, (*trial)->on_cpu()) : all_checks()) {
    Equality& row = result.table.emplace_back();
    if (auto status = run(check, **trial, row); !status) return status;
    if (options.progress) options.progress(row);
    if ((*trial)->enough(row)) break;
  }
  return result;
}

}  // namespace steadfast
