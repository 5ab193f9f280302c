// Packs strips of weights on the host into the fragments of linear_plan.h. Plain functions, any thread.
#pragma once

#include <span>
#include <vector>

#include "backend/cuda/linear_plan.h"
#include "quant/affine.h"
#include "quant/dense.h"

namespace steadfast::cuda {

// The form for a reader's weights if its bf16 scales fit; float_form(form) is the one that always fits.
Form affine_form(const AffineReader& reader);
Form float_form(Form form);

// Rows of the file for features [first, first + 128) of a weight with `out` features; -1 behind its end.
std::vector<int> tile_rows(int out, std::span<const int> row_map, int tile);

// One tile, as strip_place says, into zeroed memory. False: a scale does not fit the form.
bool pack_tile(const AffineReader& reader, Form form, std::span<const int> rows, std::uint8_t* to);
void pack_tile(const DenseReader& reader, std::span<const int> rows, std::uint8_t* to);

}  // namespace steadfast::cuda
