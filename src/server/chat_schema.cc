// Messages, tools and template options. Texts stay as they came; arguments of tool calls become objects, as templates
// need them (model-spec 7.1).
#include "server/chat_schema.h"

#include "server/json_parse.h"

namespace steadfast {

namespace {

// Contents are a string, or a list of text parts that stays a list.
std::optional<ApiError> read_content(const Json& message, const std::string& at, const std::string& role,
                                     const RequestLimits& limits, Json& out) {
  const std::string name = at + "content";
  const auto found = message.find("content");
  const bool absent = found == message.end() || found->is_null();
  if (absent) {
    if (role != "assistant") return bad_field(name, "'{}' is missing", name);
    out["content"] = "";
    return std::nullopt;
  }
  if (found->is_string()) {
    out["content"] = *found;
    return std::nullopt;
  }
  if (!found->is_array()) return bad_field(name, "'{}' must be a string or a list of text parts", name);
  if (found->size() > limits.parts) return bad_field(name, "'{}' may have at most {} parts", name, limits.parts);
  Json parts = Json::array();
  for (std::size_t i = 0; i < found->size(); ++i) {
    const Json& part = (*found)[i];
    const std::string part_name = fmt::format("{}[{}]", name, i);
    if (!part.is_object()) return bad_field(part_name, "'{}' must be an object, not {}", part_name, kind_of(part));
    FieldReader fields(part, part_name + ".");
    const auto type = fields.string("type");
    if (fields.error()) return fields.error();
    if (!type) return bad_field(part_name, "'{}.type' is missing", part_name);
    if (*type != "text") {
      return bad_field(part_name, "'{}' has the type '{}'; this server takes text parts only", part_name,
                       shown_word(*type));
    }
    const auto text = fields.string("text");
    if (fields.error()) return fields.error();
    if (!text) return bad_field(part_name, "'{}.text' is missing", part_name);
    parts.push_back({{"type", "text"}, {"text", *text}});
  }
  out["content"] = std::move(parts);
  return std::nullopt;
}

std::optional<ApiError> read_arguments(const Json& function, const std::string& at, Json& out) {
  const std::string name = at + "arguments";
  const auto found = function.find("arguments");
  out["arguments"] = Json::object();
  if (found == function.end() || found->is_null()) return std::nullopt;
  if (found->is_object()) {
    out["arguments"] = *found;
    return std::nullopt;
  }
  if (!found->is_string()) return bad_field(name, "'{}' must be a string that holds a JSON object", name);
  const auto& text = found->get_ref<const std::string&>();
  if (text.empty()) return std::nullopt;
  auto parsed = parse_json(text);
  if (!parsed || !parsed->is_object()) {
    return bad_field(name, "'{}' must be a string that holds a JSON object", name);
  }
  out["arguments"] = std::move(*parsed);
  return std::nullopt;
}

// Names go into the template's text between its own marks, so only letters that cannot close a mark are let in.
bool is_function_name(const std::string& name) {
  constexpr std::string_view kOther = "_-.:/";
  if (name.empty() || name.size() > 128) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && kOther.find(c) == std::string_view::npos) return false;
  }
  return true;
}

std::optional<ApiError> read_function_name(FieldReader& fields, Json& out) {
  const auto name = fields.string("name");
  if (fields.error()) return fields.error();
  if (!name || !is_function_name(*name)) {
    return bad_field(fields.name("name"), "'{}' must have 1 to 128 letters, digits or any of _-.:/",
                     fields.name("name"));
  }
  out["name"] = *name;
  return std::nullopt;
}

std::optional<ApiError> read_tool_calls(const Json& calls, const std::string& at, const RequestLimits& limits,
                                        Json& out) {
  Json list = Json::array();
  if (calls.size() > limits.tools) return bad_field(at, "'{}' may have at most {} calls", at, limits.tools);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", at, i);
    if (!calls[i].is_object()) return bad_field(name, "'{}' must be an object, not {}", name, kind_of(calls[i]));
    FieldReader fields(calls[i], name + ".");
    const auto id = fields.string("id");
    const auto type = fields.string("type");
    const Json* function = fields.object("function");
    if (fields.error()) return fields.error();
    if (type && *type != "function") return bad_field(name, "'{}.type' must be \"function\"", name);
    if (function == nullptr) return bad_field(name, "'{}.function' is missing", name);
    FieldReader inner(*function, name + ".function.");
    Json call = Json::object();
    if (auto error = read_function_name(inner, call)) return error;
    if (auto error = read_arguments(*function, name + ".function.", call)) return error;
    Json entry = {{"type", "function"}, {"function", std::move(call)}};
    if (id) entry["id"] = *id;
    list.push_back(std::move(entry));
  }
  out["tool_calls"] = std::move(list);
  return std::nullopt;
}

