// A Service without a model: tokens follow from a hash of the whole history and the seed, so a reply is a function of
// its request; a byte-level tokenizer and a small chat template. A prompt may give commands in its last user text:
// "say:TEXT" is answered with TEXT, "hang:" with nothing until it is cancelled, "fail:" with an error of the engine.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "engine/service.h"

namespace steadfast::testing {

struct FakeOptions {
  int window = 4096;
  int parallel = 64;
  std::string tool_style = "json";  // how the template asks for calls: "json", "xml", "other", "none"
  bool has_tokenizer = true, has_template = true;
  bool opens_thinking = false;  // the template ends with an open <think>
  bool dated = false;           // the template begins with the date
  bool takes_effort = false;    // the template takes reasoning_effort low, medium and xhigh
};

// 256 bytes, a few merges, and the control tokens of the Qwen family.
std::string fake_tokenizer_json();
std::string fake_template(const FakeOptions& options);

class FakeService : public Service {
 public:
  explicit FakeService(FakeOptions options = {});
  ~FakeService() override;

  const ModelCard& card() const override { return card_; }
  const Tokenizer* tokenizer() const override { return options_.has_tokenizer ? &tokenizer_ : nullptr; }
  const ChatTemplate* chat_template() const override { return template_ ? &*template_ : nullptr; }
  Result<ReplyHandle> submit(Request request, ReplyHandler handler) override;
  void cancel(ReplyHandle handle) override;
  ServiceCounters counters() const override;

  // The reply that a request gets, computed alone: what every client of the server must see.
  struct Whole {
    std::vector<TokenId> ids;
    std::string text;
    FinishReason reason;
  };
  Whole reply_to(const Request& request) const;
  // While held, no token is made; streams wait where they are.
  void hold(bool held);
  int cancelled() const;  // replies that were cancelled so far

 private:
  struct Stream;
  enum class Mode { kHash, kScript, kHang, kFail };
  void loop();
  void finish(Stream& stream, FinishReason reason, const std::string& error, const std::string& stop);
  bool step(Stream& stream);
  std::unique_ptr<Stream> make_stream(Request request) const;

  FakeOptions options_;
  Tokenizer tokenizer_;
  std::optional<ChatTemplate> template_;
  ModelCard card_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<ReplyHandle, std::unique_ptr<Stream>> streams_;
  ReplyHandle next_ = 1;
  ServiceCounters counters_;
  int cancelled_ = 0;
  bool held_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace steadfast::testing
