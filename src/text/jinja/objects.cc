// Argument binding, scopes, ranges, namespaces, and the state of a for loop.
#include "text/jinja/objects.h"

#include <algorithm>

namespace steadfast::jinja {

std::vector<const Value*> Call::bind(std::initializer_list<std::string_view> names, std::size_t required) const {
  if (arguments.positional.size() > names.size()) {
    fail("{}() takes at most {} argument(s), {} given", name, names.size(), arguments.positional.size());
  }
  std::vector<const Value*> bound(names.size(), nullptr);
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = &arguments.positional[i];
  for (const auto& [key, value] : arguments.named) {
    const auto* found = std::find(names.begin(), names.end(), key);
    if (found == names.end()) fail("{}() has no argument named '{}'", name, key);
    const Value*& slot = bound[static_cast<std::size_t>(found - names.begin())];
    if (slot != nullptr) fail("{}() got two values for the argument '{}'", name, key);
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (bound[i] == nullptr) fail("{}() needs the argument '{}'", name, *(names.begin() + i));
  }
  return bound;
}

const Value* Scope::find_here(std::string_view name) const {
  for (const auto& [key, value] : names) {
    if (key == name) return &value;
  }
  return nullptr;
}

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
    if (const Value* found = scope->find_here(name)) return found;
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [key, old] : names) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  names.emplace_back(name, std::move(value));
}

std::int64_t Range::size() const {
  if (step > 0) return stop <= start ? 0 : (stop - start - 1) / step + 1;
  return stop >= start ? 0 : (start - stop - 1) / -step + 1;
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  attributes.emplace_back(name, std::move(value));
}

const std::optional<Value>& Loop::peek() {
  while (!after && position < items.size()) {
    const Value item = items[position++];
    if (!test || test(item)) after = item;
  }
  return after;
}

bool Loop::advance() {
  if (!peek()) return false;
  if (index >= 0) before = std::move(current);
  current = std::move(*after);
  after.reset();
  ++index;
  return true;
}

bool Loop::last() { return !peek(); }

std::int64_t Loop::length() {
  if (known_length) return *known_length;
  if (closed) fail("loop.length is not known after a break out of a loop with a condition");
  std::vector<Value> rest;
  for (; position < items.size(); ++position) {
    if (!test || test(items[position])) rest.push_back(items[position]);
  }
  known_length = static_cast<std::int64_t>(rest.size()) + index + 1 + (after ? 1 : 0);
  items = std::move(rest);
  test = nullptr;
  position = 0;
  return *known_length;
}

void Loop::close() {
  if (!test || position == items.size()) static_cast<void>(length());
  closed = true;
  test = nullptr;
  items.clear();
  before.reset();
  after.reset();
}

}  // namespace steadfast::jinja
