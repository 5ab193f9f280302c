// Chat templates: messages, tools and options to the prompt's text, by the model's own Jinja template.
// Source: model-spec section 7. Immutable after parsing: safe to share between threads.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace steadfast {

using Json = nlohmann::ordered_json;  // keeps the order of keys, as tojson must

struct TemplateInput {
  Json messages = Json::array();
  Json tools;                    // null: none
  Json kwargs = Json::object();  // chat_template_kwargs of the request, for example enable_thinking
  bool add_generation_prompt = true;
};

class ChatTemplate {
 public:
  // Errors name the template's line. bos and eos are the token texts that the template may print.
  static Result<ChatTemplate> parse(std::string_view source, std::string bos = "", std::string eos = "");
  // chat_template.jinja, else tokenizer_config.json's chat_template (string, or a list: "default").
  // A folder without one is an error that says so.
  static Result<ChatTemplate> from_folder(const std::filesystem::path& folder);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // raise_exception in the template, unknown filters and the like are errors with the line.
  Result<std::string> render(const TemplateInput& input) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace steadfast
