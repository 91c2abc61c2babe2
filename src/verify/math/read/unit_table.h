// Units of measure: what each is in base units, exactly.
#pragma once

#include <cstdint>
#include <string_view>

namespace ucas::math {

struct Unit {
  std::string_view name;       // as written, singular
  std::string_view dimension;  // in base units: "m", "kg m^2 s^-2"
  std::string_view numerator;  // of the factor to base units; digits, perhaps with a point
  std::string_view denominator = "1";
};

// nullptr: not a known unit. Plurals and the usual capitals are understood.
const Unit* find_unit(std::string_view word);

// Words that change a number, offer another or begin a clause: never a unit.
bool never_unit(std::string_view lower_case);

}  // namespace ucas::math
