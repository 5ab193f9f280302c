// The engine's thread: admits streams, runs rounds, draws and commits tokens, hands pieces to their owners.
#include "engine/engine.h"

#include <algorithm>

#include "engine/engine_stream.h"

namespace steadfast {
namespace {

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<LoadedModel> loaded, const EngineOptions& options) {
  auto plan = plan_memory(*loaded->model, loaded->kv_dtype, options);
  if (!plan) return plan.status();
  loaded->card.window = plan->context;
  std::unique_ptr<Engine> engine(new Engine(std::move(loaded), options, *plan));
  auto workspace = Workspace::create(*engine->loaded_->backend, engine->loaded_->model->config(), plan->rows,
                                     plan->logit_rows, plan->positions());
  if (!workspace) return workspace.status();
  engine->workspace_ = std::move(*workspace);
  if (options.paged) {
    if (auto status = engine->make_pool(); !status) return status;
  } else {
    engine->make_windows();
  }
  engine->thread_ = std::thread([raw = engine.get()] { raw->loop(); });
  return engine;
}

Engine::Engine(std::shared_ptr<LoadedModel> loaded, const EngineOptions& options, const MemoryPlan& plan)
    : loaded_(std::move(loaded)),
      options_(options),
      memory_(plan),
      planner_({plan.rows, options.piece, options.prompt_share, loaded_->backend->round_cost()}) {}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<ReplyHandle> Engine::submit(Request request, ReplyHandler handler) {
  if (request.prompt.empty()) return Status::error("the prompt is empty; give at least one token");
  const int vocab = loaded_->card.vocab_size, window = loaded_->card.window;
  for (const TokenId id : request.prompt)
    if (id < 0 || id >= vocab) return Status::error("id {} is outside the vocabulary of {}", id, vocab);
  if (request.max_tokens < 0) return Status::error("max_tokens {} is negative", request.max_tokens);
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  if (prompt >= window)
    return Status::error(
        "the prompt has {} tokens; a stream holds {} positions here, prompt and reply together: a prompt of {} and a "
        "reply of one token would fit",
        prompt, window, window - 1);
  const int room = window - static_cast<int>(prompt);
  const std::lock_guard lock(mutex_);
  auto stream = std::make_unique<Stream>(next_handle_++, std::move(request), std::move(handler), tokenizer());
  stream->limit = stream->request.max_tokens > 0 ? std::min(stream->request.max_tokens, room) : room;
  const ReplyHandle handle = stream->handle;
  insert(waiting_, std::move(stream));
  ++counters_.requests;
  counters_.prompt_tokens += static_cast<std::uint64_t>(prompt);
  ++counters_.streams_waiting;
  wake_.notify_all();
  return handle;
}

void Engine::cancel(ReplyHandle handle) {
  const std::lock_guard lock(mutex_);
  cancelled_.insert(handle);
  wake_.notify_all();
}

ServiceCounters Engine::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void Engine::end(Stream& stream, FinishReason reason, std::string error) {
  const auto now = Clock::now();
  ReplyEnd last;
  last.reason = reason;
  last.error = std::move(error);
  last.stop = stream.writer.matched().value_or("");
  last.path = stream.path;
  last.timings.prompt_tokens = static_cast<int>(stream.request.prompt.size());
  last.timings.reply_tokens = static_cast<int>(stream.history.reply.size());
  last.timings.queue_seconds = seconds(stream.submitted, stream.began ? stream.started : now);
  if (last.timings.reply_tokens > 0) {
    last.timings.prompt_seconds = seconds(stream.started, stream.first_token);
    last.timings.reply_seconds = seconds(stream.first_token, now);
  }
  stream.ended = true;
  stream.failed = reason == FinishReason::kError;
  if (stream.handler.on_end) stream.handler.on_end(last);
}

void Engine::drop_ended() {
  for (auto& stream : running_)
    if (stream->ended) release(*stream, !stream->failed);
  std::erase_if(running_, [](const auto& stream) { return stream->ended; });
}

void Engine::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool work = admit(lock);
    if (stop_) {
      if (!work && waiting_.empty()) return;
      continue;
    }
    if (!work) {
      wake_.wait(lock, [&] { return stop_ || !waiting_.empty() || !cancelled_.empty(); });
      continue;
    }
    lock.unlock();
    run_round();
    drop_ended();
    lock.lock();
  }
}

