// The border of the engine: here Error becomes Status.
#include "text/jinja/template.h"

#include "text/jinja/builtins.h"
#include "text/jinja/parser.h"
#include "text/jinja/printing.h"
#include "text/jinja/text.h"

namespace steadfast::jinja {
namespace {

Status to_status(const Error& error, int line) {
  return Status::error("line {}: {}", error.line() != 0 ? error.line() : line, error.what());
}

void check_utf8(std::string_view source) {
  int line = 1;
  for (std::size_t at = 0; at < source.size(); at += code_point_bytes(source, at)) {
    if (source[at] == '\n') ++line;
    if (code_point_at(source, at) == 0xFFFD && code_point_bytes(source, at) == 1) {
      fail_at(line, "the template is not valid UTF-8");
    }
  }
}

}  // namespace

struct Template::Impl {
  Body body;
};

Template::Template(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source) {
  try {
    check_utf8(source);
    return Template(std::make_unique<Impl>(Impl{jinja::parse(source)}));
  } catch (const Error& error) {
    return to_status(error, 1);
  }
}

Result<std::string> Template::render(const Context& context, std::int64_t now, bool* clock_read) const {
  Interpreter vm(now);
  try {
    define_globals(vm.heap(), vm.globals());
    for (const auto& [name, value] : context) vm.globals().set(name, from_json(vm.heap(), *value, name));
    vm.heap().begin_rendering();
    std::string text = vm.run(impl_->body);
    if (clock_read != nullptr) *clock_read = vm.clock_read();
    return text;
  } catch (const Error& error) {
    return to_status(error, vm.line());
  }
}

}  // namespace steadfast::jinja
