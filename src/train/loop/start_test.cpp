// How a run starts and goes on: what is refused before anything is written, and what a resume asks consent for.
#include "train/loop/start.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/str.h"
#include "config/config_file.h"
#include "config/plan/known_models.h"
#include "support/engine/tiny_training.h"

namespace ucas {
namespace {

using testing::TinyTraining;
using testing::train;

// "kind: message" of the error, "" where there is none.
std::string refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return str(error.word(), ": ", error.what());
  }
  return "";
}

TEST(start_of_training, a_config_that_cannot_run_is_refused_before_a_directory_is_made) {
  const TinyTraining tiny;
  const std::pair<const char*, const char*> refused[] = {
      {"rollout.response_length = 80", "max_position_embeddings = 96"},
      {"data.files = [\"nowhere.jsonl\"]", "nowhere.jsonl"},
      {"model = \"nowhere\"", "nowhere"},
      {"train.test_freq = 1", "data.val_files"},
  };
  for (const auto& [option, said] : refused) {
    const std::string refusal = refusal_of([&] { open_training(tiny.config(option), tiny.out(), "test"); });
    EXPECT_NE(refusal.find(said), std::string::npos) << option << ": " << refusal;
    EXPECT_FALSE(exists(tiny.out())) << option;
  }
}

TEST(start_of_training, a_directory_that_holds_a_run_is_not_written_to_and_resume_is_named) {
  const TinyTraining tiny;
  train(tiny.config("train.steps = 1"), tiny.out());
  const testing::TrainedResult before = testing::result_of(tiny.out());
  const std::string refusal = refusal_of([&] { open_training(tiny.config(), tiny.out(), "test"); });
  EXPECT_NE(refusal.find("--resume"), std::string::npos) << refusal;
  EXPECT_EQ(testing::result_of(tiny.out()), before);
}

TEST(start_of_training, a_resume_refuses_an_option_that_would_change_results_and_takes_one_that_does_not) {
  const TinyTraining tiny;
  train(tiny.config("train.steps = 1"), tiny.out());
  const std::string refusal =
      refusal_of([&] { resume_training(tiny.out(), {{"rollout.n", int64_t{8}, "--rollout.n"}}); });
  EXPECT_NE(refusal.find("--rollout.n: cannot change on --resume"), std::string::npos) << refusal;
  const Training t = resume_training(tiny.out(), {{"train.save_freq", int64_t{1}, "--train.save_freq"}});
  EXPECT_EQ(t.config.train.save_freq, 1);
  EXPECT_EQ(t.state.step, 1);
}

TEST(start_of_training, a_resume_asks_for_consent_where_the_problems_are_others_and_keeps_it) {
  const TinyTraining tiny;
  train(tiny.config("train.steps = 1"), tiny.out());
  const std::string problems = tiny.path_of("task/train.jsonl");
  write_file(problems, read_file(tiny.path_of("task/test.jsonl"), 1 << 20));
  const std::string refusal = refusal_of([&] { resume_training(tiny.out(), {}); });
  EXPECT_NE(refusal.find("--allow-changes"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("data"), std::string::npos) << refusal;
  const Training t = resume_training(tiny.out(), {{"allow-changes", true, "test"}});
  EXPECT_EQ(t.state.step, 1);
  EXPECT_TRUE(tiny.said("resuming all the same"));
  EXPECT_EQ(t.run.remarks().size(), 1u);
}

TEST(start_of_training, a_resume_by_a_binary_of_another_commit_is_remarked) {
  const TinyTraining tiny;
  train(tiny.config("train.steps = 1"), tiny.out());
  EXPECT_TRUE(resume_training(tiny.out(), {}).run.remarks().empty());
  set_in_environment(path_join(tiny.out(), "env.json"), "version", "0.2.0, commit 1d2e");
  const Training t = resume_training(tiny.out(), {});
  EXPECT_TRUE(tiny.said("begun by ucas 0.2.0, commit 1d2e"));
  ASSERT_EQ(t.run.remarks().size(), 1u);
  EXPECT_EQ(t.run.environment("version"), "0.2.0, commit 1d2e");
}

TEST(start_of_training, validation_problems_of_a_source_of_any_name_leave_a_run_that_resumes) {
  const TinyTraining tiny;
  const std::string rows = read_file(tiny.path_of("task/train.jsonl"));
  write_file(tiny.path_of("dev.jsonl"), rows.substr(0, rows.find("}\n")) +
                                            R"(, "data_source": "say \"x\"\n\u001b[31m/acc/mean@1\": 0, \"a"})"
                                            "\n");
  train(
      tiny.config(str("train.steps = 1\ntrain.test_freq = 1\ndata.val_files = [\"", tiny.path_of("dev.jsonl"), "\"]")),
      tiny.out());
  const Training t = resume_training(tiny.out(), {});
  EXPECT_EQ(t.state.step, 1);
  EXPECT_EQ(t.run.last_step(), 1);
}

TEST(start_of_training, a_run_without_its_checkpoints_is_not_begun_anew_without_being_told) {
  const TinyTraining tiny;
  train(tiny.config("train.steps = 2\ntrain.save_freq = 1"), tiny.out());
  std::filesystem::remove_all(path_join(tiny.out(), "checkpoints"));
  const std::string refusal = refusal_of([&] { resume_training(tiny.out(), {}); });
  EXPECT_NE(refusal.find("holds no checkpoint"), std::string::npos) << refusal;
}

TEST(start_of_training, out_of_memory_names_the_phase_and_a_setting_that_takes_less) {
  std::vector<Setting> settings = read_config_file("ucas-paper-1.5b");
  settings.push_back({"device", std::string("cuda"), "test"});
  const TrainConfig config = make_train_config(settings);
  RunPlan planned{.models = planned_models(config, *known_model("qwen2.5-1.5b")), .words = "peak as planned"};
  planned.models.gpu = int64_t{40} << 30;
  planned.memory = plan_memory(config, planned.models).peak();
  set_phase("step 3, updating");
  const std::string said = out_of_memory_words(planned, config, "CUDA out of memory. Tried to allocate 2.00 GiB");
  EXPECT_EQ(said.find("CUDA out of memory. Tried to allocate 2.00 GiB; at: step 3, updating"), 0U) << said;
  EXPECT_NE(said.find("; peak as planned; what takes less: update.offload = optimizer"), std::string::npos) << said;
}

}  // namespace
}  // namespace ucas
