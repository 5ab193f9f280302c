// Records of kernels' limits, and what differs from them.
#include "contract/kernel_limits.h"

#include <gmock/gmock.h>

namespace steadfast::contract {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kText =
    "# nvcc 13.0.88\nsource\tkernel\tregisters\tstack\tspill stores\tspill loads\tshared\n"
    "a.cu\tn::f<1>\t40\t0\t0\t0\t128\nb.cu\tn::g\t32\t0\t0\t0\t0\n";

TEST(Limits, AreReadAndRefused) {
  auto record = parse_limits(kText, "sm_90a.tsv");
  ASSERT_TRUE(record.is_ok()) << record.message();
  EXPECT_EQ(record->architecture, "sm_90a");
  EXPECT_EQ(record->compiler, "13.0.88");
  ASSERT_EQ(record->kernels.size(), 2u);
  EXPECT_EQ(record->kernels[0].shared, 128);
  EXPECT_THAT(parse_limits("", "x.tsv").message(), HasSubstr("no compiler"));
  EXPECT_THAT(parse_limits(kText + "a\tb\n", "x.tsv").message(), HasSubstr("line 5: 2 fields, not 7"));
  EXPECT_THAT(parse_limits(kText + "a\tb\tmany\t0\t0\t0\t0\n", "x.tsv").message(), HasSubstr("\"many\""));
}

TEST(Limits, OfTheProgramSpillNowhere) {
  EXPECT_EQ(built_in_limits().size(), 6u);
  for (const LimitsRecord& record : built_in_limits())
    for (const KernelLimits& one : record.kernels)
      EXPECT_EQ(one.stack + one.spill_stores + one.spill_loads, 0) << record.architecture << " " << one.kernel;
}

TEST(Limits, NamesAreThoseOfTheRecord) {
  EXPECT_EQ(plain_name("_ZN9steadfast4cuda12_GLOBAL__N_16kernelILi64ELb1EEEvNS0_6LaunchE"),
            "steadfast::cuda::kernel<64, true>");
  EXPECT_EQ(plain_name("void n::(anonymous namespace)::f<(n::E)1>(int, float*)"), "n::f<(n::E)1>");
  EXPECT_EQ(plain_name("plain"), "plain");
}

TEST(Limits, AreCompared) {
  const LimitsRecord record = *parse_limits(kText, "sm_90a.tsv");
  LoadedKernels loaded{"sm_90a", "13.0.88", {{"n::f<1>", 40, 0, 128}, {"n::g", 32, 0, 0}}};
  EXPECT_THAT(compare(loaded, record).wrong, ElementsAre());
  EXPECT_EQ(compare(loaded, record).compared, 2);
  loaded.kernels[0].local = 16;
  EXPECT_THAT(compare(loaded, record).wrong, ElementsAre("n::f<1> has 16 bytes of local memory"));
  loaded.kernels = {{"n::f<1>", 41, 0, 128}, {"n::h", 1, 0, 0}};
  EXPECT_THAT(compare(loaded, record).wrong,
              ElementsAre(HasSubstr("41 registers"), HasSubstr("n::h is not in the record")));
  loaded.compiler = "12.9.1";  // another compiler's numbers are its own
  EXPECT_THAT(compare(loaded, record).wrong, ElementsAre(HasSubstr("n::h is not in the record")));
  EXPECT_EQ(compare(loaded, record).notes.size(), 1u);
}

}  // namespace
}  // namespace steadfast::contract