std::optional<std::string> role_of(const std::string& role) {
  if (role == "developer") return "system";
  if (role == "system" || role == "user" || role == "assistant" || role == "tool") return role;
  return std::nullopt;
}

std::optional<ApiError> read_message(const Json& message, const std::string& at, const RequestLimits& limits,
                                     Json& out) {
  if (!message.is_object()) return bad_field(at, "'{}' must be an object, not {}", at, kind_of(message));
  FieldReader fields(message, at + ".");
  const auto given = fields.string("role");
  if (fields.error()) return fields.error();
  if (!given) return bad_field(at + ".role", "'{}.role' is missing", at);
  const auto role = role_of(*given);
  if (!role) {
    return bad_field(at + ".role", "'{}.role' is '{}'; it must be system, developer, user, assistant or tool", at,
                     shown_word(*given));
  }
  out = {{"role", *role}};
  if (auto error = read_content(message, at + ".", *role, limits, out)) return error;
  for (const char* key : {"name", "tool_call_id", "reasoning_content"}) {
    if (const auto text = fields.string(key)) out[key] = *text;
  }
  if (const auto text = fields.string("reasoning"); text && !out.contains("reasoning_content")) {
    out["reasoning_content"] = *text;
  }
  fields.refuse("function_call", "use 'tool_calls'");
  fields.refuse("audio", "this server takes text only");
  fields.refuse("prefix", "the reply cannot go on from a given beginning", false);
  const Json* calls = fields.array("tool_calls");
  if (fields.error()) return fields.error();
  if (calls == nullptr || calls->empty()) return std::nullopt;
  if (*role != "assistant") return bad_field(at, "'{}.tool_calls' belongs to assistant messages only", at);
  return read_tool_calls(*calls, at + ".tool_calls", limits, out);
}

std::optional<ApiError> read_tool(const Json& tool, const std::string& at, Json& out) {
  if (!tool.is_object()) return bad_field(at, "'{}' must be an object, not {}", at, kind_of(tool));
  FieldReader fields(tool, at + ".");
  const auto type = fields.string("type");
  const Json* function = fields.object("function");
  if (fields.error()) return fields.error();
  if (!type || *type != "function") return bad_field(at + ".type", "'{}.type' must be \"function\"", at);
  if (function == nullptr) return bad_field(at + ".function", "'{}.function' is missing", at);
  FieldReader inner(*function, at + ".function.");
  Json name = Json::object();
  if (auto error = read_function_name(inner, name)) return error;
  inner.string("description");
  inner.object("parameters");
  inner.refuse("strict", "output constrained by a schema is not available; leave it out or false", false);
  if (inner.error()) return inner.error();
  out = tool;
  return std::nullopt;
}

// "none" takes the tools away; "auto" is what a template does by itself; to force a call, output would have to be
// constrained, which this server cannot do.
void apply_tool_choice(FieldReader& fields, TemplateInput& input) {
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr) return;
  if (!choice->is_string() && !choice->is_object()) {
    return fields.fail("tool_choice", "'tool_choice' must be \"none\" or \"auto\", not {}", kind_of(*choice));
  }
  if (*choice == "none") {
    input.tools = nullptr;
    return;
  }
  if (*choice == "auto") return;
  fields.fail("tool_choice", "'tool_choice' must be \"none\" or \"auto\": a call cannot be forced on this server");
}

