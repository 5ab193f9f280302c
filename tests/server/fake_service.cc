// One thread that gives each running stream a token in turn.
#include "fake_service.h"

#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace steadfast::testing {

namespace {

constexpr TokenId kEndOfText = 264, kEnd = 266, kFirstAdded = 264;

constexpr std::string_view kPlainTemplate = R"(
{%- if messages[0].role == 'tool' %}{{ raise_exception('a conversation cannot begin with a tool') }}{%- endif %}
@TOOLS@
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' }}
{%- if message.reasoning_content %}{{- '<think>\n' + message.reasoning_content + '\n</think>\n\n' }}{%- endif %}
{%- if message.content is string %}{{- message.content | trim }}
{%- else %}{%- for part in message.content %}{{- part.text }}{%- endfor %}
{%- endif %}
{%- for call in message.tool_calls %}
{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}@THINK@{%- endif %}
)";

constexpr std::string_view kTools = R"(
{%- if tools %}
{{- '<|im_start|>system\nTools:' }}
{%- for tool in tools %}{{- '\n' + (tool | tojson) }}{%- endfor %}
{{- '\nCall them as @CALL@<|im_end|>\n' }}
{%- endif %})";

constexpr std::string_view kEffort = R"(
{%- if reasoning_effort is defined %}
{%- if reasoning_effort not in ['low', 'medium', 'xhigh'] %}{{ raise_exception('Unexpected reasoning effort') }}{%- endif %}
{{- '<|im_start|>system\nEffort: ' + reasoning_effort + '<|im_end|>\n' }}
{%- endif %})";

void replace(std::string& text, std::string_view what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xBF58476D1CE4E5B9ULL;
  return hash ^ (hash >> 29);
}

}  // namespace

std::string fake_tokenizer_json() {
  Json vocab = Json::object(), merges = Json::array(), added = Json::array();
  for (int byte = 0; byte < 256; ++byte) vocab[bytes_to_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  int id = 256;
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"h", "e"}, {" ", "he"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {"t", "h"}, {"th", "e"}, {" ", "the"}}) {
    vocab[bytes_to_alphabet(left + right)] = id++;
    merges.push_back(bytes_to_alphabet(left) + " " + bytes_to_alphabet(right));
  }
  const auto add = [&](const char* text, bool special) {
    added.push_back({{"id", id++},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
  };
  for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) add(text, true);
  for (const char* text :
       {"<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"}) {
    add(text, false);
  }
  const Json json = {
      {"normalizer", {{"type", "NFC"}}},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"added_tokens", added},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
  return json.dump();
}

std::string fake_template(const FakeOptions& options) {
  std::string text(kPlainTemplate), tools;
  if (options.dated) text = "{{- strftime_now('%Y-%m-%d %H:%M:%S\n') }}" + text;
  if (options.tool_style != "none") tools = kTools;
  const std::string call = options.tool_style == "xml"    ? "<tool_call>\\n<function=NAME>"
                           : options.tool_style == "json" ? "<tool_call>\\n{\"name\": NAME}"
                                                          : "[NAME()]";
  replace(tools, "@CALL@", call);
  if (options.takes_effort) tools = std::string(kEffort) + tools;
  replace(text, "@TOOLS@", tools);
  replace(text, "@THINK@",
          options.opens_thinking
              ? "{%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\\n\\n</think>\\n\\n' }}"
                "{%- else %}{{- '<think>\\n' }}{%- endif %}"
              : "");
  return text;
}

struct FakeService::Stream {
  Request request;
  ReplyHandler handler;
  Mode mode = Mode::kHash;
  std::vector<TokenId> script, ids;
  std::size_t at = 0;
  std::string told, held;
  std::unique_ptr<StreamingDetokenizer> detokenizer;
  bool running = false, cancelled = false, ended = false;
};

FakeService::FakeService(FakeOptions options)
    : options_(std::move(options)), tokenizer_(*Tokenizer::from_json(fake_tokenizer_json())) {
  if (options_.has_template) template_.emplace(*ChatTemplate::parse(fake_template(options_), "", "<|im_end|>"));
  card_.name = "fake-model";
  card_.family = "fake";
  card_.digest = "00ff";
  card_.arithmetic = {"fake", "f32", "f32", "f32"};
  card_.vocab_size = static_cast<int>(tokenizer_.vocab_size());
  card_.window = options_.window;
  card_.created = 1700000000;
  card_.eos_ids = {kEnd, kEndOfText};
  thread_ = std::thread([this] { loop(); });
}

