#include "evaluate/chosen_on.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files/file.h"
#include "base/str.h"
#include "data/problems.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

// A run of which the validation on dev.jsonl was best at step 4 of 6.
class ChosenOn : public ::testing::Test {
 protected:
  ChosenOn() {
    write_file(file("dev.jsonl"),
               "{\"problem\": \"1 + 1?\", \"answer\": \"2\"}\n{\"problem\": \"2 + 2?\", \"answer\": \"4\"}\n");
    write_file(file("test.jsonl"),
               "{\"problem\": \"2 + 2?\", \"answer\": \"4\"}\n{\"problem\": \"3 + 3?\", \"answer\": \"6\"}\n");
    write_file(file("other.jsonl"), "{\"problem\": \"3 + 3?\", \"answer\": \"6\"}\n");
    std::string steps;
    for (int step = 0; step <= 6; step += 2) {
      steps +=
          str("{\"training/global_step\": ", step, ", \"val-core/dev/acc/mean@1\": ", step == 4 ? 0.5 : 0.25, "}\n");
    }
    make_directories(file("run"));
    write_file(file("run/steps.jsonl"), steps);
    configure("best_metric = \"val-core/*/acc/mean@1\"\n");
  }
  std::string file(const std::string& name) const { return path_join(home_.path(), name); }
  void configure(const std::string& train) {
    write_file(file("run/config.toml"), str("model = \"base\"\n[data]\nfiles = [\"none.jsonl\"]\nval_files = [\"",
                                            file("dev.jsonl"), "\"]\n[method]\nname = \"grpo\"\n[train]\n", train));
  }
  std::string on(const std::string& problems, int step = 4) const {
    return chosen_on(file(str("run/checkpoints/step-000000", step)), read_problems({file(problems)}, {}));
  }
  testing::TemporaryDirectory home_;
};

TEST_F(ChosenOn, the_best_step_is_told_from_the_others_and_its_own_problems_from_new_ones) {
  const std::string why = on("test.jsonl");
  EXPECT_NE(why.find("train.best_metric"), std::string::npos) << why;
  EXPECT_NE(why.find("1 of the 2 problems"), std::string::npos) << why;
  EXPECT_NE(why.find("dev.jsonl"), std::string::npos) << why;
  EXPECT_EQ(on("test.jsonl", 6), "");
  EXPECT_EQ(on("other.jsonl"), "");
}

TEST_F(ChosenOn, where_the_run_does_not_tell_nothing_is_said) {
  EXPECT_EQ(chosen_on(file("run"), read_problems({file("dev.jsonl")}, {})), "");
  std::filesystem::remove(file("run/steps.jsonl"));
  EXPECT_EQ(on("dev.jsonl"), "");
  std::filesystem::remove(file("dev.jsonl"));
  EXPECT_EQ(on("test.jsonl"), "");
}

}  // namespace
}  // namespace ucas
