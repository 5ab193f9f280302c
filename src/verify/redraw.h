// redraw: what the engine would draw for each token of a reply, from the rows of a prompt that holds the whole reply.
#pragma once

#include "verify/reply_run.h"

namespace steadfast {

// Prompt and reply run as one prompt in pieces of `chunk` rows, in a whole window; each token is drawn by the backend
// from the row before it, with its log-probability.
Result<Reply> redraw(const LoadedModel& loaded, const Request& request, const Reply& reply, int chunk);

}  // namespace steadfast