void read_tools(FieldReader& fields, const RequestLimits& limits, TemplateInput& input) {
  const Json* tools = fields.array("tools");
  if (tools == nullptr || tools->empty()) return;
  if (tools->size() > limits.tools) return fields.fail("tools", "'tools' may have at most {} tools", limits.tools);
  input.tools = Json::array();
  for (std::size_t i = 0; i < tools->size(); ++i) {
    Json tool;
    if (auto error = read_tool((*tools)[i], fmt::format("tools[{}]", i), tool)) return fields.fail(*error);
    input.tools.push_back(std::move(tool));
  }
}

void read_kwargs(FieldReader& fields, TemplateInput& input) {
  if (const Json* kwargs = fields.object("chat_template_kwargs")) {
    for (const char* own : {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"}) {
      if (kwargs->contains(own)) {
        return fields.fail("chat_template_kwargs", "'chat_template_kwargs' may not set '{}'", own);
      }
    }
    input.kwargs = *kwargs;
  }
  if (const auto thinking = fields.boolean("enable_thinking")) input.kwargs["enable_thinking"] = *thinking;
  if (const auto thinking = input.kwargs.find("enable_thinking");
      thinking != input.kwargs.end() && !thinking->is_boolean() && !thinking->is_null()) {
    fields.fail("chat_template_kwargs", "'enable_thinking' must be true or false");
  }
  if (const auto add = fields.boolean("add_generation_prompt")) input.add_generation_prompt = *add;
}

// Our own fields of a request, beside OpenAI's.
void read_extension(FieldReader& fields, TemplateInput& input) {
  constexpr std::int64_t kLastSecond = 253402300799;  // of the year 9999
  const Json* own = fields.object("steadfast");
  if (own == nullptr) return;
  FieldReader inner(*own, "steadfast.");
  input.now = inner.integer("now", 0, kLastSecond);
  if (inner.error()) fields.fail(*inner.error());
}

}  // namespace

void read_template_input(FieldReader& fields, const RequestLimits& limits, TemplateInput& input) {
  const Json* messages = fields.array("messages");
  if (!fields.ok()) return;
  if (messages == nullptr) return fields.fail("messages", "'messages' is missing");
  if (messages->empty()) return fields.fail("messages", "'messages' is empty");
  if (messages->size() > limits.messages) {
    return fields.fail("messages", "'messages' may have at most {} messages", limits.messages);
  }
  for (std::size_t i = 0; i < messages->size(); ++i) {
    Json message;
    if (auto error = read_message((*messages)[i], fmt::format("messages[{}]", i), limits, message)) {
      return fields.fail(*error);
    }
    input.messages.push_back(std::move(message));
  }
  read_tools(fields, limits, input);
  read_kwargs(fields, input);
  read_extension(fields, input);
  fields.refuse("chat_template", "the model's own template is used");
  fields.refuse("continue_final_message", "the reply cannot go on from a given beginning", false);
  fields.refuse("documents", "put them into a message");
}

Outcome<ChatRequest> read_chat_request(const Json& body, const ModelCard& card, const RequestLimits& limits) {
  if (!body.is_object()) return ApiError{400, "the body must be a JSON object", "", "invalid_json"};
  FieldReader fields(body);
  ChatRequest request;
  request.model = fields.string("model").value_or("");
  read_template_input(fields, limits, request.input);
  request.generation = read_generation(fields, card, limits);
  apply_tool_choice(fields, request.input);
  request.reasoning_effort = fields.string("reasoning_effort").value_or("");
  const bool logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (top && !logprobs) fields.fail("top_logprobs", "'top_logprobs' is allowed with 'logprobs': true only");
  if (logprobs) request.generation.top_logprobs = static_cast<int>(top.value_or(0));
  fields.refuse("functions", "use 'tools'");
  fields.refuse("function_call", "use 'tool_choice'");
  fields.refuse("parallel_tool_calls", "the number of calls cannot be limited; leave it out or true", true);
  fields.refuse("echo", "it is for /v1/completions", false);
  fields.refuse("audio", "this server writes text only");
  fields.refuse("modalities", "this server writes text only", Json::array({"text"}));
  fields.refuse("prediction", "leave it out");
  fields.refuse("web_search_options", "this server searches nothing");
  fields.refuse("verbosity", "ask for it in the prompt");
  fields.refuse("best_of", "use 'n'", request.generation.choices);
  refuse_unsupported(fields);
  if (fields.error()) return *fields.error();
  return request;
}

}  // namespace steadfast
