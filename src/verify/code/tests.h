// The tests of one problem, taken apart: what is run inside the sandbox, and what is expected, which never goes there.
// A gold answer is a JSON object (data/code_problems.cpp writes it), perhaps with "prelude" and "entry_point", and with
//   "asserts"  text of Python: statements, and `assert EXPRESSION == LITERAL`, taken apart by tests.py, perhaps with
//              "helpers", functions next to the solution's by which it may work out inputs
//   "calls"    [{"input": "n = 1, k = 2", "output": "3"}], arguments of entry_point
//   "values"   [{"input": "[1]\n2", "output": "3"}], a JSON value a line: arguments of the function entry_point;
//              with "wrapped" an output [3] is 3 or [3]
//   "stdin"    [{"input": .., "output": ..}], what a program reads and prints
// or, where it is no object, the text of asserts alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/grader.h"
#include "verify/sandbox/sandbox.h"

namespace ucas::code {

constexpr size_t kMostTests = 100000;

struct Expected {
  enum class Form {
    value,    // ==
    printed,  // == to the value that the text is, or its text itself (str() made it)
    truth,    // anything that counts as true (or, `negated`, as false)
    near,     // a number within `tolerance`, or within `relative` of the larger one
    lines     // what a program prints, line by line
  };
  Form form = Form::value;
  Value value;
  std::string text;
  double tolerance = 0, relative = 0;
  bool negated = false;
  bool published = false;  // JSON: a tuple may be given for a list, 1 for the key "1", what is near for a real
  bool wrapped = false;    // or its only item
};

struct Step {
  enum class Kind { run, test };
  Kind kind = Kind::run;
  std::string code;  // a statement; of a test an expression, or what the program reads
};

struct Tests {
  bool input = false;   // steps are inputs of a program
  std::string prelude;  // before the solution
  std::vector<Step> steps;
  std::vector<Expected> expected;  // of the tests, in order
  size_t expected_bytes = 0;
};

// Error(ErrorKind::data_line, "WHERE: ...") for tests that are no tests, or that cannot be taken apart. `python`: of
// the sandbox; it reads asserts in a process of its own, which no text of a model ever reaches.
Tests read_tests(const std::string& gold, const std::string& where, const std::string& python);
// What the sandbox gave as a literal, against what is expected.
bool meets(const Value& value, const Expected& expected);
// What a program printed.
bool meets(std::string_view printed, const Expected& expected);

// The program in a response.

// strict: the last whole block between lines ``` (of Python, or of no language); lenient: that, else the whole text
// where it has no such line; answer_tag: the last block inside the last <answer>; bare: the whole text. nullopt: no
// program.
std::optional<std::string_view> find_source(std::string_view response, Extract extract);

}  // namespace ucas::code
