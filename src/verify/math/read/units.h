// Units after a number: which ones may be left out when two numbers are compared.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ucas::math {

// The unit that normalised text after a number spells ("\text{ cm}^2", "%", "^\circ", " dollars"), in one spelling, ""
// for no text. nullopt: the text is not a unit but part of the answer ("x", "\text{ or }6", "\text{ million}").
std::optional<std::string> read_unit(std::string_view text);

}  // namespace ucas::math
