// Reads an answer, as a model or a data set writes it, into a tree (verify/math/expr.h). Never throws on any bytes and
// takes O(n) steps up to counted limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/math/expr.h"

namespace ucas::math {

struct ParseOptions {
  bool explain = false;   // record the rewrites
  bool choices = true;    // a lone (B) or B is a choice letter, not a variable
  bool free_text = true;  // what the grammar cannot read becomes a text node; otherwise it is unparseable
  // Some texts can be read in two ways. The first reading takes 1,234 for one number, 2e-3 for 0.002 and 1000,5 for a
  // list; the second takes them for a list, for 2e - 3 and for 1000.5. ParseResult::ambiguous says whether they differ.
  bool second_reading = false;
};

enum class ParseStatus : uint8_t { ok, empty, unparseable, over_budget };

struct ParseResult {
  ParseStatus status = ParseStatus::empty;
  bool ambiguous = false;             // a second reading exists
  Tree tree;                          // tree.root() is an error node unless status is ok
  std::string reason;                 // one phrase where status is not ok
  std::vector<std::string> rewrites;  // "\\dfrac12 read as 1/2", in order
};

ParseResult parse_math(std::string_view text, const ParseOptions& options = {});

}  // namespace ucas::math
