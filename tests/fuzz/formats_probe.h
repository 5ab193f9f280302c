// Opens bytes as a model file and, where they are accepted, reads everything the file offers and checks what the
// readers promise: tensors of exactly the bytes their shape needs, inside the file, without overlap. Returns whether it
// opened.
#pragma once

#include <cstddef>
#include <span>

namespace steadfast::test {

bool probe_gguf(std::span<const std::byte> bytes);
bool probe_safetensors(std::span<const std::byte> bytes);

}  // namespace steadfast::test
