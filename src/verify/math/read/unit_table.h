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

// What a unit node of an angle in radians says; beside other units (rad/s) a radian is 1.
constexpr std::string_view kRadian = "radian";

// One of the base units that dimensions are made of: "m", "kg", "dollar"; other words of a unit are what is counted.
bool is_base_unit(std::string_view name);

// nullptr: not a known unit. Plurals and the usual capitals are understood.
const Unit* find_unit(std::string_view word);

// Words that change a number, offer another or begin a clause: never a unit.
bool never_unit(std::string_view lower_case);

}  // namespace ucas::math
