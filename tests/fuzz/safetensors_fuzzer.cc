// libFuzzer on the safetensors reader: clang, -DSTEADFAST_FUZZ=ON and a sanitizer.
#include <cstdint>

#include "formats_probe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  steadfast::test::probe_safetensors({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
