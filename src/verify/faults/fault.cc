// The list of faults and what each needs.
#include "verify/faults/fault.h"

#include <algorithm>

#include "verify/faults/planted.h"

namespace steadfast {
namespace {

constexpr FaultInfo kFaults[] = {
    {Fault::kTableSwap, "table-swap", "attention reads a page table with two entries swapped"},
    {Fault::kPageRow, "page-row", "one row of each stream's first page is overwritten with the next one's"},
    {Fault::kPosition, "position", "a piece that does not begin a stream is taken for one position too low"},
    {Fault::kStaleState, "stale-state", "a roll-back restores only half of the recurrent states"},
    {Fault::kSharedWrite, "shared-write", "a stream writes its last row into a page that it shares"},
    {Fault::kNeighbourScale, "neighbour-scale",
     "a row's activations are quantised with the scale of the row before it"},
    {Fault::kSpanBorder, "span-border", "attention's spans are 512 + 16 x streams positions long"},
    {Fault::kThreadSum, "thread-sum", "a norm's sum of squares is cut into as many parts as there are threads"},
};

constexpr int kPage = 16;  // the smallest

}  // namespace

std::span<const FaultInfo> all_faults() { return kFaults; }

const FaultInfo& info(Fault fault) {
  return *std::find_if(std::begin(kFaults), std::end(kFaults), [&](const FaultInfo& f) { return f.fault == fault; });
}

Result<Fault> parse_fault(const std::string& name) {
  std::string names;
  for (const FaultInfo& fault : kFaults) {
    if (name == fault.name) return fault.fault;
    names += fmt::format("{}, ", fault.name);
  }
  return Status::error("--plant {}: use {}all or list", name, names);
}

std::string cannot_carry(Fault fault, const FaultGround& ground) {
  const auto positions = [&](int needed) {
    return ground.window < needed
               ? fmt::format("it needs a window of {} positions, this model has {}", needed, ground.window)
               : std::string();
  };
  const std::string no_attention = "the model has no attention layers";
  switch (fault) {
    case Fault::kTableSwap:
      return ground.attention ? positions(kPage + 2) : no_attention;
    case Fault::kPageRow:
      return ground.attention ? positions(kPage) : no_attention;
    case Fault::kSharedWrite:
      return ground.attention ? positions(2 * kPage) : no_attention;
    case Fault::kPosition:
      return ground.attention ? positions(3) : no_attention;
    case Fault::kStaleState:
      return ground.recurrent ? positions(8) : "the model has no recurrent layers";
    case Fault::kSpanBorder:
      return ground.attention ? positions(600) : no_attention;
    case Fault::kNeighbourScale:
    case Fault::kThreadSum:
      break;
  }
  return positions(2);
}

std::unique_ptr<Backend> plant(Fault fault, std::unique_ptr<Backend> backend, int workers) {
  switch (fault) {
    case Fault::kTableSwap:
      return planted::table_swap(std::move(backend));
    case Fault::kPageRow:
      return planted::page_row(std::move(backend));
    case Fault::kPosition:
      return planted::position(std::move(backend));
    case Fault::kStaleState:
      return planted::stale_state(std::move(backend));
    case Fault::kSharedWrite:
      return planted::shared_write(std::move(backend));
    case Fault::kNeighbourScale:
      return planted::neighbour_scale(std::move(backend));
    case Fault::kSpanBorder:
      return planted::span_border(std::move(backend));
    case Fault::kThreadSum:
      break;
  }
  return planted::thread_sum(std::move(backend), workers);
}

}  // namespace steadfast
