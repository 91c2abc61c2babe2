#include "records/run/run_directory.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class run_directory : public ::testing::Test {
 protected:
  static RunEnvironment environment() {
    return {.version = "0.1",
            .torch = "2.13.0",
            .isa = "avx2",
            .isa_reason = "best this CPU has",
            .device = "cpu",
            .threads = 2,
            .started = "2026-01-31T12:00:00Z",
            .model = "models/a \"b\"",
            .data = "d.jsonl",
            .method = "DAPO",
            .command = "ucas train --out run",
            .initial_weights = "12ab",
            .training_data = "34cd"};
  }
  static std::string kind_of(const std::function<void()>& work, const std::string& says) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
      return error.word();
    }
    return "nothing thrown";
  }
  testing::TemporaryDirectory folder_;
  std::string path_ = path_join(folder_.path(), "run");  // not there yet
};

TEST_F(run_directory, a_fresh_one_holds_config_and_environment) {
  RunDirectory run = RunDirectory::create(path_, "seed = 1\n", environment());
  EXPECT_EQ(read_file(run.config_file()), "seed = 1\n");
  Json env = read_json(run.env_file(), 1 << 20);
  EXPECT_EQ(env["model"], "models/a \"b\"");
  EXPECT_EQ(env["threads"], 2);
  EXPECT_EQ(env["initial_weights"], "12ab");
  EXPECT_EQ(env["training_data"], "34cd");
  EXPECT_EQ(env["command"], "ucas train --out run");
  EXPECT_TRUE(is_directory(run.checkpoints()));
  EXPECT_EQ(run.checkpoint(12), path_ + "/checkpoints/step-0000012");
}

TEST_F(run_directory, a_second_run_does_not_move_in) {
  {
    RunDirectory run = RunDirectory::create(path_, "", environment());
  }
  EXPECT_EQ(kind_of([&] { RunDirectory::create(path_, "other", environment()); }, "--resume"), "path");
  EXPECT_EQ(read_file(path_ + "/config.toml"), "");
}

TEST_F(run_directory, a_refused_place_is_left_as_it_was) {
  make_directories(path_);
  write_file(path_ + "/config.toml", "somebody's");
  EXPECT_EQ(kind_of([&] { RunDirectory::create(path_, "", environment()); }, "config.toml"), "path");
  EXPECT_EQ(list_directory(path_), std::vector<std::string>{"config.toml"});
}

TEST_F(run_directory, what_a_kill_left_before_config_toml_is_taken_over) {
  for (const char* folder : {"checkpoints", "eval", "rollouts", "signals"}) make_directories(path_join(path_, folder));
  write_file(path_ + "/env.json", "{}");
  EXPECT_EQ(kind_of([&] { RunDirectory::open(path_); }, "no run has begun here"), "path");
  RunDirectory run = RunDirectory::create(path_, "seed = 1\n", environment());
  EXPECT_EQ(read_file(run.config_file()), "seed = 1\n");
}

TEST_F(run_directory, folders_that_hold_something_are_not_taken_over) {
  make_directories(path_ + "/checkpoints/step-0000001");
  EXPECT_EQ(kind_of([&] { RunDirectory::create(path_, "", environment()); }, "(checkpoints)"), "path");
}

TEST_F(run_directory, steps_that_the_log_lacks_are_named) {
  RunDirectory run = RunDirectory::create(path_, "", environment());
  EXPECT_EQ(run.missing_steps(0), "");
  EXPECT_EQ(run.missing_steps(1), "1");
  EXPECT_EQ(run.missing_steps(3), "1 to 3");
  EXPECT_EQ(run.last_step(), -1);
  for (int step : {0, 1, 2, 4, 5, 9}) run.append_step(R"({"training/global_step":)" + std::to_string(step) + "}");
  run.sync();
  EXPECT_EQ(run.missing_steps(2), "");
  EXPECT_EQ(run.missing_steps(5), "3");
  EXPECT_EQ(run.missing_steps(9), "3, 6 to 8");
  EXPECT_EQ(run.missing_steps(11), "3, 6 to 8, 10 to 11");
  EXPECT_EQ(run.last_step(), 9);
}

