// Tiny engines and listeners.
#include "engine_sample.h"

#include <gtest/gtest.h>

namespace steadfast::test {

namespace {

std::filesystem::path text_folder() {
  return std::filesystem::path(STEADFAST_SOURCE_DIR) / "tests" / "golden" / "text";
}

}  // namespace

Tokenizer sample_tokenizer() {
  auto tokenizer = Tokenizer::from_json(read_text(text_folder() / "tokenizer.json"));
  CHECK(tokenizer.is_ok(), "{}", tokenizer.message());
  return std::move(*tokenizer);
}

std::unique_ptr<LoadedModel> load_tiny(bool with_tokenizer, std::vector<TokenId> eos) {
  const int vocab = with_tokenizer ? static_cast<int>(sample_tokenizer().vocab_size()) : TinyModel().vocab;
  TinyModel model = TinyModel::random(21, /*biases=*/false, vocab);
  if (!eos.empty()) model.config["eos_token_id"] = eos;
  const TempFolder folder;
  model.write(folder);
  if (with_tokenizer) folder.write("tokenizer.json", read_text(text_folder() / "tokenizer.json"));
  LoadOptions options;
  options.threads = 2;
  auto loaded = load_model(folder.path(), options);
  CHECK(loaded.is_ok(), "{}", loaded.message());
  return std::move(*loaded);
}

std::unique_ptr<Engine> tiny_engine(const EngineOptions& options, std::vector<TokenId> eos) {
  auto engine = Engine::create(load_tiny(false, std::move(eos)), options);
  CHECK(engine.is_ok(), "{}", engine.message());
  return std::move(*engine);
}

ReplyHandler Listener::handler() {
  return {[this](const ReplyPiece& piece) {
            const std::lock_guard lock(mutex_);
            spoke_after_end_ = spoke_after_end_ || ends_ > 0;
            ids_.insert(ids_.end(), piece.ids.begin(), piece.ids.end());
            text_ += piece.text;
            logprobs_.insert(logprobs_.end(), piece.logprobs.begin(), piece.logprobs.end());
            changed_.notify_all();
          },
          [this](const ReplyEnd& end) {
            const std::lock_guard lock(mutex_);
            ++ends_;
            end_ = end;
            changed_.notify_all();
          }};
}

ReplyEnd Listener::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ends_ > 0; });
  return *end_;
}

void Listener::wait_for_ids(std::size_t n) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ids_.size() >= n || ends_ > 0; });
}

int Listener::ends() const {
  const std::lock_guard lock(mutex_);
  return ends_;
}

std::vector<TokenId> Listener::ids() const {
  const std::lock_guard lock(mutex_);
  return ids_;
}

std::string Listener::text() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

std::vector<TokenLogprob> Listener::logprobs() const {
  const std::lock_guard lock(mutex_);
  return logprobs_;
}

bool Listener::spoke_after_end() const {
  const std::lock_guard lock(mutex_);
  return spoke_after_end_;
}

Request request_of(std::vector<TokenId> prompt, int max_tokens, std::uint64_t seed) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.seed = seed;
  return request;
}

Reply reply_of(Engine& engine, Request request) {
  Listener listener;
  const auto handle = engine.submit(std::move(request), listener.handler());
  EXPECT_TRUE(handle) << handle.message();
  if (!handle) return {};
  ReplyEnd end = listener.wait();
  return {listener.ids(), listener.text(), std::move(end)};
}

}  // namespace steadfast::test
