// What --device may name, on machines with and without a card.
#include "engine/devices.h"

#include <gtest/gtest.h>

#include "engine/load_model.h"

namespace steadfast {
namespace {

Status opened(const std::string& device, Act act) {
  LoadOptions options;
  options.device = device;
  options.threads = 1;
  options.act = act;
  return make_backend(options).status();
}

TEST(Devices, TheCpuIsAlwaysThere) { EXPECT_TRUE(opened("cpu", Act::kInt8)); }

TEST(Devices, TheDefaultCanBeOpened) {
  const std::string device = default_device();
  EXPECT_TRUE(opened(device, device == "cpu" ? Act::kInt8 : Act::kBF16)) << device;
}

TEST(Devices, UnknownNamesAreRefused) {
  for (const char* name : {"", "gpu", "cuda0", "cuda:", "cuda:x", "cuda:0x", "CPU"})
    EXPECT_FALSE(opened(name, Act::kBF16)) << name;
  EXPECT_NE(opened("gpu", Act::kBF16).message().find("cpu, cuda"), std::string::npos);
}

TEST(Devices, ACardThatIsNotThereIsRefusedWithASentence) {
  const Status status = opened("cuda:4711", Act::kBF16);
  EXPECT_FALSE(status);
  EXPECT_NE(status.message().find("--device cuda"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace steadfast
