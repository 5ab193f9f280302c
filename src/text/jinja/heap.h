// Makes the values of one rendering, owns its objects and scopes, and counts what it uses against limits.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/jinja/limits.h"
#include "text/jinja/objects.h"

namespace steadfast::jinja {

class Heap {
 public:
  Value text(std::string text) { return make_text(std::move(text), false); }
  Value safe_text(std::string text) { return make_text(std::move(text), true); }
  // A string of the same kind (safe or not) as `like`.
  Value text_like(const Value& like, std::string text) { return make_text(std::move(text), like.is_safe_text()); }
  Value sequence(SequenceType type, std::vector<Value> items);
  Value list(std::vector<Value> items) { return sequence(SequenceType::kList, std::move(items)); }
  Value tuple(std::vector<Value> items) { return sequence(SequenceType::kTuple, std::move(items)); }
  Value generator(std::vector<Value> items) { return sequence(SequenceType::kGenerator, std::move(items)); }
  // A later entry replaces the value of an earlier one with an equal key. Keys that Python cannot hash are errors.
  Value dict(Entries entries);
  // The same where the keys are known to be different strings.
  Value dict_of_unique(Entries entries);

  template <typename T, typename... Args>
  T* make(Args&&... args) {
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T* result = object.get();
    objects_.push_back(std::move(object));
    object_bytes_ += sizeof(T) + sizeof(Scope);
    check_memory();
    return result;
  }

  Scope* open_scope(Scope* parent);
  void close_scope(Scope* scope);  // forgets its names unless a macro holds them

  void spend(std::int64_t steps);
  void spend_walk(const Value& value) { spend(static_cast<std::int64_t>(value.extent().weight)); }
  void spend_text(std::size_t bytes) { spend(static_cast<std::int64_t>(bytes / 64)); }
  // The input is loaded: what it took does not count against the rendering.
  void begin_rendering() {
    baseline_ = meter_.bytes;
    steps_ = 0;
  }
  // A text of this size is about to be made: an error where no text may be so long.
  static void check_text_size(std::size_t bytes);

 private:
  Value make_text(std::string text, bool safe);
  static void include(Extent& whole, const Value& part);
  static Extent checked(Extent extent);
  void check_memory() const;

  Meter meter_;  // outlives the objects below
  std::size_t baseline_ = 0;
  std::size_t object_bytes_ = 0;
  std::int64_t steps_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> free_scopes_;
};

}  // namespace steadfast::jinja
