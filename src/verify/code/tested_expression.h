// What an expression of a test does with the solution's result inside the sandbox. A comparison there, or a literal
// that the result meets there, would let an object with an __eq__ of its own decide the outcome, so such a test is
// refused. Read with a small reader of Python's expressions that follows names which earlier statements of the tests
// assign.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/code/python_tokens.h"
#include "verify/sandbox/value.h"

namespace ucas::code {

// What is known of the value of an expression.
struct Inside {
  enum class Kind {
    value,
    solution,  // a function of the solution, not called
    instance,  // an object of a class of the solution: its methods are functions of the solution
    helper,    // a function that the tests define
    library    // a function or module of Python
  };
  Kind kind = Kind::value;
  bool result = false;    // comes from the solution
  bool other = false;     // a literal, or what the tests made of literals
  bool compares = false;  // a comparison with a result decides it
  bool combines = false;  // a result and something else decide it: f(1) - 5
  void add(const Inside& part) {
    result |= part.result, other |= part.other, compares |= part.compares, combines |= part.combines;
  }
};

class TestedExpressions {
 public:
  // `entry`: the function under test as the data name it, may be empty. `prelude`: code before the solution.
  TestedExpressions(const std::string& entry, std::string_view prelude);
  void also_entry(std::string_view name) { names_[std::string(name)] = {.kind = Inside::Kind::solution}; }
  // A statement that runs before the expressions that follow, with its indented block.
  void statement(std::string_view text);
  // Why an expression may not be run for a test that expects `expected`; "" if it may.
  std::string refusal(std::string_view expression, const Value& expected) const;
  const std::map<std::string, Inside, std::less<>>& names() const { return names_; }  // that statements have set
  const std::string& entry() const { return entry_; }

 private:
  void define(std::string_view text);
  Inside helper(std::span<const Token> tokens, size_t from, std::string_view name) const;
  void simple(std::string_view text, bool compares);
  std::string_view after_header(std::string_view line, bool& decided);
  void assign(std::string_view targets, const Inside& value);

  std::string entry_;
  std::map<std::string, Inside, std::less<>> names_;
};

}  // namespace ucas::code
