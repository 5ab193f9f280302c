// Heap: every value is measured (depth, weight, bytes) as it is made.
#include "text/jinja/heap.h"

#include <algorithm>

#include "text/jinja/operators.h"

namespace steadfast::jinja {

void Heap::check_text_size(std::size_t bytes) {
  if (bytes > kMaxTextBytes) fail("the template makes a text of more than {} MiB", kMaxTextBytes >> 20);
}

void Heap::check_memory() const {
  if (meter_.bytes + object_bytes_ > baseline_ + kMaxMemoryBytes) {
    fail("the template uses more than {} MiB of memory", kMaxMemoryBytes >> 20);
  }
}

void Heap::spend(std::int64_t steps) {
  steps_ += steps;
  if (steps_ > kMaxSteps) fail("the template takes more than {} steps; is it looping without end?", kMaxSteps);
}

Value Heap::make_text(std::string text, bool safe) {
  check_text_size(text.size());
  spend_text(text.size());
  Value result = Value::text(std::make_shared<const Text>(std::move(text), safe, &meter_));
  check_memory();
  return result;
}

void Heap::include(Extent& whole, const Value& part) {
  const Extent extent = part.extent();
  whole.depth = std::max(whole.depth, extent.depth);
  whole.weight += extent.weight;
}

Extent Heap::checked(Extent extent) {
  if (extent.depth >= kMaxValueDepth) fail("lists and dicts are nested more than {} deep", kMaxValueDepth);
  if (extent.weight > kMaxValueWeight) fail("a list or dict holds too much ({} parts)", extent.weight);
  return {extent.depth + 1, extent.weight};
}

Value Heap::sequence(SequenceType type, std::vector<Value> items) {
  Extent extent;
  for (const Value& item : items) include(extent, item);
  spend(static_cast<std::int64_t>(items.size() / 4));
  Value result = Value::sequence(std::make_shared<Sequence>(type, std::move(items), checked(extent), &meter_));
  check_memory();
  return result;
}

Value Heap::dict_of_unique(Entries entries) {
  Extent extent;
  for (const auto& [key, value] : entries) {
    include(extent, key);
    include(extent, value);
  }
  spend(static_cast<std::int64_t>(entries.size() / 4));
  Value result = Value::dict(std::make_shared<const Dict>(std::move(entries), checked(extent), &meter_));
  check_memory();
  return result;
}

Value Heap::dict(Entries entries) {
  Entries unique;
  unique.reserve(entries.size());
  std::unordered_map<std::string_view, std::size_t> seen;
  std::vector<std::size_t> others;  // entries whose keys are not text
  for (auto& [key, value] : entries) {
    check_hashable(key);
    if (key.is_text()) {
      spend_text(2 * key.as_text().size());
      const auto [found, is_new] = seen.emplace(key.as_text(), unique.size());
      if (!is_new) {
        unique[found->second].second = std::move(value);
        continue;
      }
    } else {
      spend(static_cast<std::int64_t>(others.size() * key.extent().weight));
      const auto same = std::find_if(others.begin(), others.end(),
                                     [&, &probe = key](std::size_t i) { return equal(unique[i].first, probe); });
      if (same != others.end()) {
        unique[*same].second = std::move(value);
        continue;
      }
      others.push_back(unique.size());
    }
    unique.emplace_back(key, std::move(value));
  }
  return dict_of_unique(std::move(unique));
}

Scope* Heap::open_scope(Scope* parent) {
  if (free_scopes_.empty()) {
    scopes_.push_back(std::make_unique<Scope>());
    object_bytes_ += sizeof(Scope);
    check_memory();
    free_scopes_.push_back(scopes_.back().get());
  }
  Scope* scope = free_scopes_.back();
  free_scopes_.pop_back();
  scope->parent = parent;
  return scope;
}

void Heap::close_scope(Scope* scope) {
  if (scope->captured) {
    object_bytes_ += scope->names.capacity() * sizeof(scope->names[0]);
    return;
  }
  scope->names.clear();
  scope->parent = nullptr;
  free_scopes_.push_back(scope);
}

}  // namespace steadfast::jinja