TEST_F(run_directory, remarks_are_kept_once_beside_what_was_there) {
  RunDirectory run = RunDirectory::create(path_, "", environment());
  for (const char* text : {"one", "two", "one"}) run.remark(text);
  EXPECT_EQ(run.remarks(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(run.environment("model"), "models/a \"b\"");
  EXPECT_EQ(run.environment("nothing"), "");
}

TEST_F(run_directory, two_trainers_cannot_share_it) {
  RunDirectory run = RunDirectory::create(path_, "", environment());
  EXPECT_EQ(kind_of([&] { RunDirectory::open(path_); }, "in use by another ucas (pid "), "path");
}

TEST_F(run_directory, two_trainers_cannot_share_it_where_its_lock_file_was_deleted) {
  const auto run = std::make_unique<RunDirectory>(RunDirectory::create(path_, "", environment()));
  remove_all(path_ + "/.lock");
  EXPECT_EQ(kind_of([&] { RunDirectory::open(path_); }, "in use by another ucas (its lock file was deleted)"), "path");
  write_file(path_ + "/.lock", "pid 12 on elsewhere\n");
  EXPECT_EQ(kind_of([&] { RunDirectory::open(path_); }, "in use by another ucas (pid 12 on elsewhere)"), "path");
  rename_path(path_, path_ + "-moved");
  EXPECT_EQ(kind_of([&] { RunDirectory::open(path_ + "-moved"); }, "in use by another ucas"), "path");
}

TEST_F(run_directory, can_be_opened_again_when_its_trainer_is_gone) {
  {
    RunDirectory run = RunDirectory::create(path_, "", environment());
    remove_all(path_ + "/.lock");
  }
  RunDirectory::open(path_);
  RunDirectory::open(path_);
}

// logrotate, an editor, somebody who tidies up.
TEST_F(run_directory, a_log_that_is_moved_or_deleted_is_made_again) {
  RunDirectory run = RunDirectory::create(path_, "", environment());
  const auto append = [&](int step) { run.append_step(R"({"training/global_step":)" + std::to_string(step) + "}"); };
  append(1);
  append(2);
  const int64_t before = warnings_counted(Warning::moved_log);
  rename_path(run.steps_file(), run.steps_file() + ".1");
  append(3);
  EXPECT_EQ(run.missing_steps(3), "");
  EXPECT_EQ(warnings_counted(Warning::moved_log), before + 1);
  remove_all(run.steps_file());
  append(4);
  EXPECT_EQ(run.missing_steps(4), "");
  write_file(run.steps_file(), "an editor's copy");  // another file of that name
  append(5);
  EXPECT_EQ(run.missing_steps(5), "");
  EXPECT_EQ(warnings_counted(Warning::moved_log), before + 3);
  append(6);
  EXPECT_EQ(warnings_counted(Warning::moved_log), before + 3);
  // After the last step: before the checkpoint is sealed.
  remove_all(run.steps_file());
  run.sync();
  EXPECT_EQ(run.missing_steps(6), "");
  // What was cut cannot be had back; it is said once.
  truncate_file(run.steps_file(), 0);
  append(7);
  append(8);
  EXPECT_EQ(warnings_counted(Warning::moved_log), before + 5);
  EXPECT_EQ(run.missing_steps(8), "1 to 6");
}

TEST_F(run_directory, says_whether_a_checkpoint_was_ever_saved) {
  RunEnvironment fresh = environment();
  fresh.checkpoint_saved = "no";
  RunDirectory run = RunDirectory::create(path_, "", fresh);
  EXPECT_EQ(run.has_saved(), "no");
  run.note_saved();
  EXPECT_EQ(run.has_saved(), "yes");
  EXPECT_EQ(run.environment("model"), "models/a \"b\"");
}

TEST_F(run_directory, opening_what_is_no_run_is_refused) {
  EXPECT_EQ(kind_of([&] { RunDirectory::open(path_); }, "no such run directory"), "path");
  make_directories(path_);
  EXPECT_EQ(kind_of([&] { RunDirectory::open(path_); }, "no config.toml"), "path");
  EXPECT_FALSE(exists(path_ + "/.lock"));  // nothing was left behind
}

TEST_F(run_directory, lines_past_the_checkpoint_are_cut) {
  RunDirectory run = RunDirectory::create(path_, "", environment());
  for (int step = 1; step <= 5; ++step) run.append_step(R"({"training/global_step":)" + std::to_string(step) + "}");
  write_file(path_ + "/eval/step-0000002.jsonl", "a");
  write_file(path_ + "/eval/step-0000004.jsonl", "b");
  write_file(run.rollout_file(5), "c");
  write_file(run.signals_file(1), "d");
  write_file(run.signals_file(5), "e");
  run.sync();
  run.cut_after(3);
  EXPECT_EQ(read_file(run.steps_file()),
            "{\"training/global_step\":1}\n{\"training/global_step\":2}\n{\"training/global_step\":3}\n");
  EXPECT_TRUE(exists(path_ + "/eval/step-0000002.jsonl"));
  EXPECT_FALSE(exists(path_ + "/eval/step-0000004.jsonl"));
  EXPECT_FALSE(exists(run.rollout_file(5)));
  EXPECT_TRUE(exists(run.signals_file(1)));
  EXPECT_FALSE(exists(run.signals_file(5)));
  run.append_step(R"({"step":4})");
  EXPECT_TRUE(read_file(run.steps_file()).ends_with("{\"training/global_step\":3}\n{\"step\":4}\n"));
  run.cut_after(0);
  EXPECT_EQ(read_file(run.steps_file()), "");
}

TEST_F(run_directory, a_torn_last_line_goes_too) {
  RunDirectory run = RunDirectory::create(path_, "", environment());
  write_file(run.steps_file(), "{\"step\":1}\n{\"step\":2}\n{\"ste");
  run.cut_after(2);
  EXPECT_EQ(read_file(run.steps_file()), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(run_directory, a_damaged_log_is_refused_rather_than_shortened) {
  RunDirectory run = RunDirectory::create(path_, "", environment());
  write_file(run.steps_file(), "{\"step\":1}\nwhat\n{\"step\":2}\n");
  EXPECT_EQ(kind_of([&] { run.cut_after(2); }, "steps.jsonl:2"), "data_line");
}

TEST(step_names, read_back_exactly) {
  for (int64_t step : {0, 1, 12, 9999999, 123456789}) EXPECT_EQ(parse_step_name(step_name(step)), step);
  EXPECT_EQ(parse_step_name("step-0000012.jsonl"), 12);
  for (const char* name :
       {"step-12", "step-", "step--000001", "step-00000012", "step-0000012x", ".tmp-step-0000001-7"}) {
    EXPECT_EQ(parse_step_name(name), -1) << name;
  }
}

}  // namespace
}  // namespace ucas
