// ChatTemplate: finding templates and token texts, preparing messages, rendering through the Jinja engine.
#include "text/chat_template.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <vector>

#include "formats/gguf.h"
#include "text/jinja/template.h"

namespace steadfast {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{64} << 20;
constexpr std::size_t kMaxDepth = 100;

// The parts of a JSON value, without recursion: a request may nest deeper than the stack is long.
bool is_nested_within(const Json& json, std::size_t limit) {
  std::vector<std::pair<const Json*, std::size_t>> open{{&json, 1}};
  while (!open.empty()) {
    const auto [value, depth] = open.back();
    open.pop_back();
    if (depth > limit) return false;
    if (!value->is_structured()) continue;
    for (const Json& part : *value) open.emplace_back(&part, depth + 1);
  }
  return true;
}

Result<std::string> read_file(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return Status::error("cannot read {}: {}", path.string(), error.message());
  if (size > kMaxFileBytes)
    return Status::error("{} is larger than {} MiB: is it the right file?", path.string(), kMaxFileBytes >> 20);
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::error("cannot open {}: check its permissions", path.string());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<Json> read_json(const fs::path& path) {
  auto text = read_file(path);
  if (!text) return text.status();
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !is_nested_within(json, kMaxDepth)) {
    return Status::error("{} is not a JSON object: fetch it again", path.string());
  }
  return json;
}

// The texts of the special tokens that a template may print: each a string or {"content": string}.
Json special_tokens(const Json& config) {
  constexpr const char* kNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                    "pad_token", "cls_token", "mask_token"};
  const auto text_of = [](const Json& token) {
    if (token.is_object() && token.contains("content")) return token["content"];
    return token;
  };
  Json tokens = Json::object();
  for (const char* name : kNames) {
    if (!config.contains(name)) continue;
    if (Json text = text_of(config[name]); text.is_string()) tokens[name] = std::move(text);
  }
  const auto more = config.find("additional_special_tokens");
  if (more != config.end() && more->is_array()) {
    for (const Json& token : *more) {
      if (Json text = text_of(token); text.is_string()) tokens["additional_special_tokens"].push_back(std::move(text));
    }
  }
  return tokens;
}

struct Sources {
  std::optional<std::string> usual;
  std::optional<std::string> tool_use;
};

// A chat_template of a JSON file: the template, or a list (older: an object) of named ones.
Sources sources_of(const Json& chat_template) {
  Sources sources;
  if (chat_template.is_string()) sources.usual = chat_template.get<std::string>();
  const auto add = [&](const std::string& name, const Json& source) {
    if (!source.is_string()) return;
    if (name == "default") sources.usual = source.get<std::string>();
    if (name == "tool_use") sources.tool_use = source.get<std::string>();
  };
  if (chat_template.is_object()) {
    for (const auto& [name, source] : chat_template.items()) add(name, source);
  }
  if (!chat_template.is_array()) return sources;
  for (const Json& entry : chat_template) {
    if (entry.is_object() && entry.contains("name") && entry.contains("template") && entry["name"].is_string()) {
      add(entry["name"].get<std::string>(), entry["template"]);
    }
  }
  return sources;
}

Result<Sources> sources_in(const fs::path& folder, const Json& config) {
  Sources sources;
  if (fs::exists(folder / "chat_template.jinja")) {
    auto text = read_file(folder / "chat_template.jinja");
    if (!text) return text.status();
    sources.usual = std::move(*text);
    const fs::path tool_use = folder / "additional_chat_templates" / "tool_use.jinja";
    if (fs::exists(tool_use)) {
      auto more = read_file(tool_use);
      if (!more) return more.status();
      sources.tool_use = std::move(*more);
    }
    return sources;
  }
  if (config.contains("chat_template")) sources = sources_of(config["chat_template"]);
  if (!sources.usual && fs::exists(folder / "chat_template.json")) {
    const auto json = read_json(folder / "chat_template.json");
    if (!json) return json.status();
    if (json->contains("chat_template")) sources = sources_of((*json)["chat_template"]);
  }
  return sources;
}

// JSON text in a tool call's arguments becomes the object that templates walk through.
Status parse_arguments(Json& call, std::size_t message, std::size_t index) {
  if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) return Status::ok();
  Json& function = call["function"];
  const auto arguments = function.find("arguments");
  if (arguments == function.end() || !arguments->is_string()) return Status::ok();
  const std::string& text = arguments->get_ref<const std::string&>();
  Json parsed = text.empty() ? Json::object() : Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) {
    return Status::error(
        "messages[{}].tool_calls[{}].function.arguments is not valid JSON: send an object as JSON text", message,
        index);
  }
  if (!is_nested_within(parsed, kMaxDepth / 2)) {
    return Status::error("messages[{}].tool_calls[{}].function.arguments is nested too deeply", message, index);
  }
  *arguments = std::move(parsed);
  return Status::ok();
}

Result<Json> prepared(const Json& messages) {
  if (!messages.is_array()) return Status::error("messages must be an array of objects with a role and content");
  Json result = messages;
  for (std::size_t i = 0; i < result.size(); ++i) {
    Json& message = result[i];
    if (!message.is_object()) return Status::error("messages[{}] must be an object with a role and content", i);
    const auto content = message.find("content");
    const bool is_assistant = message.contains("role") && message["role"] == "assistant";
    if (content != message.end() ? content->is_null() : is_assistant) message["content"] = "";
    const auto calls = message.find("tool_calls");
    if (calls == message.end() || !calls->is_array()) continue;
    for (std::size_t j = 0; j < calls->size(); ++j) {
      if (Status status = parse_arguments((*calls)[j], i, j); !status) return status;
    }
  }
  return result;
}

