// Renders templates for tools/goldens/jinja_differential.py: each line of standard input is {"template": text,
// "context": object}, each line of standard output {"text": rendered} or {"error": sentence}.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/jinja/template.h"

int main() {
  using Json = nlohmann::ordered_json;
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = Json::parse(line);
    Json reply;
    const auto parsed = steadfast::jinja::Template::parse(request.at("template").get_ref<const std::string&>());
    if (!parsed) {
      reply["error"] = parsed.message();
    } else {
      steadfast::jinja::Template::Context context;
      for (const auto& [name, value] : request.at("context").items()) context.emplace_back(name, &value);
      const auto text = parsed->render(context, 0);
      reply[text ? "text" : "error"] = text ? *text : text.message();
    }
    std::cout << reply.dump(-1, ' ', true, Json::error_handler_t::replace) << "\n" << std::flush;
  }
  return 0;
}
