// The engine's thread: admits streams, runs rounds, draws and commits tokens, hands pieces to their owners.
#include "engine/engine.h"

#include <algorithm>

#include "engine/engine_stream.h"
#include "schedule/plan.h"

namespace steadfast {
namespace {

constexpr int kLogitRows = 64;  // draws at a time

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<LoadedModel> loaded, const EngineOptions& options) {
  if (options.streams < 1 || options.streams > 4096)
    return Status::error("--parallel {}: give a number from 1 to 4096", options.streams);
  if (options.row_budget < 1) return Status::error("a round needs at least one row");
  if (options.context < 0 || options.context > loaded->model->config().max_positions)
    return Status::error("--context {}: the model was made for at most {} positions", options.context,
                         loaded->model->config().max_positions);
  if (options.context > 0) loaded->card.window = options.context;
  std::unique_ptr<Engine> engine(new Engine(std::move(loaded), options));
  const int rows = std::max(options.row_budget, options.streams);
  engine->options_.row_budget = rows;
  auto workspace = Workspace::create(*engine->loaded_->backend, engine->loaded_->model->config(), rows,
                                     std::min(options.streams, kLogitRows));
  if (!workspace) return workspace.status();
  engine->workspace_ = std::move(*workspace);
  if (options.paged) {
    if (auto status = engine->plan_pool(); !status) return status;
  }
  engine->thread_ = std::thread([raw = engine.get()] { raw->loop(); });
  return engine;
}

Engine::Engine(std::shared_ptr<LoadedModel> loaded, const EngineOptions& options)
    : loaded_(std::move(loaded)), options_(options) {}

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
    return Status::error("the prompt has {} tokens; a stream holds {} positions here, prompt and reply together",
                         prompt, window);
  const int positions = pool_ ? std::min(window, pool_->pages() * pool_->page_positions()) : window;
  if (prompt >= positions)
    return Status::error("the prompt has {} tokens; the pool holds {} positions, prompt and reply together", prompt,
                         positions);
  const int room = positions - static_cast<int>(prompt);
  const std::lock_guard lock(mutex_);
  auto stream = std::make_unique<Stream>(next_handle_++, std::move(request), std::move(handler), tokenizer());
  stream->limit = stream->request.max_tokens > 0 ? std::min(stream->request.max_tokens, room) : room;
  const ReplyHandle handle = stream->handle;
  waiting_.push_back(std::move(stream));
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
  if (stream.handler.on_end) stream.handler.on_end(last);
}

// Takes cancellations and newcomers; false: nothing to run.
bool Engine::admit(std::unique_lock<std::mutex>& lock) {
  std::vector<std::unique_ptr<Stream>> gone;
  for (auto& stream : waiting_)
    if (stop_ || cancelled_.count(stream->handle) != 0) gone.push_back(std::move(stream));
  std::erase(waiting_, nullptr);
  std::vector<Stream*> stopped;
  for (auto& stream : running_)
    if (stop_ || cancelled_.count(stream->handle) != 0) stopped.push_back(stream.get());
  cancelled_.clear();
  lock.unlock();  // handlers and allocation run without the lock
  for (auto& stream : gone) end(*stream, FinishReason::kCancelled, "");
  for (Stream* stream : stopped) end(*stream, FinishReason::kCancelled, "");
  drop_ended();
  lock.lock();
  while (!waiting_.empty() && !stop_ && running_.size() < static_cast<std::size_t>(options_.streams) &&
         fits_now(*waiting_.front())) {
    auto stream = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const auto status = start_stream(*stream);
    if (status)
      running_.push_back(std::move(stream));
    else
      end(*stream, FinishReason::kError, status.message());
    lock.lock();
  }
  counters_.streams_waiting = static_cast<int>(waiting_.size());
  counters_.streams_running = static_cast<int>(running_.size());
  count_memory();
  return !running_.empty();
}

void Engine::drop_ended() {
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

void Engine::run_round() {
  std::vector<PlanInput> inputs;
  std::vector<Stream*> order;  // running_ may shrink while pages are found
  for (const auto& stream : running_) {
    inputs.push_back({stream->pending()});
    order.push_back(stream.get());
  }
  Round round;
  std::vector<std::pair<Stream*, int>> members;  // and where each stood before
  for (const PlanEntry& entry : plan_round(inputs, options_.row_budget, options_.piece)) {
    Stream& stream = *order[static_cast<std::size_t>(entry.stream)];
    if (stream.state == nullptr) continue;  // set aside for an older stream
    const int rows = rows_allowed(stream, entry.rows);
    if (!reserve(stream, rows)) continue;
    members.emplace_back(&stream, rows);
  }
  std::erase_if(members, [](const auto& member) { return member.first->state == nullptr; });
  std::vector<Stream*> drawing;
  for (auto& [stream, rows] : members) {
    round.add(*stream->state, stream->done, stream->tokens.data() + stream->done, rows);
    stream->done += rows;
    if (stream->pending() > 0) continue;
    round.logit_rows.push_back(round.rows() - 1);
    drawing.push_back(stream);
  }
  return_set_aside();
  if (members.empty()) return;
  const auto status = loaded_->model->forward(round, *workspace_);
  if (!status) {  // only the streams of this round fail
    for (auto& [stream, rows] : members) end(*stream, FinishReason::kError, status.message());
    return;
  }
  count_round(members);
  for (auto& [stream, rows] : members) keep_pages(*stream, stream->done - rows);
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
