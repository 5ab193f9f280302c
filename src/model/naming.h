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
  // hybrid: the file is of a family with recurrent layers, which names one norm differently.
  static Naming gguf(bool hybrid) { return Naming(true, hybrid, "", ""); }

  bool is_gguf() const { return gguf_; }
  bool is_mlx() const { return body_ == "language_model.model."; }
  // Module "layers.3.mlp.up_proj", "embed_tokens", "norm" or "lm_head" as the file calls it, without ".weight".
  std::string module(const std::string& canonical) const;

 private:
  Naming(bool is_gguf, bool hybrid, std::string body, std::string head)
      : gguf_(is_gguf), hybrid_(hybrid), body_(std::move(body)), head_(std::move(head)) {}
  bool gguf_, hybrid_;
  std::string body_, head_;
};

}  // namespace steadfast
