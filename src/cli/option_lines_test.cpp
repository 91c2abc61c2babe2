#include "cli/option_lines.h"

#include <gtest/gtest.h>

#include "cli/command.h"

namespace ucas {
namespace {

TEST(option_lines, come_from_the_text_of_help) {
  const std::vector<OptionLine> rows = option_lines(
      "Options:\n  --dtype NAME    type of numbers; f32 | bf16 [\"f32\"]\n  --a.very.long_key_that_stands_alone "
      "A,B,..\n"
      "                  words, several\n                  of them [[]]\n\n[other]\n  --other.on BOOL  whether "
      "[false]\nNo option\n"
      "  --dtype NAME  again; x | y [\"x\"]\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].key, "dtype");
  EXPECT_EQ(rows[0].choices, (std::vector<std::string>{"f32", "bf16"}));
  EXPECT_EQ(rows[1].key, "a.very.long_key_that_stands_alone");
  EXPECT_EQ(rows[1].type, "A,B,..");
  EXPECT_EQ(rows[1].help, "words, several of them [[]]");
  EXPECT_TRUE(rows[1].choices.empty());
  EXPECT_EQ(rows[2].choices, (std::vector<std::string>{"true", "false"}));
}

TEST(option_lines, have_a_type_and_help_for_every_option_of_every_command) {
  for (const Command& command : commands()) {
    for (const OptionLine& row : option_lines(command.options())) {
      EXPECT_FALSE(row.type.empty()) << command.name << " --" << row.key;
      EXPECT_FALSE(row.help.empty()) << command.name << " --" << row.key;
      if (row.type == "NAME") {
        EXPECT_GE(row.choices.size(), 2u) << command.name << " --" << row.key << ": " << row.help;
      }
      for (const std::string& choice : row.choices) {
        EXPECT_EQ(choice.find_first_of(" ;[]"), std::string::npos)
            << command.name << " --" << row.key << ": " << choice;
      }
    }
  }
}

}  // namespace
}  // namespace ucas
