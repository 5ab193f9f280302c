// What a weight file holds beyond the model itself: a vision tower, an MTP head, tables that are computed here. One
// note a kind for `info`, and the check that an MTP head, which drafts need, is whole (model-spec 1.8, 1.10).
#pragma once

#include <string>
#include <vector>

#include "formats/tensor_source.h"
#include "model/config.h"
#include "model/naming.h"

namespace steadfast {

// Fails with the name of the first tensor that a hybrid's MTP head lacks; a file without any of its tensors is whole.
Status check_mtp_head(const ModelConfig& config, const TensorSource& source, const Naming& naming);

// names: the tensors that the model did not read, in file order.
std::vector<std::string> notes_on_extra_tensors(const std::vector<std::string>& names, const ModelConfig& config,
                                                const Naming& naming);

}  // namespace steadfast
