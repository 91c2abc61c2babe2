// Values of Python as text: numbers, texts, lists, dicts. What a solution gave (harness.py writes it) and what a test
// expects are read by the same parser and compared here, outside the sandbox.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ucas::code {

struct Value {
  enum class Kind { none, boolean, integer, real, text, bytes, list, tuple, set, dict };
  Kind kind = Kind::none;
  std::string text;          // of text and bytes: its bytes (UTF-8); of an integer: "-12", without zeros in front
  double real = 0;           // of a real; 1 or 0 of a boolean
  std::vector<Value> items;  // of a dict: key, value, key, value ..
};

constexpr size_t kValueDepth = 100, kIntegerDigits = 50000;

// A whole text that is one literal, blanks around it; nullopt for anything else: a name, a call, an operator. Linear.
std::optional<Value> parse_value(std::string_view text);
// As Python's ==: 1 == 1.0 == True, a list is no tuple, sets and dicts without an order.
bool equal(const Value& a, const Value& b);
// Are two decimal numbers ("1e3", "1000.0", "-.5") the same? false where one is none.
bool same_decimal(std::string_view a, std::string_view b);
// A JSON text as a literal of Python: true -> True. nullopt: not JSON.
std::optional<std::string> literal_of_json(std::string_view json);

}  // namespace ucas::code
