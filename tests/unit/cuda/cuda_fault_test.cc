// A fault of the card: reported where the round's results are waited for, and remembered, so that later rounds are
// refused with a sentence instead of a crash. A program of its own: nothing else runs on a card that failed.
#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.h"

namespace steadfast {
namespace {

TEST(CudaFault, IsReportedAndLaterRoundsAreRefused) {
  if (cuda_devices() == 0) GTEST_SKIP() << "no NVIDIA card here";
  auto card = make_cuda_backend({});
  ASSERT_TRUE(card) << card.message();
  auto memory = (*card)->allocate(4096);
  ASSERT_TRUE(memory) << memory.message();
  auto* data = static_cast<float*>((*memory)->data());
  (*card)->copy_rows(Matrix(nullptr, 1, 64), Matrix(data, 1, 64));  // reads address 0
  std::vector<float> host(64);
  const Status fault = (*card)->download(host.data(), data, 256);
  ASSERT_FALSE(fault);
  EXPECT_NE(fault.message().find("illegal"), std::string::npos) << fault.message();
  for (int round = 0; round < 2; ++round) {
    const Status refused = (*card)->finish();
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.message().find("start this program again"), std::string::npos) << refused.message();
  }
  EXPECT_FALSE((*card)->allocate(64));
}

}  // namespace
}  // namespace steadfast
