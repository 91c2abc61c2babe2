#include "text/stop_texts.h"

#include <gtest/gtest.h>

#include "base/terminal/log.h"
#include "support/tokenizer_goldens.h"

namespace ucas {
namespace {

TEST(unencodable_rows, are_counted_once_each_and_said_with_the_first) {
  const Tokenizer tokenizer = Tokenizer::load(testing::tokenizer_goldens() + "smollm2-like");
  std::vector<std::string> said;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) { said.push_back(message); });
  const int64_t noted_before = warnings_counted(Warning::unencodable);
  UnencodableRows rows(tokenizer);
  rows.say("rows", 3);
  EXPECT_TRUE(said.empty()) << "nothing to say";
  rows.look_at("the", "set.jsonl:1");
  rows.look_at("th\x04e", "set.jsonl:2");
  rows.look_at("\x13", "set.jsonl:2");  // the row's response
  rows.look_at("\x1d", "set.jsonl:3");
  rows.say("rows", 3);
  set_log_sink(before);
  EXPECT_EQ(rows.count(), 2);
  EXPECT_EQ(warnings_counted(Warning::unencodable) - noted_before, 2);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("2 of 3 rows hold bytes that the tokenizer has no token for"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("the first is set.jsonl:2"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace ucas
