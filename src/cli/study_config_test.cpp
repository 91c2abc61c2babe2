#include "cli/study_config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

Study read_text(const std::string& text, const std::vector<Setting>& overrides = {}) {
  testing::TemporaryDirectory directory;
  std::string path = path_join(directory.path(), "mine.toml");
  write_file(path, text);
  return read_study(path, overrides);
}

std::string refusal(const std::string& text) {
  try {
    read_text(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kTask = "[base]\ntask = \"register_chains\"\n";

TEST(study_config, rows_come_in_the_order_of_runs_with_shared_settings_below_their_own) {
  Study study = read_text(str("runs = [\"dapo-tiny\", \"stage1\"]\n", kTask,
                              "[all]\ntrain.steps = 50\n[run.stage1]\nconfig = \"ucas-tiny\"\nmethod.beta = 0\n"));
  EXPECT_EQ(study.name, "mine");
  EXPECT_EQ(study.config.out, "runs/mine");
  ASSERT_EQ(study.runs.size(), 2u);
  EXPECT_EQ(study.runs[0].config, "dapo-tiny");
  ASSERT_EQ(study.runs[0].settings.size(), 1u);
  EXPECT_EQ(study.runs[0].settings[0].key, "train.steps");
  EXPECT_EQ(study.runs[1].config, "ucas-tiny");
  ASSERT_EQ(study.runs[1].settings.size(), 2u);
  EXPECT_EQ(study.runs[1].settings[1].key, "method.beta");
}

TEST(study_config, the_command_line_overrides_the_file) {
  Study study = read_text(str("runs = [\"dapo-tiny\"]\nseeds = 2\n", kTask),
                          {{"seeds", "4", "--seeds", true}, {"all.train.steps", "3", "--all.train.steps", true}});
  EXPECT_EQ(study.config.seeds, 4);
  EXPECT_EQ(study.runs[0].settings.back().key, "train.steps");
}

TEST(study_config, what_cannot_be_meant_is_refused) {
  EXPECT_NE(refusal(kTask).find("runs is empty"), std::string::npos);
  EXPECT_NE(refusal("runs = [\"dapo-tiny\"]\n").find("base.task"), std::string::npos);
  EXPECT_NE(refusal(str("runs = [\"a\", \"a\"]\n", kTask)).find("stands twice"), std::string::npos);
  EXPECT_NE(refusal(str("runs = [\"a\"]\n", kTask, "[run.b]\nmethod.beta = 0\n")).find("not in runs"),
            std::string::npos);
  EXPECT_THROW(read_study("tiny-method", {}), Error);
}

TEST(study_config, the_embedded_studies_can_be_read) { EXPECT_GE(read_study("tiny-methods", {}).runs.size(), 3u); }

}  // namespace
}  // namespace ucas
