#include "verify/code/tests.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "verify/sandbox/sandbox.h"

namespace ucas::code {
namespace {

Tests read(const std::string& gold, const std::string& where = "t") {
  static const std::string python = Sandbox::untried({}, SandboxChoice::none).python();
  return read_tests(gold, where, python);
}

std::vector<std::string> steps_of(const std::string& gold) {
  std::vector<std::string> out;
  for (const Step& step : read(gold).steps) {
    out.push_back((step.kind == Step::Kind::run ? "x " : "t ") + step.code);
  }
  return out;
}

std::string refusal_of(const std::string& gold) {
  try {
    read(gold, "t.jsonl:1");
  } catch (const Error& error) {
    return error.word() + ": " + error.what();
  }
  return "";
}

TEST(code_tests, an_assert_is_taken_apart_into_a_call_and_a_value) {
  const Tests tests =
      read("s = Solution()\n# note\nassert s.f([1,\n 2]) == [3, 'a, b == c']  # why\nassert 4 == s.g(), 'm'\n", "t");
  ASSERT_EQ(tests.steps.size(), 3u);
  EXPECT_EQ(tests.steps[0].code, "s = Solution()");
  EXPECT_EQ(tests.steps[1].code, "s.f([1, 2])");
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
      (std::vector<std::string>{"x candidate = Solution().f", "t candidate(1)", "t candidate(3)"}));
}

TEST(code_tests, nodes_and_tolerances_are_understood) {
  const Tests tests = read(
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
  const Tests close = read("assert math.isclose(f(2), 100, rel_tol=0.01)\nassert True, 'why'\n");
  ASSERT_EQ(close.expected.size(), 1u);
  EXPECT_TRUE(meets(*parse_value("100.9"), close.expected[0]));
  EXPECT_FALSE(meets(*parse_value("102"), close.expected[0]));
}

// What cannot be taken apart would have to go into the sandbox whole, where the solution could read it.
TEST(code_tests, an_expected_value_never_becomes_code) {
  for (const char* text :
       {"assert f(1) == g(1)", "assert f(1) in [1, 2]", "assert same(f(1), [1, 2])", "assert f(1) > 3",
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
  const Tests tests = read(
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

// Each holds what is expected, or compares, where an object whose __eq__ says True to everything would be rewarded.
TEST(tested_expressions, that_compare_inside_the_sandbox_are_refused) {
  for (
      const char* text : {
          "assert (f(1) == 918273) == True",
          "assert (f(1) == 918273) is True",
          "assert True == (f(1) == 918273)",
          "assert (f(1) != 918273) == False",
          "assert all(f(i) == i*7 for i in range(5)) == True",
          "assert all([f(i) == i*7 for i in range(5)]) is True",
          "assert str(f(1) == 5) == \"True\"",
          "assert f\"{f(1) == 5}\" == 'True'",
          "assert (f(1) in [5]) == True",
          "assert (5 in f(1)) == True",
          "assert bool(f(1) == 5) == True",
          "assert [f(1) == 5, f(2) == 6] == [True, True]",
          "assert sum(f(i) == i for i in range(9)) == 9",
          "assert sum([1 for i in range(9) if f(i) == i]) == 9",
          "assert (1 if f(1) == 5 else 0) == 1",
          "assert ['no', 'yes'][f(1) == 5] == 'yes'",
          "assert {5: 'yes'}[f(1)] == 'yes'",
          "assert {5: 'yes'}.get(f(1)) == 'yes'",
          "assert [5, f(1)].count(5) == 2",
          "assert (f(1) < 5) == True",
          "assert (f(1) or 5) == 5",
          "assert (lambda v: v == 5)(f(1)) == True",
          "assert list(filter(lambda v: v == 5, [f(1)])) == [5]",
          "assert f(1).__eq__(5) == True",
          "import math\nassert math.isclose(f(2), 4.71) == True",
          "from math import isclose as near\nassert isclose(f(2), 4.71) == True",
          "import operator\nassert operator.eq(f(1), 5) == True",
          "assert eval('f(1) == 5') == True",
          "expected = 5\nassert (f(1) == expected) == True",
          "ok = f(1) == 5\nassert ok == True",
          "ok = True\nfor i in range(5):\n    ok = ok and f(i) == 7 * i\nassert ok is True",
          "ok = True\nfor i in range(5):\n    if f(i) != 7 * i: ok = False\nassert ok is True",
          "seen = []\nfor i in range(5):\n    seen.append(f(i) == i)\nassert seen == [True, True, True, True, True]",
          "def same(a, b):\n    return a == b\nassert same(f(1), 5) == True",
          "def right():\n    return f(1) == 5\nassert right() == True",
          "values = lambda n: 5 if n == 5 else 0\nassert values(f(1)) == 5",
          "same = lambda a, b: a == b\nassert same(f(1), 5) == True",
          "s = Solution()\nassert (s.f(1) == 5) == True",
          "ok = 0\nmatch f(1):\n    case 918273: ok = 1\nassert ok == 1",
          "ok = 0\ntry:\n    [918273].remove(f(1))\n    ok = 1\nexcept ValueError:\n    pass\nassert ok == 1",
          "ok = 0\nwhile not f(1) - 918273:\n    ok = 1\n    break\nassert ok == 1",
          "out = []\nfor i in range(3):\n    out.append(f(i))\nassert out == [0, 1, 0]",
          "with f(1) as ok:\n    pass\nassert ok == 1",
          "assert [x for x in [918273] if x - f(1)] == []",
          "assert sum([1 for i in range(3) if f(i)]) == 1",
          "x = [918273]\nx.remove(f(1))\nassert x == []",
          "assert sorted([3], key=f) == [3]",
          "assert max([918273], key=f) == 918273",
          "assert (y := f(1)) == 918273",
          "len = lambda v: v == 918273\nassert len(f(1)) == True",
          "from operator import eq as len\nassert len(f(1), 5) == True",
          "class T:\n    def run(self):\n        return f(1) == 5\nassert T().run() == True",
          "def right(x=f(1) == 5):\n    return x\nassert right() == True",
          "exec('ok = f(1) == 5')\nassert ok == True",
          "import functools\nassert functools.reduce(lambda a, b: a == b, [f(1), 5]) == True",
          R"J({"entry_point": "f", "asserts": "assert close(f(1), 5) == True"})J",
          R"J({"entry_point": "f", "prelude": "def close(a, b):\n    return abs(a - b) < 1e-6\n", "asserts": "assert close(f(1), 5) == True"})J",
          R"J({"entry_point": "f", "asserts": "def check(candidate):\n    assert (candidate(1) == 5) == True"})J",
      }) {
    EXPECT_EQ(refusal_of(text).find("data_line: t.jsonl:1: tests: \""), 0u) << text;
  }
}

// An object with a __sub__, __add__ or startswith of its own would give these without knowing anything.
TEST(tested_expressions, that_hand_the_expected_value_to_the_result_are_refused) {
  for (const char* text : {"assert f(1) - 5 == 0",
                           "assert f(1) ^ 5 == 0",
                           "assert max(f(1), 5) == 5",
                           "assert max(f(1), -5) == -5",
                           "assert f(1) + [5] == [5]",
                           "assert set(f(1)) - {1, 2} == set()",
                           "assert f(1).startswith('ab') == True",
                           "assert f(1).issuperset([5]) == True",
                           "want = 5\nassert f(1) - want == 0",
                           "want = 5\nassert max(f(1), want) == 5",
                           "d = f(1) - 5\nassert d == 0",
                           "d = f(1)\nd -= 5\nassert d == 0",
                           "assert len({918273, f(1)}) == 1",
                           "assert sorted([918273, f(1)]) == [918273, 918273]",
                           "assert 'a918273b'.replace(str(f(1)), '') == 'ab'",
                           "assert sum([f(1)], 918273) == 918273",
                           "assert f(10) % 1000 == 24",
                           "assert f(1) + f(2) == 0",
                           "assert f(1).count(3) == 2",
                           "assert f(1)[918273] == 918273",
                           "assert round(f(1), 5) == 5",
                           "out = [918273]\nout.append(f(1))\nassert len(set(out)) == 1",
                           "out = []\nout.append(f(1))\nout.append(918273)\nassert len(set(out)) == 1",
                           "r = f(1)\nr.x = 918273\nassert r == 1",
                           "assert list(zip(f(1), [918273])) == [(1, 2)]",
                           "def g(x):\n    return [918273][x is None]\nassert g(f(1)) == 918273",
                           "def g(x):\n    return 918273 - x\nassert g(f(1)) == 0"}) {
    const std::string said = refusal_of(text);
    EXPECT_NE(said.find("expected assert CALL == LITERAL"), std::string::npos) << text << ": " << said;
  }
}

TEST(tested_expressions, that_only_call_convert_or_index_are_taken) {
  for (
      const char* text : {
          "assert f(1) == 5",
          "assert f([1, 2], k=3, key=lambda x: x > 3) == True",
          "assert f(1 == 1, 'a' in 'abc') == 0",
          "assert f([i for i in range(10) if i % 2 == 0]) == 0",
          "assert len(f(1)) == 1",
          "assert sorted(f(1), key=lambda v: v[0], reverse=True) == [1]",
          "assert set(f(1)) == {1, 2}",
          "assert round(f(1), 2) == 0",
          "assert f(1)[0] == 0",
          "assert f(1)[-1]['a'] is None",
          "assert ''.join(f(1)) == ''",
          "assert ', '.join(map(str, f(1))) == '1'",
          "assert '{}'.format(f(1)) == '1'",
          "assert [f(i) for i in range(3)] == [0, 1, 4]",
          "assert [f(i) for i in range(9) if i % 2 == 0] == [0]",
          "assert list(map(f, [0, 1])) == [0, 1]",
          "assert [f(0), f(1)] == [True, False]",
          "assert (f(0), f(1)) == (0, 1)",
          "assert all(f(i) for i in range(5)) == True",
          "assert f(g(2)) == True",
          "assert -f(1) == 0",
          "assert abs(f(1) - 0.5) < 1e-6",
          "assert f(1) is None",
          "s = Solution()\nassert s.f([1]) == True",
          "assert Solution().f(1, 2) == 0",
          "c = LRUCache(2)\nc.put(1, 1)\nassert c.get(1) == 1\nassert c.put(2, 2) == None",
          "test_input = {'a': 1}\nassert s.f(**test_input) == 1\ntest_input = {'a': 2}\nassert s.f(**test_input) == 0",
          "r = f(1)\nassert r == 0\nassert r[0] == 1",
          "a, b = f(1)\nassert a == 0\nassert b == True",
          "def build(n):\n    return [i for i in range(n) if i % 2 == 0]\nassert f(build(9)) == True",
          "def values(node):\n    out = []\n    while node is not None:\n        out.append(node.val)\n        node = "
          "node.next\n    return out\nassert values(f(1)) == [1]",
          "node = lambda xs: ListNode(xs[0], node(xs[1:])) if xs else None\nvalues = lambda n: [n.val] + "
          "values(n.next) if n else []\ns = Solution()\nassert values(s.f(node([1]))) == [0]\nassert "
          "values(s.f(node([]))) == []",
          "assert (not f(1)) == True",
          "x = 3\nassert f(x) == 0",
          "nums = [2, 1]\nSolution().sort(nums)\nassert nums == [1, 2]",
          "assert max_chain([Pair(5, 24), Pair(15, 25)], 4) == 3",
          "assert sum(10, 15) == 5",
          "import math\nassert math.floor(f(1)) == 0",
          R"J({"entry_point": "f", "asserts": "def check(candidate):\n    assert candidate(1) == True\n    assert not candidate(2)"})J",
          R"J({"entry_point": "Solution().f", "asserts": "def check(candidate):\n    assert candidate(nums = [1, 2], k = 1) == True\n\ncheck(Solution().f)"})J",
      }) {
    EXPECT_EQ(refusal_of(text), "") << text;
  }
}

// expected = [1, 2] is a literal as good as any, and stays outside with it.
TEST(tested_expressions, a_name_of_a_literal_may_be_expected_and_stays_outside) {
  const Tests tests = read("n = 3\nwant = [1, 2]\nassert f(n) == want\nwant = 5\nassert want == f(n)");
  std::string inside;
  for (const Step& step : tests.steps) inside += step.code + ";";
  EXPECT_EQ(inside, "n = 3;f(n);f(n);");
  ASSERT_EQ(tests.expected.size(), 2u);
  EXPECT_EQ(tests.expected[0].value.items.size(), 2u);
  EXPECT_EQ(tests.expected[1].value.text, "5");
  // Not where another statement may have changed it.
  EXPECT_NE(refusal_of("want = [1]\nwant.append(f(1))\nassert f(1) == want"), "");
  // A formatted text reads it, too.
  EXPECT_EQ(steps_of("want = 5\nassert f(f'{want}') == want").size(), 2u);
}

TEST(tested_expressions, of_any_depth_are_read_or_refused) {
  for (const char* open : {"(", "[", "{", "f(", "x[", "lambda: ", "not ", "-", "f'{", "(x for x in "}) {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += open;
    refusal_of("assert " + text + "f(1) == 5");
    refusal_of("x = " + text + "\nassert f(1) == 5");
  }
}

// What an expected side may be: what ast and its own arithmetic work out, without running any of it.
TEST(tested_expressions, that_are_literals_or_made_of_them_are_worked_out) {
  const struct {
    const char *text, *value;
  } kCases[] = {{"-5", "-5"},
                {"2 ** 10 + 1", "1025"},
                {"[0] * 3", "[0, 0, 0]"},
                {"set((4, 5))", "{4, 5}"},
                {"frozenset([1])", "{1}"},
                {"tuple([1, (2,)])", "(1, (2,))"},
                {"sorted([3, 1], reverse=True)", "[3, 1]"},
                {"{'a': [1, None]}", "{'a': [1, None]}"},
                {"float('inf')", "inf"},
                {"math.inf", "inf"},
                {"'a' + 'b'", "'ab'"},
                {"len([1, 2])", "2"},
                {"7 // 2 / 2", "1.5"},
                {"1 + 2j", "('complex', 1.0, 2.0)"},
                {"[i * k for i in range(4) if i != 1 for k in (1, 2)]", "[0, 0, 2, 4, 3, 6]"},
                {"sum(i ** 2 for i in [1, 2, 3] if i % 2 == 1 and i > 0)", "10"},
                {"'abcd'[1:-1].upper() + chr(ord('a') + 1)", "'BCb'"},
                {"(3 in [1, 3] or 1 > 2)", "True"},
                {"('a' if 1 < 2 else 'b')", "'a'"}};
  for (const auto& one : kCases) {
    const Tests tests = read(std::string("import math\nassert f(1) == ") + one.text);
    EXPECT_TRUE(equal(tests.expected.at(0).value, *parse_value(one.value))) << one.text;
  }
  for (const char* text :
       {"9 ** 9 ** 9", "[1] * 10 ** 9", "[[1] * 1000] * 1000000", "'a' * (1 << 40)", "1 / 0", "...", "f(1)", "{[]: 1}",
        "list(range(10 ** 12))", "sys.path", "open('/etc/passwd').read()", "float('x')"}) {
    EXPECT_NE(refusal_of(std::string("assert f(1) == ") + text), "") << text;
  }
}

// HumanEval's loops: inputs and what is expected are worked out, round by round, with helpers next to the solution.
TEST(code_tests, loops_of_asserts_become_one_test_a_round) {
  const Tests counted = read("for x in range(2, 5):\n    assert f(x, x + 1) == str(x)");
  ASSERT_EQ(counted.expected.size(), 3u);
  EXPECT_EQ(counted.expected[2].value.text, "4");
  const Tests sampled = read(
      R"J({"entry_point": "f", "asserts": "def check(candidate):\n    import random\n    for _ in range(3):\n        x, y = random.randint(1, 9), random.randint(1, 9)\n        assert candidate(x, y) == x + y\n"})J");
  ASSERT_EQ(sampled.expected.size(), 3u);
  for (const Expected& one : sampled.expected) EXPECT_GE(std::stoi(one.value.text), 2);
  const Tests helped = read(
      R"J({"entry_point": "undo", "helpers": "def twice(s):\n    t = [c + c for c in s]\n    return ''.join(t)\n\ndef undo(s):\n    'of twice'\n", "asserts": "def check(candidate):\n    for word in ['ab', 'c']:\n        twofold = twice(word)\n        assert candidate(twofold) == word\n"})J");
  std::string inside;
  for (const Step& step : helped.steps) inside += step.code + ";";
  EXPECT_EQ(inside, "candidate = undo;twofold = 'aabb';candidate(twofold);twofold = 'cc';candidate(twofold);")
      << "no word goes in";
  for (const char* text : {"for x in f(3):\n    assert f(x) == 1", "for x in [1]:\n    assert g(f(x), 918273) < 5",
                           "for x in range(3):\n    if f(x) != 1:\n        assert f(x) == 2"}) {
    EXPECT_NE(refusal_of(text), "") << text;
  }
  EXPECT_EQ(refusal_of("assert says(\"a\")\nassert not says(\"b\")"), "");
}

// A result is in a list of one or bare, tuples are lists, keys of JSON are texts, reals are near.
TEST(code_tests, of_published_sets_mean_what_their_runners_say) {
  const auto accepts = [](const char* output, const char* given, bool wrapped) {
    const std::string more = wrapped ? R"("wrapped": true, )" : "";
    const Tests tests =
        read(R"({"entry_point": "f", )" + more + R"("values": [{"input": "1", "output": ")" + output + "\"}]}");
    return meets(*parse_value(given), tests.expected.at(0));
  };
  for (const bool wrapped : {true, false}) {
    EXPECT_EQ(accepts("[3]", "3", wrapped), wrapped);
    EXPECT_EQ(accepts("[[1, 2]]", "(1, 2)", wrapped), wrapped);
    EXPECT_TRUE(accepts("[3]", "[3]", wrapped));
    EXPECT_TRUE(accepts("[1, [2, 3]]", "(1, (2, 3))", wrapped));
    EXPECT_FALSE(accepts("[4]", "3", wrapped));
    EXPECT_TRUE(accepts("0.3", "0.30000000000000004", wrapped));
    EXPECT_FALSE(accepts("0.3", "0.3001", wrapped));
    EXPECT_FALSE(accepts("3", "3.0000001", wrapped));
    EXPECT_TRUE(accepts(R"({\"1\": [2.5]})", "{1: [2.5]}", wrapped));
    EXPECT_FALSE(accepts(R"({\"1\": 2})", "{2: 2}", wrapped));
  }
  const Expected printed{.form = Expected::Form::lines, .text = "0.333333333333 7\n"};
  EXPECT_TRUE(meets("0.3333333333333333 7", printed));
  EXPECT_FALSE(meets("0.3334 7", printed));
  EXPECT_FALSE(meets("0.333333333333 7.0000001", printed));
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
  EXPECT_EQ(found("<think>\n```\nx = 1\n```\n</think>\n```\ny = 2\n```", Extract::strict), "y = 2\n");
  EXPECT_EQ(found("<think>\n```\nx = 1\n```\n</think> no program", Extract::strict), "-");
}

}  // namespace
}  // namespace ucas::code
