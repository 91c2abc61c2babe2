#include "study/view.h"

#include <gtest/gtest.h>

#include "base/files/file.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

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
