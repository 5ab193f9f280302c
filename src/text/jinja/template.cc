#include "text/jinja/template.h"

#include "text/jinja/builtins.h"
#include "text/jinja/parser.h"
#include "text/jinja/printing.h"

namespace steadfast::jinja {
namespace {

Status to_status(const Error& error, int line) {
  return Status::error("line {}: {}", error.line() != 0 ? error.line() : line, error.what());
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
    return Template(std::make_unique<Impl>(Impl{jinja::parse(source)}));
  } catch (const Error& error) {
    return to_status(error, 1);
  }
}

Result<std::string> Template::render(const nlohmann::ordered_json& context, std::int64_t now) const {
  Interpreter vm(now);
  try {
    define_globals(vm.heap(), vm.globals());
    for (const auto& [name, value] : context.items()) vm.globals().set(name, from_json(vm.heap(), value, name));
    vm.heap().begin_rendering();
    return vm.run(impl_->body);
  } catch (const Error& error) {
    return to_status(error, vm.line());
  }
}

}  // namespace steadfast::jinja
