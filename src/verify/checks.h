// The checks of verify: each computes the same rows or replies in two ways and compares bits. One function a row of the
// table (docs/verify.md says what each row means).
#pragma once

#include "verify/trial.h"

namespace steadfast {

struct Check {
  const char* name;
  Status (*run)(Trial& trial, Equality& row);  // for one cache type, trial.kv()
  enum class Types : std::uint8_t {
    kFirst,     // the first cache type alone
    kFullOnly,  // with --full every cache type, else the first
    kEvery,
  };
  Types types = Types::kFullOnly;
};

// On rows of logits (row_checks.cc).
Status check_threads(Trial& trial, Equality& row);
Status check_instruction_sets(Trial& trial, Equality& row);
Status check_graphs(Trial& trial, Equality& row);
Status check_pieces(Trial& trial, Equality& row);
Status check_together(Trial& trial, Equality& row);
Status check_staggered(Trial& trial, Equality& row);
Status check_pages(Trial& trial, Equality& row);
Status check_rolled_back(Trial& trial, Equality& row);

// On replies of the engine (reply_checks.cc).
// Replies in company, in windows and on pages, by the same model opened under other settings.
Status compare_replies_of(Trial& trial, Equality& row, const std::shared_ptr<LoadedModel>& other,
                          const std::string& how);
Status check_reply_rows(Trial& trial, Equality& row);
Status check_replies_together(Trial& trial, Equality& row);
Status check_arrivals(Trial& trial, Equality& row);
Status check_replies_on_pages(Trial& trial, Equality& row);
Status check_warm(Trial& trial, Equality& row);
Status check_growing_chat(Trial& trial, Equality& row);
Status check_set_aside(Trial& trial, Equality& row);

}  // namespace steadfast
