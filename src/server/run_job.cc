// From submitted requests to the reply: one whole, or a stream of events. A client that leaves, a reply that takes too
// long and a server that stops end the engine's work on it.
#include <spdlog/spdlog.h>

#include "server/api_state.h"

namespace steadfast {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook{50};  // how often the client's presence is looked at

class Running {
 public:
  Running(ApiState& state, Connection& connection, Job job)
      : state_(state),
        connection_(connection),
        job_(std::move(job)),
        set_(state.service, state.streams, state.options.unread_bytes),
        started_(Clock::now()) {
    // A write that waits for the client must not outlast the reply's other ends.
    connection_.give_up = [this] { return ended_early().has_value(); };
  }
  ~Running() { connection_.give_up = nullptr; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  std::optional<ApiError> submit() {
    connection_.record.id = job_.builder->id();
    connection_.record.prompt_tokens = job_.builder->prompt_tokens();
    return set_.submit(std::move(job_.requests));
  }

  // Calls take(event) for every event; the error that ended the replies early, if one did. take returns false to end.
  template <typename Take>
  std::optional<ApiError> follow(const Take& take) {
    std::optional<ApiError> error;
    while (!set_.done() && !error) {
      auto event = set_.next(kLook);
      error = trouble(event);
      if (!event || error) continue;
      if (!saw_first_ && !event->piece.ids.empty()) {
        saw_first_ = true;
        state_.metrics.first_token(std::chrono::duration<double>(Clock::now() - started_).count());
      }
      if (!take(*event)) error = ended_early().value_or(gone());
    }
    connection_.record.reply_tokens = job_.builder->completion_tokens();
    if (error) {
      set_.cancel();
      connection_.record.note = error->message;
    }
    return error;
  }

  ReplyBuilder& builder() { return *job_.builder; }
  bool include_usage() const { return job_.include_usage; }

 private:
  static ApiError gone() { return {499, "the client closed the connection", "", "client_gone"}; }

  // Ends that do not come with an event.
  std::optional<ApiError> ended_early() const {
    if (set_.overflowed()) return ApiError{503, "the client reads its reply too slowly", "", "slow_client"};
    if (state_.stopping) return ApiError{503, "the reply was cancelled: the server is stopping", "", "cancelled"};
    const std::chrono::duration<double> spent = Clock::now() - started_;
    if (state_.options.reply_seconds > 0 && spent.count() > state_.options.reply_seconds) {
      return ApiError{504, "the reply took longer than this server allows", "", "timeout"};
    }
    return std::nullopt;
  }

  std::optional<ApiError> trouble(const std::optional<ReplyEvent>& event) {
    if (set_.overflowed()) return ended_early();
    if (event && event->end) {
      const ReplyEnd& end = *event->end;
      if (end.reason == FinishReason::kError) spdlog::error("{}: {}", job_.builder->id(), shown_word(end.error));
      if (end.reason == FinishReason::kError || end.reason == FinishReason::kCancelled) return end_error(end);
      return std::nullopt;
    }
    if (!event && !connection_.peer_alive()) return gone();
    return ended_early();
  }

  ApiState& state_;
  Connection& connection_;
  Job job_;
  ReplySet set_;
  Clock::time_point started_;
  bool saw_first_ = false;
};

bool write_events(httplib::DataSink& sink, const std::vector<Json>& chunks) {
  std::string text;
  for (const Json& chunk : chunks) text += event_text(chunk);
  return text.empty() || sink.write(text.data(), text.size());
}

bool write_stream(Running& running, httplib::DataSink& sink) {
  if (!write_events(sink, running.builder().opening())) return false;
  const auto error =
      running.follow([&](const ReplyEvent& event) { return write_events(sink, running.builder().stream(event)); });
  if (error && error->status == 499) return false;
  if (error && !write_events(sink, {to_json(*error)})) return false;
  if (!error && running.include_usage() && !write_events(sink, {running.builder().usage_chunk()})) return false;
  if (!sink.write(kLastEvent.data(), kLastEvent.size())) return false;
  sink.done();
  return true;
}

void start_stream(const httplib::Request& request, httplib::Response& response, std::shared_ptr<Running> running) {
  response.status = 200;
  response.set_header("Cache-Control", "no-cache");
  response.set_header("X-Accel-Buffering", "no");
  // One call writes the whole stream: httplib would end it between calls as soon as the server begins to stop.
  const auto provider = [running](std::size_t, httplib::DataSink& sink) { return write_stream(*running, sink); };
  if (request.version == "HTTP/1.0") {
    response.set_content_provider("text/event-stream", provider);
  } else {
    response.set_chunked_content_provider("text/event-stream", provider);
  }
}

}  // namespace

void run_job(ApiState& state, const httplib::Request& request, httplib::Response& response, Job job) {
  const bool stream = job.stream;
  auto running = std::make_shared<Running>(state, connection_of(request), std::move(job));
  response.set_header("X-Request-Id", running->builder().id());
  if (const auto error = running->submit()) return reply_error(request, response, *error);
  if (stream) return start_stream(request, response, std::move(running));
  const auto error = running->follow([&](const ReplyEvent& event) {
    running->builder().collect(event);
    return true;
  });
  if (error) return reply_error(request, response, *error);
  reply_json(response, 200, running->builder().whole());
}

}  // namespace steadfast
