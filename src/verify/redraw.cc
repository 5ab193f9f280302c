// One stream, pieces of rows, draws of the rows before the reply's tokens.
#include "verify/redraw.h"

#include <algorithm>

namespace steadfast {
namespace {

// Draws from the round's `count` logit rows the tokens that follow those in `again`.
Status draw_rows(const LoadedModel& loaded, const Workspace& workspace, const Request& request, const Reply& reply,
                 int count, Reply& again) {
  int vocab = loaded.card.vocab_size;
  if (loaded.tokenizer) vocab = std::min(vocab, static_cast<int>(loaded.tokenizer->vocab_size()));
  for (int row = 0; row < count; ++row) {
    auto logits = loaded.model->logits(workspace, row, 1);
    if (!logits) return logits.status();
    const std::size_t made = again.ids.size();
    const History history{request.prompt, {reply.ids.begin(), reply.ids.begin() + static_cast<std::ptrdiff_t>(made)}};
    const auto position = static_cast<std::int64_t>(request.prompt.size() + made);
    const DrawJob job{&request.sampling, &history, position, vocab, 0};
    Drawn drawn;
    if (auto status = loaded.backend->draw(*logits, {&job, 1}, {&drawn, 1}); !status) return status;
    again.ids.push_back(drawn.id);
    again.logprobs.push_back(drawn.logprob ? drawn.logprob->logprob : 0);
  }
  return Status::ok();
}

}  // namespace

Result<Reply> redraw(const LoadedModel& loaded, const Request& request, const Reply& reply, int chunk) {
  const Model& model = *loaded.model;
  std::vector<TokenId> all = request.prompt;
  all.insert(all.end(), reply.ids.begin(), reply.ids.end());
  const int count = static_cast<int>(all.size()) - 1;  // the last token's own row draws nothing
  const int drawing = static_cast<int>(request.prompt.size()) - 1;
  auto workspace = Workspace::create(model.backend(), model.config(), std::min(chunk, count));
  if (!workspace) return workspace.status();
  auto state = StreamState::create(model.backend(), model.cache_shape(loaded.kv_dtype), count);
  if (!state) return state.status();
  Reply again;
  again.reason = reply.reason;
  for (int first = 0; first < count; first += chunk) {
    const int rows = std::min(chunk, count - first);
    Round round;
    round.add(**state, first, all.data() + first, rows, static_cast<int>(request.prompt.size()));
    for (int i = std::max(0, drawing - first); i < rows; ++i) round.logit_rows.push_back(i);
    if (auto status = model.forward(round, **workspace); !status) return status;
    const int draws = static_cast<int>(round.logit_rows.size());
    if (auto status = draw_rows(loaded, **workspace, request, reply, draws, again); !status) return status;
  }
  return again;
}

}  // namespace steadfast
