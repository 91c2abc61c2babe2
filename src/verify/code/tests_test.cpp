#include "verify/code/tests.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "verify/code/source.h"

namespace ucas::code {
namespace {

std::vector<std::string> steps_of(const std::string& gold) {
  std::vector<std::string> out;
  for (const Step& step : read_tests(gold, "t").steps) {
    out.push_back((step.kind == Step::Kind::run ? "x " : "t ") + step.code);
  }
  return out;
}

std::string refusal_of(const std::string& gold) {
  try {
    read_tests(gold, "t.jsonl:1");
  } catch (const Error& error) {
    return error.word() + ": " + error.what();
  }
  return "";
}

TEST(code_tests, an_assert_is_taken_apart_into_a_call_and_a_value) {
  const Tests tests = read_tests(
      "s = Solution()\n# note\nassert s.f([1,\n 2]) == [3, 'a, b == c']  # why\nassert 4 == s.g(), 'm'\n", "t");
  ASSERT_EQ(tests.steps.size(), 3u);
  EXPECT_EQ(tests.steps[0].code, "s = Solution()\n");
  EXPECT_EQ(tests.steps[1].code, "s.f([1,\n 2])");
  EXPECT_EQ(tests.steps[2].code, "s.g()");
  ASSERT_EQ(tests.expected.size(), 2u);
  EXPECT_EQ(tests.expected[0].value.items.size(), 2u);
  EXPECT_EQ(tests.expected[1].value.text, "4");
}

TEST(code_tests, check_is_called_with_the_entry_point) {
  EXPECT_EQ(
      steps_of(
          "{\"entry_point\": \"Solution().f\", \"asserts\": \"def check(candidate):\\n    assert candidate(1) == 2\\n"
          "    assert not candidate(3)\\n\\ncheck(Solution().f)\"}"),
      (std::vector<std::string>{"x candidate = Solution().f\n", "t candidate(1)", "t candidate(3)"}));
}

TEST(code_tests, nodes_and_tolerances_are_understood) {
  const Tests tests = read_tests(
      "assert is_same_list(f(1), list_node([1, 2]))\nassert is_same_tree(f(2), tree_node([1, None, 2, None]))\n"
      "assert abs(f(3) - 0.5) < 1e-6\nassert f(4) is None\n",
      "t");
  EXPECT_EQ(tests.steps[0].code, "f(1)");
  EXPECT_EQ(tests.expected[0].value.items.size(), 2u);
  EXPECT_EQ(tests.expected[1].value.items.size(), 3u);
  EXPECT_EQ(tests.expected[2].form, Expected::Form::near);
  EXPECT_TRUE(meets(*parse_value("0.5000005"), tests.expected[2]));
  EXPECT_FALSE(meets(*parse_value("0.6"), tests.expected[2]));
  EXPECT_TRUE(meets(*parse_value("None"), tests.expected[3]));
}

// What cannot be taken apart would have to go into the sandbox whole, where the solution could read it.
TEST(code_tests, an_expected_value_never_becomes_code) {
  for (const char* text : {"assert f(1) == g(1)", "assert f(1) in [1, 2]", "assert same(f(1), [1, 2])",
                           "assert f(1) > 3", "for i in range(3):\n    assert f(i) == i",
                           "assert f(1) == 1 and f(2) == 2", "expected = 3", "assert True", "assert f(1) == 1 == 1"}) {
    EXPECT_NE(refusal_of(text).find("data_line: t.jsonl:1: tests: "), std::string::npos) << text;
  }
}

TEST(code_tests, what_is_no_test_is_refused_with_its_place) {
  for (const char* gold : {"{\"stdin\": []}", "{}", "{\"calls\": [{\"input\": \"1\", \"output\": \"2\"}]}",
                           "{\"entry_point\": \"f\", \"values\": [{\"input\": \"x\", \"output\": \"2\"}]}",
                           "{\"entry_point\": \"f(1) or g\", \"asserts\": \"assert f(1) == 1\"}",
                           "{\"entry_point\": \"f\", \"calls\": [{\"input\": \"1\", \"output\": \"Error: no\"}]}"}) {
    EXPECT_EQ(refusal_of(gold).find("data_line: t.jsonl:1"), 0u) << gold;
  }
}

TEST(code_tests, a_printed_output_may_be_the_text_or_the_value) {
  const Tests tests = read_tests(
      "{\"entry_point\": \"f\", \"calls\": [{\"input\": \"n = 1\", \"output\": \"12\"}, {\"input\": \"n = 2\", "
      "\"output\": \"ab\"}]}",
      "t");
  EXPECT_EQ(tests.steps[0].code, "f(n = 1)");
  EXPECT_TRUE(meets(*parse_value("12"), tests.expected[0]));
  EXPECT_TRUE(meets(*parse_value("'12'"), tests.expected[0]));
  EXPECT_FALSE(meets(*parse_value("13"), tests.expected[0]));
  EXPECT_TRUE(meets(*parse_value("'ab'"), tests.expected[1]));
  EXPECT_FALSE(meets(*parse_value("None"), tests.expected[1]));
}

TEST(code_tests, printed_lines_are_compared_by_words_and_decimals) {
  const Expected expected{.form = Expected::Form::lines, .text = "1 2\n3.50\nYes\n"};
  EXPECT_TRUE(meets("1 2 \n3.5\nYes", expected));
  EXPECT_FALSE(meets("1 2\n3.5\nyes", expected));
  EXPECT_FALSE(meets("1 2\n3.5", expected));
  EXPECT_FALSE(meets("1 2\n3.5\nYes\n4", expected));
  EXPECT_FALSE(meets("1 2 3.5 Yes", expected));
  EXPECT_FALSE(meets("", expected));
}

TEST(code_source, is_the_last_whole_block_of_python) {
  const auto found = [](const char* text, Extract extract) { return find_source(text, extract).value_or("-"); };
  EXPECT_EQ(found("a\n```python\nx = 1\n```\nb\n```\ny = 2\n```\n", Extract::strict), "y = 2\n");
  EXPECT_EQ(found("```python\nx = 1\n```\n```json\n{}\n```", Extract::strict), "x = 1\n");
  EXPECT_EQ(found("```python\nx = 1\n```\n```python\ny = 2", Extract::strict), "x = 1\n");
  EXPECT_EQ(found("x = 1", Extract::strict), "-");
  EXPECT_EQ(found("x = 1", Extract::lenient), "x = 1");
  EXPECT_EQ(found("```python\nx = 1", Extract::lenient), "-");
  EXPECT_EQ(found("```\nx = 1\n```\n<answer>4</answer>", Extract::answer_tag), "-");
  EXPECT_EQ(found("<answer>\n```\nx = 1\n```\n</answer>", Extract::answer_tag), "x = 1\n");
  EXPECT_EQ(found("``` \n", Extract::bare), "``` \n");
}

}  // namespace
}  // namespace ucas::code
