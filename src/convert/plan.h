// What a conversion writes, tensor by tensor, decided before the first byte is written: names and layouts of MLX
// folders (model-spec 1.9, 2.2), where each one's values come from, and what becomes of them. Source:
// model-spec 1.9, 1.10, 4.4.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/recipe.h"
#include "formats/gguf.h"
#include "model/config.h"

namespace steadfast {

enum class Change {
  kNone,
  kAddOne,         // the hybrids' norms: w becomes 1 + w
  kLogOfNegative,  // GGUF's -e^A_log becomes A_log
};

// One tensor of the result, or a module's weight, scales and biases together.
struct TensorJob {
  std::string module;  // the result's path, for example "model.layers.0.mlp.up_proj"
  std::string suffix;  // ".weight", ".bias", or nothing
  const TensorView* source = nullptr;
  std::vector<std::int64_t> shape;  // of the result, unquantised
  std::vector<int> rows;            // row r of the result is row rows[r] of the source; empty: the same order
  std::vector<int> columns;         // block c of the result's columns is the source's block columns[c]; empty: the same
  int column_block = 0;             // columns in a block
  Change change = Change::kNone;
  bool is_matrix = false;          // the weight of a linear or an embedding: may be quantised
  std::optional<AffineForm> form;  // of the result; nothing: not quantised
  bool kept = false;               // the codes, scales and biases are the source's own

  std::string name() const { return module + suffix; }
};

struct ConversionPlan {
  std::vector<TensorJob> jobs;
  std::vector<std::string> notes;
};

// A Hugging Face folder's tensors. hybrid: names, convolutions and norms take MLX's form; else names stay.
Result<ConversionPlan> plan_folder(const TensorSource& source, const ModelConfig& config);
// A GGUF file's tensors in Hugging Face's order of rows and columns.
Result<ConversionPlan> plan_gguf(const GgufFile& file, const ModelConfig& config);

// Gives every matrix its form. Quantised ones keep theirs unless `requantise`; without a recipe the others stay as they
// are. What a group does not divide stays unquantised with a note, or is an error where a pattern asks for it.
Status choose_forms(ConversionPlan& plan, Recipe* recipe, bool requantise);

// What config.json says under "quantization": null where nothing is quantised.
nlohmann::json quantization_of(const ConversionPlan& plan, const Recipe* recipe);

}  // namespace steadfast
