// Files of cases: what they say, and what is said of wrong ones.
#include <gmock/gmock.h>

#include <fstream>

#include "backend/cpu/cpu_backend.h"
#include "contract/contract.h"
#include "support/temp_folder.h"

namespace steadfast::contract {
namespace {

using testing::HasSubstr;

const std::string kHeading = "rms_norm\twhen\trows\twidth\n";

class CasesTest : public testing::Test {
 protected:
  Result<std::vector<Case>> read(const std::string& text) {
    const std::string path = (folder_.path() / "cases.tsv").string();
    std::ofstream(path) << text;
    return read_cases(path);
  }
  std::string error(const std::string& text) {
    const auto cases = read(text);
    EXPECT_FALSE(cases.is_ok()) << text;
    return cases.message();
  }
  test::TempFolder folder_;
};

TEST_F(CasesTest, AreReadInOrderFromSeveralTables) {
  auto cases = read(
      "# a comment\n" + kHeading +
      "one\tquick\t3\t16\r\ntwo words\tfull\t70\t333\n\ncopy\twhen\top\trows\twidth\nthree\tcard\tgather\t5\t17\n");
  ASSERT_TRUE(cases.is_ok()) << cases.message();
  ASSERT_EQ(cases->size(), 3u);
  EXPECT_EQ((*cases)[0].kernel, "rms_norm");
  EXPECT_EQ((*cases)[0].number("width"), 16);
  EXPECT_FALSE((*cases)[0].full);
  EXPECT_EQ((*cases)[1].name, "two words");
  EXPECT_TRUE((*cases)[1].full);
  EXPECT_FALSE((*cases)[1].card);
  EXPECT_EQ((*cases)[2].kernel, "copy");
  EXPECT_TRUE((*cases)[2].is("op", "gather"));
  EXPECT_TRUE((*cases)[2].card);
  EXPECT_EQ((*cases)[2].line, 7);
}

TEST_F(CasesTest, SayWhatIsWrongAndWhere) {
  EXPECT_THAT(error(""), HasSubstr("no case in it"));
  EXPECT_THAT(error("nonsense\twhen\n"), HasSubstr("line 1: there is no kernel \"nonsense\""));
  EXPECT_THAT(error("rms_norm\twhen\trows\n"), HasSubstr("needs the columns when, rows, width"));
  EXPECT_THAT(error("rms_norm\twhen\trows\twidth\tmore\n"), HasSubstr("no column \"more\""));
  EXPECT_THAT(error("rms_norm\twhen\trows\trows\n"), HasSubstr("\"rows\" stands twice"));
  EXPECT_THAT(error(kHeading + "one\tquick\t3\n"), HasSubstr("line 2: 3 fields under 4 columns"));
  EXPECT_THAT(error(kHeading + "one\tquick\t3x\t16\n"), HasSubstr("rows: \"3x\" is not a whole number"));
  EXPECT_THAT(error(kHeading + "one\tquick\t0\t16\n"), HasSubstr("rows is 0; use 1 to"));
  EXPECT_THAT(error(kHeading + "one\tlater\t3\t16\n"), HasSubstr("when is \"later\"; use one of: quick, full, card"));
  EXPECT_THAT(error(kHeading + "one\tquick\t3\t16\none\tquick\t4\t16\n"),
              HasSubstr("a case \"one\" already, in line 2"));
  EXPECT_THAT(error(kHeading + "\tquick\t3\t16\n"), HasSubstr("a case without a name"));
  EXPECT_THAT(read_cases("/nowhere/at/all").message(), HasSubstr("cannot be read"));
}

TEST_F(CasesTest, OfWeightsAreCheckedWhenTheyAreMade) {
  const std::string heading = "linear\twhen\trows\tin\tweights\tprologue\tepilogue\tfine\n";
  const auto run = [&](const std::string& weights) {
    auto cases = read(heading + "one\tquick\t2\t64\t" + weights + "\tplain\tplain\tno\n");
    EXPECT_TRUE(cases.is_ok()) << cases.message();
    Options options;
    options.cases = *cases;
    options.schedules = false;
    CpuOptions one_thread;
    one_thread.threads = 1;
    auto backend = make_cpu_backend(one_thread);
    const auto outcome = check(std::move(*backend), options);
    return outcome ? std::string("fine") : outcome.message();
  };
  EXPECT_EQ(run("8:4/64/bf16"), "fine");
  EXPECT_THAT(run("8"), HasSubstr("linear, one: weight \"8\": write OUT:BITS/GROUP/SCALES"));
  EXPECT_THAT(run("8:7/64/bf16"), HasSubstr("2, 3, 4, 5, 6 or 8 bits"));
  EXPECT_THAT(run("8:4/128/bf16"), HasSubstr("do not divide 64 inputs"));
  EXPECT_THAT(run("8:4/64/f64"), HasSubstr("use bf16, f16 or f32"));
}

TEST(Cases, OfTheProgramHoldEveryKernelSmallOnesFirst) {
  for (const Kernel& kernel : all_kernels()) {
    bool found = false, full = false;
    for (const Case& one : built_in_cases()) {
      if (one.kernel != kernel.name) continue;
      EXPECT_TRUE(found || !one.full) << kernel.name;
      EXPECT_TRUE(one.full || !full) << kernel.name << ", " << one.name;
      found = true, full = one.full;
    }
    EXPECT_TRUE(found) << kernel.name;
  }
}

TEST(Glob, Matches) {
  EXPECT_TRUE(matches("rms_norm", "*"));
  EXPECT_TRUE(matches("rms_norm", "*norm"));
  EXPECT_TRUE(matches("rms_norm", "r?s_*"));
  EXPECT_TRUE(matches("rms_norm", "rms_norm"));
  EXPECT_FALSE(matches("rms_norm", "norm"));
  EXPECT_FALSE(matches("rms_norm", ""));
  EXPECT_FALSE(matches("rms", "rms?"));
}

}  // namespace
}  // namespace steadfast::contract
