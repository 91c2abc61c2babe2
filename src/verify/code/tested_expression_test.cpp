#include <gtest/gtest.h>

#include "base/error.h"
#include "verify/code/tests.h"

namespace ucas::code {
namespace {

// "" if the tests are taken, else the message.
std::string answer_to(const std::string& gold) {
  try {
    read_tests(gold, "t.jsonl:1");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Each holds what is expected, or compares, where an object whose __eq__ says True to everything would be paid.
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
          R"J({"entry_point": "f", "asserts": "assert close(f(1), 5) == True"})J",
          R"J({"entry_point": "f", "prelude": "def close(a, b):\n    return abs(a - b) < 1e-6\n", "asserts": "assert close(f(1), 5) == True"})J",
          R"J({"entry_point": "f", "asserts": "def check(candidate):\n    assert (candidate(1) == 5) == True"})J",
      }) {
    const std::string said = answer_to(text);
    EXPECT_NE(said.find("t.jsonl:1: tests: \""), std::string::npos) << text << ": " << said;
    EXPECT_NE(said.find("expected assert CALL == LITERAL"), std::string::npos) << text << ": " << said;
  }
}

// An object with a __sub__, __add__ or startswith of its own would give these without knowing anything.
TEST(tested_expressions, that_hand_the_expected_value_to_the_result_are_refused) {
  for (const char* text :
       {"assert f(1) - 5 == 0", "assert f(1) ^ 5 == 0", "assert max(f(1), 5) == 5", "assert max(f(1), -5) == -5",
        "assert f(1) + [5] == [5]", "assert set(f(1)) - {1, 2} == set()", "assert f(1).startswith('ab') == True",
        "assert f(1).issuperset([5]) == True", "want = 5\nassert f(1) - want == 0",
        "want = 5\nassert max(f(1), want) == 5", "d = f(1) - 5\nassert d == 0", "d = f(1)\nd -= 5\nassert d == 0"}) {
    const std::string said = answer_to(text);
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
          "assert f(10) % 1000 == 24",
          "assert f(1) + f(2) == 0",
          "assert f(g(2)) == True",
          "assert -f(1) == 0",
          "assert f(1).count(3) == 2",
          "assert abs(f(1) - 0.5) < 1e-6",
          "assert f(1) is None",
          "s = Solution()\nassert s.f([1]) == True",
          "assert Solution().f(1, 2) == 0",
          "c = LRUCache(2)\nc.put(1, 1)\nassert c.get(1) == 1\nassert c.put(2, 2) == None",
          "test_input = {'a': 1}\nassert s.f(**test_input) == 1\ntest_input = {'a': 2}\nassert s.f(**test_input) == 0",
          "r = f(1)\nassert r == 0\nassert r[0] == 1",
          "a, b = f(1)\nassert a == 0\nassert b == True",
          "out = []\nfor i in range(3):\n    out.append(f(i))\nassert out == [0, 1, 0]",
          "def build(n):\n    return [i for i in range(n) if i % 2 == 0]\nassert f(build(9)) == True",
          "def values(node):\n    out = []\n    while node is not None:\n        out.append(node.val)\n        node = "
          "node.next\n    return out\nassert values(f(1)) == [1]",
          "node = lambda xs: ListNode(xs[0], node(xs[1:])) if xs else None\nvalues = lambda n: [n.val] + "
          "values(n.next) if n else []\ns = Solution()\nassert values(s.f(node([1]))) == [0]\nassert "
          "values(s.f(node([]))) == []",
          "assert (not f(1)) == True",
          "assert sum([1 for i in range(3) if f(i)]) == 1",
          "x = 3\nassert f(x) == 0",
          "import math\nassert math.floor(f(1)) == 0",
          R"J({"entry_point": "f", "asserts": "def check(candidate):\n    assert candidate(1) == True\n    assert not candidate(2)"})J",
          R"J({"entry_point": "Solution().f", "asserts": "def check(candidate):\n    assert candidate(nums = [1, 2], k = 1) == True\n\ncheck(Solution().f)"})J",
      }) {
    EXPECT_EQ(answer_to(text), "") << text;
  }
}

// expected = [1, 2] is a literal as good as any, and stays outside with it.
TEST(tested_expressions, a_name_of_a_literal_may_be_expected_and_stays_outside) {
  const Tests tests = read_tests("n = 3\nwant = [1, 2]\nassert f(n) == want\nwant = 5\nassert want == f(n)", "t");
  std::string inside;
  for (const Step& step : tests.steps) inside += step.code + ";";
  EXPECT_EQ(inside, "n = 3\n;f(n);f(n);");
  ASSERT_EQ(tests.expected.size(), 2u);
  EXPECT_EQ(tests.expected[0].value.items.size(), 2u);
  EXPECT_EQ(tests.expected[1].value.text, "5");
  // Not where another statement may have changed it.
  EXPECT_NE(answer_to("want = [1]\nwant.append(f(1))\nassert f(1) == want"), "");
  // A formatted text reads it, too.
  const Tests read = read_tests("want = 5\nassert f(f'{want}') == want", "t");
  EXPECT_EQ(read.steps.size(), 2u);
}

TEST(tested_expressions, of_any_depth_are_read_or_refused) {
  for (const char* open : {"(", "[", "{", "f(", "x[", "lambda: ", "not ", "-", "f'{", "(x for x in "}) {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += open;
    answer_to("assert " + text + "f(1) == 5");
    answer_to("x = " + text + "\nassert f(1) == 5");
  }
}

}  // namespace
}  // namespace ucas::code