// A token's text in a GGUF file, by the key that holds its id.
std::string gguf_token(const GgufFile& file, std::string_view key) {
  const GgufValue* id = file.value(key);
  const GgufValue* tokens = file.value("tokenizer.ggml.tokens");
  if (id == nullptr || tokens == nullptr || tokens->as_array() == nullptr) return "";
  const std::int64_t index = id->as_int().value_or(-1);
  const GgufArray& texts = *tokens->as_array();
  if (index < 0 || static_cast<std::size_t>(index) >= texts.size()) return "";
  return std::string(texts[static_cast<std::size_t>(index)].as_string().value_or(""));
}

Result<jinja::Template> parse_template(std::string_view source) {
  auto parsed = jinja::Template::parse(source);
  if (!parsed) return Status::error("chat template, {}", parsed.message());
  return parsed;
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Template usual;
  std::optional<jinja::Template> tool_use;
  Json special_tokens;

  static Result<std::unique_ptr<Impl>> make(const Sources& sources, Json special_tokens) {
    auto usual = parse_template(*sources.usual);
    if (!usual) return usual.status();
    auto impl = std::make_unique<Impl>(Impl{std::move(*usual), std::nullopt, std::move(special_tokens)});
    if (sources.tool_use) {
      auto tool_use = parse_template(*sources.tool_use);
      if (!tool_use) return tool_use.status();
      impl->tool_use = std::move(*tool_use);
    }
    return impl;
  }
};

std::int64_t clock_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string bos, std::string eos) {
  Json tokens = Json::object();
  if (!bos.empty()) tokens["bos_token"] = std::move(bos);
  if (!eos.empty()) tokens["eos_token"] = std::move(eos);
  auto impl = Impl::make({std::string(source), std::nullopt}, std::move(tokens));
  if (!impl) return impl.status();
  return ChatTemplate(std::move(*impl));
}

Result<ChatTemplate> ChatTemplate::from_folder(const fs::path& folder) {
  Json config = Json::object();
  if (fs::exists(folder / "tokenizer_config.json")) {
    auto read = read_json(folder / "tokenizer_config.json");
    if (!read) return read.status();
    config = std::move(*read);
  }
  const auto sources = sources_in(folder, config);
  if (!sources) return sources.status();
  if (!sources->usual) {
    return Status::error(
        "{} has no chat template: neither chat_template.jinja nor chat_template in tokenizer_config.json; give a "
        "prompt "
        "instead of messages",
        folder.string());
  }
  auto impl = Impl::make(*sources, special_tokens(config));
  if (!impl) return impl.status();
  return ChatTemplate(std::move(*impl));
}

Result<ChatTemplate> ChatTemplate::from_gguf(const GgufFile& file) {
  Sources sources;
  const auto read = [&](std::string_view key) -> std::optional<std::string> {
    const GgufValue* value = file.value(key);
    if (value == nullptr || !value->as_string()) return std::nullopt;
    return std::string(*value->as_string());
  };
  sources.usual = read("tokenizer.chat_template");
  sources.tool_use = read("tokenizer.chat_template.tool_use");
  if (!sources.usual) {
    return Status::error("the GGUF file has no tokenizer.chat_template: give a prompt instead of messages");
  }
  Json tokens = Json::object();
  if (std::string bos = gguf_token(file, "tokenizer.ggml.bos_token_id"); !bos.empty())
    tokens["bos_token"] = std::move(bos);
  if (std::string eos = gguf_token(file, "tokenizer.ggml.eos_token_id"); !eos.empty())
    tokens["eos_token"] = std::move(eos);
  auto impl = Impl::make(sources, std::move(tokens));
  if (!impl) return impl.status();
  return ChatTemplate(std::move(*impl));
}

Result<std::string> ChatTemplate::render(const TemplateInput& input, bool* clock_read) const {
  if (!input.tools.is_null() && !input.tools.is_array()) return Status::error("tools must be an array of objects");
  if (!input.kwargs.is_object()) return Status::error("chat_template_kwargs must be an object");
  for (const char* name : {"messages", "tools"}) {
    if (input.kwargs.contains(name)) return Status::error("chat_template_kwargs may not hold '{}'", name);
  }
  for (const Json* json : {&input.messages, &input.tools, &input.kwargs}) {
    if (!is_nested_within(*json, kMaxDepth))
      return Status::error("the request is nested more than {} levels deep", kMaxDepth);
  }
  const auto messages = prepared(input.messages);
  if (!messages) return messages.status();

  const Json none;
  const Json add_generation_prompt = input.add_generation_prompt;
  jinja::Template::Context context;
  for (const auto& [name, text] : impl_->special_tokens.items()) context.emplace_back(name, &text);
  context.emplace_back("messages", &*messages);
  context.emplace_back("tools", &input.tools);
  context.emplace_back("documents", &none);
  context.emplace_back("add_generation_prompt", &add_generation_prompt);
  for (const auto& [name, value] : input.kwargs.items()) context.emplace_back(name, &value);

  const bool has_tools = !input.tools.is_null() && impl_->tool_use.has_value();
  const jinja::Template& chosen = has_tools ? *impl_->tool_use : impl_->usual;
  auto text = chosen.render(context, input.now ? *input.now : clock_seconds(), clock_read);
  if (!text) return Status::error("chat template, {}", text.message());
  return text;
}

}  // namespace steadfast
