// Chat templates: messages, tools and options to the prompt's text, by the model's own Jinja template.
// Source: model-spec section 7. Immutable after parsing: safe to share between threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace steadfast {

using Json = nlohmann::ordered_json;  // keeps the order of keys, as tojson must

class GgufFile;

struct TemplateInput {
  // OpenAI's messages. Arguments of tool calls may be JSON text: the template gets the object. Content that is null
  // (or, of an assistant, left out) is the empty string to the template.
  Json messages = Json::array();
  Json tools;                    // null: none
  Json kwargs = Json::object();  // chat_template_kwargs of the request, for example enable_thinking
  bool add_generation_prompt = true;
  std::optional<std::int64_t>
      now;  // seconds since 1970, for templates that print the date (UTC); none: clock_seconds()
};

// Seconds since 1970 by the system's clock. Whoever makes a reply reads it once and names it in the receipt, so that
// the prompt can be rendered again.
std::int64_t clock_seconds();

class ChatTemplate {
 public:
  // Errors name the template's line. bos and eos are the token texts that the template may print.
  static Result<ChatTemplate> parse(std::string_view source, std::string bos = "", std::string eos = "");
  // chat_template.jinja, else the chat_template of tokenizer_config.json (a string, or a list: "default") or of
  // chat_template.json. Where there is a template named "tool_use", requests with tools use it, as Hugging Face does.
  // A folder without one is an error that says so.
  static Result<ChatTemplate> from_folder(const std::filesystem::path& folder);
  // The file's tokenizer.chat_template (and tokenizer.chat_template.tool_use); an error where there is none.
  static Result<ChatTemplate> from_gguf(const GgufFile& file);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // raise_exception in the template, unknown filters and the like are errors with the line. The names in kwargs may be
  // anything but "messages" and "tools". *clock_read, where given, tells whether the template asked for the time.
  Result<std::string> render(const TemplateInput& input, bool* clock_read = nullptr) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace steadfast
