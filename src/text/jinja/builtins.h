// The tables of filters, tests, methods and global functions.
#pragma once

#include <string_view>

#include "text/jinja/interpreter.h"

namespace steadfast::jinja {

struct NamedBuiltin {
  std::string_view name;
  Builtin builtin;
};

// Null: there is none of that name.
Builtin find_filter(std::string_view name);
Builtin find_test(std::string_view name);
// The method of a string, list, tuple, dict, range, loop or cycler.
Builtin find_method(const Value& object, std::string_view name);
// Python's methods that change a list or dict: refused, as Jinja's sandbox does.
bool is_mutating_method(const Value& object, std::string_view name);
void define_globals(Heap& heap, Scope& scope);

// The parts of the tables, by file.
Builtin find_text_filter(std::string_view name);
Builtin find_sequence_filter(std::string_view name);
Builtin find_selection_filter(std::string_view name);
Builtin find_number_filter(std::string_view name);
Builtin find_text_method(std::string_view name);
Builtin find_text_search_method(std::string_view name);
Builtin find_collection_method(const Value& object, std::string_view name);

}  // namespace steadfast::jinja