// Plans, and finds memory for the plan: what follows is the round's rows, its members with the rows of each, and those
// that draw.
void Engine::choose_rows(Round& round, std::vector<std::pair<Stream*, int>>& members, std::vector<Stream*>& drawing) {
  std::vector<PlanInput> inputs;
  for (const auto& stream : running_)
    inputs.push_back({stream->pending(), rows_to_border(*stream), stream->replying(), stream->request.background});
  for (const PlanEntry& entry : planner_.plan(inputs)) {
    Stream& stream = *running_[static_cast<std::size_t>(entry.stream)];
    if (stream.state == nullptr) continue;  // set aside for one before it
    if (reserve(stream, entry.rows)) members.emplace_back(&stream, entry.rows);
  }
  std::erase_if(members, [](const auto& member) { return member.first->state == nullptr; });
  // Rows of one role side by side: fewer linears where the roles' differ.
  const auto role = [](const auto& member) {
    return (member.first->done >= member.first->prompt()) +
           (member.first->done + member.second > member.first->prompt());
  };
  if (loaded_->backend->prompt_act() != loaded_->backend->act())
    std::stable_sort(members.begin(), members.end(), [&](const auto& a, const auto& b) { return role(a) < role(b); });
  for (auto& [stream, rows] : members) {
    round.add(*stream->state, stream->done, stream->tokens.data() + stream->done, rows, stream->prompt());
    stream->done += rows;
    if (stream->pending() > 0) continue;
    round.logit_rows.push_back(round.rows() - 1);
    drawing.push_back(stream);
  }
  return_set_aside();
}

void Engine::run_round() {
  Round round;
  std::vector<std::pair<Stream*, int>> members;
  std::vector<Stream*> drawing;
  choose_rows(round, members, drawing);
  if (members.empty()) return;
  const auto status = loaded_->model->forward(round, *workspace_);
  if (!status) {  // only the streams of this round fail
    for (auto& [stream, rows] : members) end(*stream, FinishReason::kError, status.message());
    return;
  }
  count_round(members);
  for (auto& [stream, rows] : members) keep_prefix(*stream, stream->done - rows);
  if (progress_ && members.size() == 1 && members[0].first->history.reply.empty())
    progress_(members[0].first->done, static_cast<int>(members[0].first->tokens.size()));
  if (auto drew = draw_all(drawing); !drew)
    for (auto& [stream, rows] : members)
      if (!stream->ended) end(*stream, FinishReason::kError, drew.message());
}

void Engine::count_round(std::span<const std::pair<Stream*, int>> members) {
  std::uint64_t sum = 0;
  for (const auto& [stream, rows] : members) {
    sum += static_cast<std::uint64_t>(rows);
    ++stream->path.rounds;
    stream->path.rounds_shared += members.size() > 1;
    stream->path.prompt_pieces += stream->done - rows < static_cast<int>(stream->request.prompt.size());
  }
  const std::lock_guard lock(mutex_);
  ++counters_.rounds;
  counters_.rows += sum;
}

// Draws for the streams of the round's logit rows, as many at a time as the workspace holds logits.
Status Engine::draw_all(std::span<Stream* const> drawing) {
  int vocab = loaded_->card.vocab_size;
  if (loaded_->tokenizer) vocab = std::min(vocab, static_cast<int>(loaded_->tokenizer->vocab_size()));
  const auto at_once = static_cast<std::size_t>(workspace_->logit_rows());
  for (std::size_t first = 0; first < drawing.size(); first += at_once) {
    const auto part = drawing.subspan(first, std::min(at_once, drawing.size() - first));
    auto logits = loaded_->model->logits(*workspace_, static_cast<int>(first), static_cast<int>(part.size()));
    if (!logits) return logits.status();
    std::vector<DrawJob> jobs;
    for (const Stream* stream : part)
      jobs.push_back({&stream->request.sampling, &stream->history, static_cast<std::int64_t>(stream->tokens.size()),
                      vocab, stream->request.top_logprobs});
    std::vector<Drawn> drawn(part.size());
    if (auto status = loaded_->backend->draw(*logits, jobs, drawn); !status) return status;
    for (std::size_t i = 0; i < part.size(); ++i) commit(*part[i], drawn[i]);
  }
  return Status::ok();
}

void Engine::commit(Stream& stream, Drawn& drawn) {
  const Request& request = stream.request;
  const TokenId id = drawn.id;
  std::vector<TokenLogprob> logprobs;
  if (drawn.logprob) logprobs.push_back(std::move(*drawn.logprob));
  if (stream.history.reply.empty()) stream.first_token = Clock::now();
  stream.tokens.push_back(id);
  stream.history.reply.push_back(id);
  const auto holds = [id](const std::vector<TokenId>& ids) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  const bool stop_id = holds(request.stop_ids) || (!request.ignore_eos && holds(loaded_->card.eos_ids));
  std::string text = stop_id ? "" : stream.writer.push(id);
  const bool length = static_cast<int>(stream.history.reply.size()) >= stream.limit;
  const bool matched = stream.writer.matched().has_value();
  if ((stop_id || length) && !matched) text += stream.writer.finish();
  deliver(stream, id, std::move(text), std::move(logprobs));
  if (stop_id || stream.writer.matched())
    end(stream, FinishReason::kStop, "");
  else if (length)
    end(stream, FinishReason::kLength, "");
}

void Engine::deliver(Stream& stream, TokenId id, std::string text, std::vector<TokenLogprob> logprobs) {
  {
    const std::lock_guard lock(mutex_);
    ++counters_.reply_tokens;
  }
  if (!stream.handler.on_piece) return;
  ReplyPiece piece;
  piece.ids = {id};
  piece.text = std::move(text);
  piece.logprobs = std::move(logprobs);
  stream.handler.on_piece(piece);
}

}  // namespace steadfast
