#include "records/run/step_methods.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class methods_table_of_a_run : public ::testing::Test {
 protected:
  methods_table_of_a_run() {
    make_directories(path_join(home_.path(), "signals"));
    write_file(step_, "a step\n");
    table_.files = {{"step-0000001.jsonl", hash_of_file(step_)}};
    table_.steps = 1;
    table_.groups = 2;
    table_.responses = 8;
    table_.rare = 0.25;
    table_.rows = {{"dapo", "paper", 1, 1, 0.125, 40, 0, 0, 0, 3, 0, 5, 0},
                   {"qae", "paper", std::numeric_limits<double>::quiet_NaN(), 0.7, -1.0 / 3, 40, 4, 3, 2, 3, 1, 5, 2}};
    table_.left_out = {"ppo: the values of a critic"};
  }
  MethodsTable again(const std::string& text) {
    write_file(methods_table_file(home_.path()), text);
    return read_methods_table(methods_table_file(home_.path()));
  }
  std::string refusal(const std::string& text) {
    try {
      again(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "read without complaint";
  }
  testing::TemporaryDirectory home_;
  std::string step_ = path_join(home_.path(), "signals/step-0000001.jsonl");
  MethodsTable table_;
};

TEST_F(methods_table_of_a_run, reads_back) {
  const MethodsTable read = again(methods_table_json(table_, "run"));
  EXPECT_EQ(read.files, table_.files);
  EXPECT_EQ(read.steps, 1);
  EXPECT_EQ(read.groups, 2);
  EXPECT_EQ(read.responses, 8);
  EXPECT_EQ(read.rare, 0.25);
  EXPECT_EQ(read.left_out, table_.left_out);
  ASSERT_EQ(read.rows.size(), 2u);
  const AgainstDapo &row = read.rows[1], &own = table_.rows[1];
  EXPECT_EQ(row.name, "qae");
  EXPECT_TRUE(std::isnan(row.correlation));
  EXPECT_EQ(row.net, own.net);
  EXPECT_EQ(row.size, own.size);
  for (auto count :
       {&AgainstDapo::tokens, &AgainstDapo::turned, &AgainstDapo::silenced, &AgainstDapo::woken, &AgainstDapo::rare,
        &AgainstDapo::rare_lowered, &AgainstDapo::other, &AgainstDapo::other_lowered}) {
    EXPECT_EQ(row.*count, own.*count);
  }
}

TEST_F(methods_table_of_a_run, of_other_steps_is_refused) {
  const std::string text = methods_table_json(table_, "run");
  write_file(step_, "another step\n");
  EXPECT_NE(refusal(text).find("made from another step-0000001.jsonl than lies next to it"), std::string::npos);
  remove_all(step_);
  EXPECT_NE(refusal(text).find("than lies next to it"), std::string::npos) << refusal(text);
}

TEST_F(methods_table_of_a_run, of_a_wrong_form_is_refused) {
  table_.rows[1].rare_lowered = 4;  // of 3
  EXPECT_NE(refusal(methods_table_json(table_, "run")).find("rare_right_lowered"), std::string::npos);
  table_.rows.clear();
  EXPECT_NE(refusal(methods_table_json(table_, "run")).find("a row for DAPO"), std::string::npos);
  EXPECT_NE(refusal("{\"format\": \"x\"}").find("ucas advantages"), std::string::npos);
}

}  // namespace
}  // namespace ucas
