#include "study/jobs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/files/file.h"
#include "base/terminal/log.h"
#include "study/view.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

TEST(study_jobs, the_last_whole_step_counts_and_a_torn_line_does_not) {
  testing::TemporaryDirectory home;
  EXPECT_EQ(last_step(home.path()), 0);
  std::string steps = path_join(home.path(), "steps.jsonl");
  write_file(steps,
             "{\"training/global_step\": 1, \"x\": 2}\n{\"training/global_step\": 12, \"x\": "
             "2}\n{\"training/global_step\": 13");
  EXPECT_EQ(last_step(home.path()), 12);
  write_file(steps, "{\"training/global_step\": 1");
  EXPECT_EQ(last_step(home.path()), 0);
}

// What the workers below are: this test program, asked for one of these.
TEST(study_jobs_worker, DISABLED_succeeds) {}
TEST(study_jobs_worker, DISABLED_fails) { FAIL() << "on purpose"; }
TEST(study_jobs_worker, DISABLED_is_killed_once) {
  std::string mark = std::getenv("UCAS_TEST_MARK");
  if (exists(mark)) return;
  write_file(mark, "");
  ::raise(SIGKILL);
}
TEST(study_jobs_worker, DISABLED_is_always_killed) { ::raise(SIGKILL); }
TEST(study_jobs_worker, DISABLED_waits) {
  for (;;) ::pause();
}

Job worker(const testing::TemporaryDirectory& home, const std::string& what) {
  return {what,
          path_join(home.path(), what),
          {"--gtest_also_run_disabled_tests", "--gtest_filter=study_jobs_worker.DISABLED_" + what, "--gtest_brief=1"},
          5};
}

TEST(study_jobs, failures_are_named_killed_workers_start_again_and_the_others_go_on) {
  testing::TemporaryDirectory home;
  LogSink before = set_log_sink([](LogLevel, const std::string&) {});
  ::setenv("UCAS_TEST_MARK", path_join(home.path(), "mark").c_str(), 1);
  std::vector<Job> jobs = {worker(home, "fails"), worker(home, "is_killed_once"), worker(home, "is_always_killed"),
                           worker(home, "succeeds")};
  JobsResult result = run_jobs(jobs, 2, [] { return false; });
  set_log_sink(before);
  EXPECT_FALSE(result.stopped);
  ASSERT_EQ(result.failed.size(), 2u);
  std::vector<std::string> titles = {result.failed[0].title, result.failed[1].title};
  std::ranges::sort(titles);
  EXPECT_EQ(titles, (std::vector<std::string>{"fails", "is_always_killed"}));
  EXPECT_TRUE(exists(path_join(home.path(), "mark")));
  EXPECT_NE(read_file(path_join(home.path(), "fails/log.txt")).find("on purpose"), std::string::npos);
  EXPECT_TRUE(exists(path_join(home.path(), "succeeds/log.txt")));
}

TEST(study_jobs, told_to_stop_the_workers_end_and_nothing_new_begins) {
  testing::TemporaryDirectory home;
  LogSink before = set_log_sink([](LogLevel, const std::string&) {});
  int asked = 0;
  JobsResult result = run_jobs({worker(home, "waits"), worker(home, "succeeds")}, 1, [&] { return ++asked > 3; });
  set_log_sink(before);
  EXPECT_TRUE(result.stopped);
  EXPECT_TRUE(result.failed.empty());
  EXPECT_FALSE(exists(path_join(home.path(), "succeeds/log.txt")));
}

TEST(study_view, a_view_has_the_studys_label_its_own_evaluation_and_everything_else_of_the_run) {
  testing::TemporaryDirectory home;
  std::string run = path_join(home.path(), "pool/ucas-tiny-0-seed1"),
              view = path_join(home.path(), "out/runs/mine-seed1");
  make_directories(path_join(run, "eval"));
  write_file(path_join(run, "config.toml"), "label = \"\"\n");
  write_file(path_join(run, "steps.jsonl"), "{}\n");
  write_file(path_join(run, "done"), "24\n");
  for (const char* name : {"test-aaaa.json", "test-aaaa.jsonl", "test-bbbb.json", "step-0000003.json"}) {
    write_file(path_join(run, path_join("eval", name)), name);
  }
  for (int twice = 0; twice < 2; ++twice) {
    make_view({run, view, "label = \"mine\"\n", "{\"row\": \"mine\"}\n", "test-aaaa", "test"});
  }
  EXPECT_EQ(read_file(path_join(view, "study.json")), "{\"row\": \"mine\"}\n");
  EXPECT_EQ(read_file(path_join(view, "config.toml")), "label = \"mine\"\n");
  EXPECT_EQ(read_file(path_join(view, "steps.jsonl")), "{}\n");
  EXPECT_EQ(list_directory(path_join(view, "eval")),
            (std::vector<std::string>{"step-0000003.json", "test.json", "test.jsonl"}));
  EXPECT_EQ(read_file(path_join(view, "eval/test.json")), "test-aaaa.json");
  EXPECT_FALSE(exists(path_join(view, "done")));
  EXPECT_EQ(read_file(path_join(run, "config.toml")), "label = \"\"\n");  // the pool is as it was
}

}  // namespace
}  // namespace ucas