FakeService::~FakeService() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (auto& [handle, stream] : streams_) stream->cancelled = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::unique_ptr<FakeService::Stream> FakeService::make_stream(Request request) const {
  auto stream = std::make_unique<Stream>();
  const std::string prompt = tokenizer_.decode(request.prompt, false);
  const auto command = [&](std::string_view name) {
    const auto at = prompt.rfind(name);
    if (at == std::string::npos) return std::string();
    const auto from = at + name.size();
    return " " + prompt.substr(from, prompt.find("<|im_end|>", from) - from);
  };
  const std::string say = command("say:");
  if (!say.empty()) {
    stream->mode = Mode::kScript;
    stream->script = tokenizer_.encode(say.substr(1));
    stream->script.push_back(kEnd);
  } else if (!command("hang:").empty()) {
    stream->mode = Mode::kHang;
  } else if (!command("fail:").empty()) {
    stream->mode = Mode::kFail;
  }
  stream->detokenizer = std::make_unique<StreamingDetokenizer>(tokenizer_);
  stream->request = std::move(request);
  return stream;
}

Result<ReplyHandle> FakeService::submit(Request request, ReplyHandler handler) {
  if (request.prompt.empty()) return Status::error("the prompt is empty; send at least one token");
  for (const TokenId id : request.prompt) {
    if (!tokenizer_.contains(id)) return Status::error("the prompt has the unknown id {}", id);
  }
  if (static_cast<int>(request.prompt.size()) >= card_.window)
    return Status::error("the prompt is longer than the window");
  auto stream = make_stream(std::move(request));
  stream->handler = std::move(handler);
  const std::lock_guard lock(mutex_);
  const ReplyHandle handle = next_++;
  ++counters_.requests;
  counters_.prompt_tokens += stream->request.prompt.size();
  streams_[handle] = std::move(stream);
  wake_.notify_all();
  return handle;
}

void FakeService::cancel(ReplyHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(handle);
  if (found == streams_.end()) return;
  found->second->cancelled = true;
  wake_.notify_all();
}

ServiceCounters FakeService::counters() const {
  const std::lock_guard lock(mutex_);
  ServiceCounters out = counters_;
  out.prompt_tokens_reused = 11;  // what a service tells goes to /metrics as it is
  out.streams_set_aside = 12;
  out.rounds = 13;
  out.rows = 14;
  out.pages_free = 15;
  out.pages_kept = 16;
  out.pages_in_use = 17;
  out.kept_state_bytes = 18;
  out.streams_running = std::min(static_cast<int>(streams_.size()), options_.parallel);
  out.streams_waiting = static_cast<int>(streams_.size()) - out.streams_running;
  return out;
}

void FakeService::hold(bool held) {
  const std::lock_guard lock(mutex_);
  held_ = held;
  wake_.notify_all();
}

int FakeService::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void FakeService::finish(Stream& stream, FinishReason reason, const std::string& error, const std::string& stop) {
  stream.ended = true;
  if (reason == FinishReason::kCancelled) {
    const std::lock_guard lock(mutex_);
    ++cancelled_;
  }
  ReplyEnd end;
  end.reason = reason;
  end.error = error;
  end.stop = stop;
  end.timings.prompt_tokens = static_cast<int>(stream.request.prompt.size());
  end.timings.reply_tokens = static_cast<int>(stream.ids.size());
  end.path.prompt_pieces = 1;
  end.path.rounds = end.timings.reply_tokens;
  stream.handler.on_end(end);
}

namespace {

// The token that follows from the history: letters, now and then a character of two bytes, seldom the end.
TokenId hashed_token(const Request& request, const std::vector<TokenId>& ids) {
  std::uint64_t hash = request.sampling.temperature == 0 ? 1 : mixed(2, request.sampling.seed);
  for (const TokenId id : request.prompt) hash = mixed(hash, static_cast<std::uint64_t>(id));
  for (const TokenId id : ids) hash = mixed(hash, static_cast<std::uint64_t>(id));
  if (!ids.empty() && ids.back() == 0xC3) return static_cast<TokenId>(0xA0 + hash % 31);
  if (hash % 61 == 0 && !request.ignore_eos) return kEnd;
  if (hash % 11 == 0) return 0xC3;
  return hash % 5 == 0 ? ' ' : static_cast<TokenId>('a' + hash % 26);
}

std::vector<TokenLogprob> logprobs_of(const Request& request, TokenId id) {
  TokenLogprob one;
  one.id = id;
  one.logprob = -0.25f;
  for (int i = 0; i < request.top_logprobs; ++i) {
    one.top.emplace_back((id + i) % kFirstAdded, -0.25f - static_cast<float>(i));
  }
  return {one};
}

}  // namespace

