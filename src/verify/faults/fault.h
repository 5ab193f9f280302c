// Faults that `verify --plant` puts into a running engine. Each is a Backend around the true one: no kernel of the
// product carries a fault. Each is wrong only in what the row law forbids to matter (streams, pages, threads, pieces),
// so that the equalities can see it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "backend/backend.h"

namespace steadfast {

enum class Fault : std::uint8_t {
  kTableSwap,
  kPageRow,
  kPosition,
  kStaleState,
  kSharedWrite,
  kNeighbourScale,
  kSpanBorder,
  kThreadSum,
};

struct FaultInfo {
  Fault fault;
  const char* name;      // as --plant takes it
  const char* sentence;  // what is wrong
};

std::span<const FaultInfo> all_faults();
const FaultInfo& info(Fault fault);
Result<Fault> parse_fault(const std::string& name);

// What a model has to have for a fault to make a difference.
struct FaultGround {
  bool attention = false, recurrent = false;
  int window = 0;
};
// Why a model of this kind cannot carry the fault; empty: it can.
std::string cannot_carry(Fault fault, const FaultGround& ground);

// The backend with the fault. workers: its threads; 0: a device without threads of ours, whose sums then follow the
// number of rows.
std::unique_ptr<Backend> plant(Fault fault, std::unique_ptr<Backend> backend, int workers);

}  // namespace steadfast
