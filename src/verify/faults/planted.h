// Makers of the backends with a fault, for fault.cc: what each falsifies is said beside its class.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace steadfast::planted {

std::unique_ptr<Backend> table_swap(std::unique_ptr<Backend> inner);
std::unique_ptr<Backend> page_row(std::unique_ptr<Backend> inner);
std::unique_ptr<Backend> position(std::unique_ptr<Backend> inner);
std::unique_ptr<Backend> stale_state(std::unique_ptr<Backend> inner);
std::unique_ptr<Backend> shared_write(std::unique_ptr<Backend> inner);
std::unique_ptr<Backend> neighbour_scale(std::unique_ptr<Backend> inner);
std::unique_ptr<Backend> span_border(std::unique_ptr<Backend> inner);
std::unique_ptr<Backend> thread_sum(std::unique_ptr<Backend> inner, int workers);

}  // namespace steadfast::planted
