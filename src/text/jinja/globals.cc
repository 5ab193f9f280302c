// Global functions: range, dict, namespace, joiner, cycler, and Hugging Face's raise_exception and strftime_now.
#include <ctime>

#include "text/jinja/builtins.h"
#include "text/jinja/printing.h"

namespace steadfast::jinja {
namespace {

Value range(Call& call) {
  const auto arguments = call.bind({"start", "stop", "step"}, 1);
  if (!call.arguments.named.empty()) fail("range() takes no keyword arguments");
  const auto number = [&](std::size_t i) { return to_index(*arguments[i], "range()'s argument"); };
  const std::int64_t start = arguments[1] == nullptr ? 0 : number(0);
  const std::int64_t stop = arguments[1] == nullptr ? number(0) : number(1);
  const std::int64_t step = arguments[2] == nullptr ? 1 : number(2);
  if (step == 0) fail("range() arg 3 must not be zero");
  auto* result = call.vm.heap().make<Range>(start, stop, step);
  if (result->size() > kMaxRange) fail("range() of {} numbers is too big: at most {}", result->size(), kMaxRange);
  return Value::object(result);
}

// The entries that dict(...) and namespace(...) are called with: a dict or pairs, then names.
Entries entries_of(Call& call) {
  Heap& heap = call.vm.heap();
  Entries entries;
  if (call.arguments.positional.size() > 1) fail("{}() takes at most one argument without a name", call.name);
  for (const Value& given : call.arguments.positional) {
    if (given.dict() != nullptr) {
      entries = given.dict()->entries;
      continue;
    }
    for (const Value& item : items_of(heap, given)) {
      const std::vector<Value> pair = items_of(heap, item);
      if (pair.size() != 2) fail("{}() needs pairs of a key and a value", call.name);
      entries.emplace_back(pair[0], pair[1]);
    }
  }
  for (const auto& [name, value] : call.arguments.named) entries.emplace_back(heap.text(name), value);
  return entries;
}

Value make_dict(Call& call) { return call.vm.heap().dict(entries_of(call)); }

Value make_namespace(Call& call) {
  auto* result = call.vm.heap().make<Namespace>();
  for (auto& [name, value] : entries_of(call)) {
    if (!name.is_text()) fail("a namespace's names must be strings");
    result->set(name.as_text(), std::move(value));
  }
  return Value::object(result);
}

Value make_joiner(Call& call) {
  const auto arguments = call.bind({"sep"});
  return Value::object(
      call.vm.heap().make<Joiner>(arguments[0] == nullptr ? call.vm.heap().text(", ") : *arguments[0]));
}

Value make_cycler(Call& call) {
  if (call.arguments.positional.empty()) fail("at least one item has to be provided");
  return Value::object(call.vm.heap().make<Cycler>(call.arguments.positional));
}

Value raise_exception(Call& call) {
  const auto arguments = call.bind({"message"}, 1);
  throw Error(0, to_text(*arguments[0]));
}

Value strftime_now(Call& call) {
  const auto arguments = call.bind({"format"}, 1);
  if (!arguments[0]->is_text()) fail("strftime_now() needs a format string, not '{}'", arguments[0]->type_name());
  const std::string& format = arguments[0]->as_text();
  if (format.size() > 1000) fail("strftime_now()'s format is longer than 1000 bytes");
  if (format.empty()) return call.vm.heap().text("");
  const std::time_t seconds = call.vm.now();
  std::tm broken{};
  gmtime_r(&seconds, &broken);  // a zone of the machine's would make the prompt depend on the machine
  char buffer[8192];
  const std::size_t size = std::strftime(buffer, sizeof(buffer), format.c_str(), &broken);
  if (size == 0) fail("strftime_now('{}') gives nothing or too much", format);
  return call.vm.heap().text(std::string(buffer, size));
}

}  // namespace

void define_globals(Heap& heap, Scope& scope) {
  constexpr NamedBuiltin kGlobals[] = {{"range", range},
                                       {"dict", make_dict},
                                       {"namespace", make_namespace},
                                       {"joiner", make_joiner},
                                       {"cycler", make_cycler},
                                       {"raise_exception", raise_exception},
                                       {"strftime_now", strftime_now}};
  for (const auto& [name, builtin] : kGlobals)
    scope.set(name, Value::object(heap.make<Function>(name, builtin, Value())));
}

}  // namespace steadfast::jinja
