// The boxes of a response: which of them is the answer, or are parts of it. Linear in the length of the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "verify/math/read/extract.h"

namespace ucas::math {

// May stand between two values of one answer: spaces, commas, "and", "or".
bool only_joins(std::string_view text);

// The last box; with `several`, the boxes side by side that end with it ("\boxed{1} and \boxed{2}"): these as one text.
Extracted from_box(std::string_view text, bool several);

// For a gold answer of `count` parts: the boxes that give them one by one, "the width is \boxed{3} and the height is
// \boxed{4}", as "\boxed{3}, \boxed{4}". nullopt unless they are all the boxes of the last sentence, joined by commas
// or "and", or all the boxes of the response, each in a part of its own; and nothing between them takes one back or
// draws a conclusion.
std::optional<std::string> joined_boxes(std::string_view response, size_t count);

}  // namespace ucas::math
