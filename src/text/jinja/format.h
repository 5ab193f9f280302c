// Python's two ways to format text: "..." % arguments, and "...".format(arguments).
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/heap.h"

namespace steadfast::jinja {

// `arguments`: a tuple, a dict for %(name)s, or one value.
Value percent_format(Heap& heap, const Value& format, const Value& arguments);
// "{} {0.name[key]:>5}".format(...)
Value brace_format(Interpreter& vm, const Value& format, const Arguments& arguments);
// One value by a format specification: [[fill]align][sign][#][0][width][,][.precision][type].
std::string format_value(const Value& value, std::string_view specification);

}  // namespace steadfast::jinja
