// The tables of docs/verifier.md and tests/goldens/verify/rules.md are tests: columns rule, gold, equal, not equal;
// texts in backticks.
#include <gtest/gtest.h>

#include <fstream>

#include "base/str.h"
#include "support/verdicts.h"

namespace ucas::math {

namespace {

std::vector<std::string> texts_in(const std::string& cell) {
  std::vector<std::string> parts = split(cell, '`'), texts;
  for (size_t i = 1; i < parts.size(); i += 2) texts.push_back(parts[i]);
  return texts;
}

int check_examples_of(const std::string& page) {
  std::ifstream file(UCAS_SOURCE_DIR + page);
  int examples = 0;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("|")) inside = false;
    if (line.starts_with("| rule | gold |")) inside = true;
    if (!inside) continue;
    std::vector<std::string> cells = split(line, '|');
    if (cells.size() != 6) {
      ADD_FAILURE() << line;
      continue;
    }
    std::vector<std::string> gold = texts_in(cells[2]);
    if (gold.empty()) continue;  // the heading
    for (const std::string& text : texts_in(cells[3])) {
      EXPECT_TRUE(is_rewarded(gold[0], text)) << gold[0] << "  and  " << text << ": " << grade_one(gold, text).reason;
      ++examples;
    }
    for (const std::string& text : texts_in(cells[4])) {
      EXPECT_FALSE(is_rewarded(gold[0], text)) << gold[0] << "  and  " << text << ": " << grade_one(gold, text).reason;
      ++examples;
    }
  }
  return examples;
}

TEST(verifier_docs, every_example_holds) {
  EXPECT_GT(check_examples_of("/docs/verifier.md"), 90);
  EXPECT_GT(check_examples_of("/tests/goldens/verify/rules.md"), 120);
}

}  // namespace

}  // namespace ucas::math