// One token; false: the stream has ended.
bool FakeService::step(Stream& stream) {
  const Request& request = stream.request;
  if (stream.mode == Mode::kHang) return true;
  if (stream.mode == Mode::kFail) {
    finish(stream, FinishReason::kError, "device lost at /dev/secret0", "");
    return false;
  }
  const bool scripted = stream.mode == Mode::kScript;
  const TokenId id = scripted ? stream.script[stream.at++] : hashed_token(request, stream.ids);
  stream.ids.push_back(id);
  ReplyPiece piece;
  piece.ids = {id};
  if (request.top_logprobs >= 0) piece.logprobs = logprobs_of(request, id);
  const auto holds = [id](const std::vector<TokenId>& stops) {
    return std::find(stops.begin(), stops.end(), id) != stops.end();
  };
  const bool ended = holds(request.stop_ids) || (holds(card_.eos_ids) && (scripted || !request.ignore_eos));
  const int room = card_.window - static_cast<int>(request.prompt.size());
  const int most = request.max_tokens > 0 ? std::min(request.max_tokens, room) : room;
  const bool full = static_cast<int>(stream.ids.size()) >= most;
  if (!ended) stream.held += stream.detokenizer->push(id);
  if (ended || full) stream.held += stream.detokenizer->finish();
  std::size_t longest = 0, first = std::string::npos;
  std::string matched;
  for (const std::string& stop : request.stop) {
    longest = std::max(longest, stop.size());
    const auto at = stream.held.find(stop);
    if (at < first) {
      first = at;
      matched = stop;
    }
  }
  std::size_t tell = stream.held.size();
  if (!matched.empty()) {
    tell = first;
  } else if (!ended && !full && longest > 0) {
    tell -= std::min(tell, longest - 1);
    while (tell > 0 && tell < stream.held.size() && (static_cast<unsigned char>(stream.held[tell]) & 0xC0) == 0x80)
      --tell;
  }
  piece.text = stream.held.substr(0, tell);
  stream.held.erase(0, tell);
  stream.handler.on_piece(piece);
  if (!ended && !full && matched.empty()) return true;
  finish(stream, ended || !matched.empty() ? FinishReason::kStop : FinishReason::kLength, "", matched);
  return false;
}

FakeService::Whole FakeService::reply_to(const Request& request) const {
  Whole whole;
  auto stream = make_stream(request);
  stream->handler.on_piece = [&](const ReplyPiece& piece) {
    whole.ids.insert(whole.ids.end(), piece.ids.begin(), piece.ids.end());
    whole.text += piece.text;
  };
  stream->handler.on_end = [&](const ReplyEnd& end) { whole.reason = end.reason; };
  while (const_cast<FakeService*>(this)->step(*stream)) {
  }
  return whole;
}

void FakeService::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto can_move = [this] {
      return stop_ || std::any_of(streams_.begin(), streams_.end(), [this](const auto& entry) {
               return entry.second->cancelled || (!held_ && entry.second->mode != Mode::kHang);
             });
    };
    wake_.wait(lock, can_move);
    if (stop_ && streams_.empty()) return;
    std::vector<Stream*> round;
    for (auto& [handle, stream] : streams_) {
      if (static_cast<int>(round.size()) < options_.parallel) round.push_back(stream.get());
    }
    const bool held = held_;
    std::vector<Stream*> ended;
    for (Stream* stream : round) {
      const bool cancelled = stream->cancelled;
      if (!cancelled && held) continue;
      lock.unlock();
      if (cancelled) finish(*stream, FinishReason::kCancelled, "", "");
      const bool over = cancelled || !step(*stream);
      lock.lock();
      if (!cancelled && stream->mode != Mode::kHang) ++counters_.reply_tokens;
      if (over) ended.push_back(stream);
    }
    std::erase_if(streams_, [&](const auto& entry) {
      return std::find(ended.begin(), ended.end(), entry.second.get()) != ended.end();
    });
  }
}

}  // namespace steadfast::testing
