// Where a module's tensors lie in a file: canonical names ("layers.3.self_attn.q_proj") to the names of Hugging Face,
// MLX and GGUF files (model-spec 1.2, 1.9, 2.2, 4.5).
#pragma once

#include <string>

#include "formats/tensor_source.h"

namespace steadfast {

class Naming {
 public:
  // Finds the prefix that a safetensors folder uses ("model.", "model.language_model.", "language_model.model.", "").
  static Result<Naming> hugging_face(const TensorSource& source);
  static Naming gguf() { return Naming(true, "", ""); }

  bool is_gguf() const { return gguf_; }
  // Module "layers.3.mlp.up_proj", "embed_tokens", "norm" or "lm_head" as the file calls it, without ".weight".
  std::string module(const std::string& canonical) const;

 private:
  Naming(bool is_gguf, std::string body, std::string head) : gguf_(is_gguf), body_(std::move(body)), head_(std::move(head)) {}
  bool gguf_;
  std::string body_, head_;
};

}  // namespace steadfast
