// Reads an answer, as a model or a data set writes it, into a tree (verify/math/read/expr.h). Never throws on any bytes
// and takes O(n) steps up to counted limits. A text that could be read in two ways is read in the usual one: 1,234 is
// one number, 2e-3 is 0.002, and 1000,5 is a list (a decimal comma is not told from one).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/math/read/expr.h"

namespace ucas::math {

struct ParseOptions {
  bool explain = false;   // record the rewrites
  bool choices = true;    // a lone (B) or B is a choice letter, not a variable
  bool free_text = true;  // what the grammar cannot read becomes a text node; otherwise it is unparseable
};

enum class ParseStatus : uint8_t { ok, empty, unparseable, over_budget };

struct ParseResult {
  ParseStatus status = ParseStatus::empty;
  Tree tree;                          // tree.root() is an error node unless status is ok
  std::string reason;                 // one phrase where status is not ok
  std::vector<std::string> rewrites;  // "\\dfrac12 read as 1/2", in order
};

ParseResult parse_math(std::string_view text, const ParseOptions& options = {});

}  // namespace ucas::math
