// The command's words and exit statuses; what it finds is tested in tests/law.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "support/run_command.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace steadfast {
namespace {

using testing::HasSubstr;

test::Outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "verify");
  return test::run_command({add_verify}, std::move(words));
}

class VerifyCommand : public testing::Test {
 protected:
  VerifyCommand() {
    test::TinyModel model = test::TinyModel::random(3);
    model.config["max_position_embeddings"] = 48;
    model.write(folder_);
  }
  std::vector<std::string> with(std::vector<std::string> words) const {
    words.insert(words.begin(), {folder_.path().string(), "--threads", "1"});
    return words;
  }
  test::TempFolder folder_;
};

TEST_F(VerifyCommand, PrintsTheTable) {
  const test::Outcome outcome = run(with({}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("streams in shared rounds = each alone"));
  EXPECT_THAT(outcome.out, HasSubstr("the row law holds here"));
}

TEST_F(VerifyCommand, GivesJson) {
  const test::Outcome outcome = run(with({"--json", "--kv-dtype", "f32"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["differing"], 0);
  EXPECT_GT(json["rows"], 100);
  EXPECT_GT(json["replies"], 50);
  for (const auto& row : json["equalities"]) {
    EXPECT_EQ(row["equal"], row["cases"]);
    EXPECT_TRUE(row["first"].is_null());
    EXPECT_EQ(row["kv"], "f32");
  }
}

TEST_F(VerifyCommand, PlantsAFault) {
  const test::Outcome caught = run(with({"--plant", "neighbour-scale"}));
  EXPECT_EQ(caught.status, 0);
  EXPECT_THAT(caught.out, HasSubstr("caught by \"a prompt in pieces"));
  const test::Outcome json = run(with({"--plant", "position", "--json"}));
  EXPECT_EQ(json.status, 0);
  const auto planted = nlohmann::json::parse(json.out);
  EXPECT_EQ(planted["missed"], 0);
  EXPECT_GT(planted["planted"][0]["caught_by"]["differing"], 0);
  EXPECT_GT(planted["planted"][0]["caught_by"]["first"]["distance"], 0);
}

TEST_F(VerifyCommand, SaysWhatItCannotPlant) {
  const test::Outcome none = run(with({"--plant", "stale-state"}));
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.out, HasSubstr("cannot be carried: the model has no recurrent layers"));
  const test::Outcome all = run(with({"--plant", "all"}));
  EXPECT_EQ(all.status, 0) << all.out;
  EXPECT_THAT(all.out, HasSubstr("thread-sum"));
  EXPECT_THAT(all.out, testing::Not(HasSubstr("MISSED")));
}

TEST_F(VerifyCommand, ListsFaults) {
  const test::Outcome outcome = run(with({"--plant", "list"}));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("span-border"));
}

TEST_F(VerifyCommand, WrongUse) {
  EXPECT_EQ(run(with({"--quick", "--full"})).status, 2);
  const test::Outcome unknown = run(with({"--plant", "gremlin"}));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--plant gremlin"));
  EXPECT_EQ(run({folder_.path().string() + "/nowhere"}).status, 1);
}

}  // namespace
}  // namespace steadfast
