#include "study/engine/text_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/files/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

StudyBase two_tasks() {
  StudyBase base;
  base.tasks = {"word-problems", "countdown"};
  base.task_options.count_train = 20;
  base.task_options.count_dev = 3;
  base.task_options.count_test = 4;
  return base;
}

size_t lines_in(const std::string& file) {
  const std::string text = read_file(file);
  return static_cast<size_t>(std::ranges::count(text, '\n'));
}

TEST(study_text_tasks, are_made_once_with_examples_of_each_in_turn_and_demonstrations_of_all) {
  testing::TemporaryDirectory home;
  const StudyBase base = two_tasks();
  make_text_tasks(base, home.path());
  const std::vector<std::string> train = text_task_files(base, home.path(), "train.jsonl");
  ASSERT_EQ(train.size(), 2u);
  for (const std::string& file : train) EXPECT_EQ(lines_in(file), 20u);
  EXPECT_EQ(lines_in(text_task_files(base, home.path(), "test.jsonl")[1]), 4u);
  EXPECT_EQ(count_of_shots(base), 4);
  const std::vector<std::string> shots = split(read_file(text_task_shots(home.path())), '\n');
  ASSERT_EQ(shots.size(), 5u);  // four and the end of the last line
  EXPECT_NE(shots[0].find("The answer is"), std::string::npos) << shots[0];
  EXPECT_EQ(shots[1].find("The answer is"), std::string::npos) << shots[1];
  const std::string demonstrations = path_join(home.path(), "demonstrations.jsonl");
  EXPECT_EQ(lines_in(demonstrations), 500u);
  write_file(demonstrations, "kept\n");
  make_text_tasks(base, home.path());
  EXPECT_EQ(read_file(demonstrations), "kept\n");
}

TEST(study_text_tasks, have_the_graders_of_their_registry_and_a_hash_of_their_options) {
  StudyBase base = two_tasks();
  EXPECT_EQ(text_task_graders(base), (std::vector<std::string>{"countdown=countdown"}));
  const std::string hash = text_tasks_hash(base);
  base.task_options.seed = 1;
  EXPECT_NE(text_tasks_hash(base), hash);
  base = two_tasks();
  base.tasks.pop_back();
  EXPECT_NE(text_tasks_hash(base), hash);
}

}  // namespace
}  // namespace ucas
