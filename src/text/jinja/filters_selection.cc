// Filters that run other filters and tests over a collection: find_selection_filter.
#include <algorithm>
#include <iterator>

#include "text/jinja/builtins.h"

namespace steadfast::jinja {
namespace {

std::string name_argument(const Value& value, std::string_view what) {
  if (!value.is_text()) fail("{} must be given by name, not as '{}'", what, value.type_name());
  return value.as_text();
}

Value map_attribute(Call& call) {
  Value attribute;
  Value fallback = Value::none();
  for (const auto& [name, value] : call.arguments.named) {
    if (name == "attribute") {
      attribute = value;
    } else if (name == "default") {
      fallback = value;
    } else {
      fail("map() has no argument named '{}'", name);
    }
  }
  std::vector<Value> results;
  for (const Value& item : items_of(call.vm.heap(), call.self)) {
    call.vm.heap().spend(1);
    Value found = call.vm.attribute_path(item, attribute);
    results.push_back(found.is_undefined() && !fallback.is_none() ? fallback : std::move(found));
  }
  return call.vm.heap().generator(std::move(results));
}

Value map_filter(Call& call) {
  Arguments& arguments = call.arguments;
  if (!call.self.truthy()) return call.vm.heap().generator({});
  const bool has_attribute = std::any_of(arguments.named.begin(), arguments.named.end(),
                                         [](const auto& entry) { return entry.first == "attribute"; });
  if (arguments.positional.empty() && has_attribute) return map_attribute(call);
  if (arguments.positional.empty()) fail("map requires a filter argument");
  const std::string name = name_argument(arguments.positional[0], "map's filter");
  arguments.positional.erase(arguments.positional.begin());
  std::vector<Value> results;
  for (const Value& item : items_of(call.vm.heap(), call.self)) {
    results.push_back(call.vm.filter(name, item, arguments));
  }
  return call.vm.heap().generator(std::move(results));
}

// select, reject (the item itself) and selectattr, rejectattr (its attribute), by a test or by truth.
Value choose(Call& call, bool wants_true, bool has_attribute) {
  Arguments& arguments = call.arguments;
  if (!call.self.truthy()) return call.vm.heap().generator({});
  Value attribute = Value::none();
  if (has_attribute) {
    if (arguments.positional.empty()) fail("Missing parameter for attribute name");
    attribute = arguments.positional[0];
    arguments.positional.erase(arguments.positional.begin());
  }
  std::string test;
  if (!arguments.positional.empty()) {
    test = name_argument(arguments.positional[0], fmt::format("{}'s test", call.name));
    arguments.positional.erase(arguments.positional.begin());
  }
  std::vector<Value> chosen;
  for (const Value& item : items_of(call.vm.heap(), call.self)) {
    call.vm.heap().spend(1);
    const Value subject = call.vm.attribute_path(item, attribute);
    const bool passes = test.empty() ? subject.truthy() : call.vm.test(test, subject, arguments);
    if (passes == wants_true) chosen.push_back(item);
  }
  return call.vm.heap().generator(std::move(chosen));
}

Value select_filter(Call& call) { return choose(call, true, false); }
Value reject_filter(Call& call) { return choose(call, false, false); }
Value selectattr_filter(Call& call) { return choose(call, true, true); }
Value rejectattr_filter(Call& call) { return choose(call, false, true); }

constexpr NamedBuiltin kFilters[] = {{"map", map_filter},
                                     {"reject", reject_filter},
                                     {"rejectattr", rejectattr_filter},
                                     {"select", select_filter},
                                     {"selectattr", selectattr_filter}};

}  // namespace

Builtin find_selection_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const auto& f) { return f.name == name; });
  return found == std::end(kFilters) ? nullptr : found->builtin;
}

}  // namespace steadfast::jinja
