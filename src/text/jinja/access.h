// Subscripts: slices and single elements with Python's rules for negative and missing bounds.
#pragma once

#include <optional>

#include "text/jinja/heap.h"

namespace steadfast::jinja {

// object[start:stop:step]; none stands for a bound left out.
Value slice(Heap& heap, const Value& object, const Value& start, const Value& stop, const Value& step);
// object[index] of a string, list, tuple or range; nothing past its ends or where the object has no elements.
std::optional<Value> element(Heap& heap, const Value& object, std::int64_t index);

}  // namespace steadfast::jinja
