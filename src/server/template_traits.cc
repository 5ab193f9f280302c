// Probing by rendering: a rule read from the template's source would miss what macros and includes do.
#include "server/template_traits.h"

namespace steadfast {

namespace {

TemplateInput question(Json content) {
  TemplateInput input;
  input.messages.push_back({{"role", "user"}, {"content", std::move(content)}});
  input.now = 0;  // renderings are compared
  return input;
}

std::string rendered(const ChatTemplate& chat_template, const TemplateInput& input) {
  auto text = chat_template.render(input);
  return text ? *text : "";
}

std::set<std::string> probe_efforts(const ChatTemplate& chat_template) {
  std::set<std::string> accepted;
  std::set<std::string> texts;
  for (const char* effort : {"none", "minimal", "low", "medium", "high", "xhigh"}) {
    TemplateInput input = question("x");
    input.kwargs["reasoning_effort"] = effort;
    const auto text = chat_template.render(input);
    if (!text) continue;
    accepted.insert(effort);
    texts.insert(*text);
  }
  // A template that prints the same for all, and refuses none, does not look at it.
  return texts.size() > 1 || accepted.size() < 6 ? accepted : std::set<std::string>{};
}

}  // namespace

TemplateTraits probe_template(const ChatTemplate& chat_template) {
  TemplateTraits traits;
  TemplateInput with_tool = question("x");
  const Json parameters = {{"type", "object"}, {"properties", Json::object()}};
  with_tool.tools = Json::array();
  with_tool.tools.push_back(
      {{"type", "function"},
       {"function", {{"name", "probe_function"}, {"description", "x"}, {"parameters", parameters}}}});
  const std::string text = rendered(chat_template, with_tool);
  traits.takes_tools = text.find("probe_function") != std::string::npos;
  if (traits.takes_tools && text.find("<tool_call>") != std::string::npos) {
    traits.tools = text.find("<function=") != std::string::npos ? ToolFormat::kXml : ToolFormat::kJson;
  }
  Json parts = Json::array();
  parts.push_back({{"type", "text"}, {"text", "first-part"}});
  parts.push_back({{"type", "text"}, {"text", "second-part"}});
  traits.takes_parts = rendered(chat_template, question(parts)).find("first-partsecond-part") != std::string::npos;
  traits.efforts = probe_efforts(chat_template);
  return traits;
}

void fit_contents(const TemplateTraits& traits, Json& messages) {
  if (traits.takes_parts) return;
  for (Json& message : messages) {
    const auto content = message.find("content");
    if (content == message.end() || !content->is_array()) continue;
    std::string text;
    for (std::size_t i = 0; i < content->size(); ++i) {
      if (i > 0) text += '\n';
      text += (*content)[i].at("text").get_ref<const std::string&>();
    }
    *content = std::move(text);
  }
}

}  // namespace steadfast
