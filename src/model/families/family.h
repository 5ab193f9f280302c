// A family: the differences of one model_type from the shared form. The forward itself exists once (model/forward.cc).
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"
#include "model/fields.h"

namespace steadfast {

struct Family {
  const char* name;  // model_type in config.json
  void (*read)(Fields& fields, ModelConfig& config);
  const char* other_name = nullptr;  // another spelling of model_type
  const char* gguf_name = nullptr;   // architecture in GGUF, where it is not the name
  bool gguf_rotates_pairs = false;   // its GGUF files hold q and k rows permuted for (2i, 2i+1) pairs: undone at load
};

const Family* find_family(std::string_view model_type);  // nullptr: not supported
std::string family_names();                              // "llama, qwen2, ..."

extern const Family kLlama, kQwen2, kQwen3, kQwen35;

}  // namespace steadfast
