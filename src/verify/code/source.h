// The program in a response.
#pragma once

#include <optional>
#include <string_view>

#include "verify/grader.h"

namespace ucas::code {

// strict: the last whole block between lines ``` (of Python, or of no language); lenient: that, else the whole text
// where it has no such line; answer_tag: the last block inside the last <answer>; bare: the whole text. nullopt: no
// program.
std::optional<std::string_view> find_source(std::string_view response, Extract extract);

}  // namespace ucas::code
