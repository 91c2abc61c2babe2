// The vocabulary of LaTeX, of Unicode and of plain text mathematics, as tables: what a command name, a symbol or a word
// means. Only the tables; how meanings combine is the parser's business.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "verify/math/read/expr.h"

namespace ucas::math {

enum class Meaning : uint8_t {
  skip,       // \displaystyle, \left: nothing at all
  space,      // \, \;
  separator,  // \quad: parts two values when nothing else does
  style,      // \text{..}; value: Style
  op,         // \times: the character in `value`
  relation,   // \le: the letter of namespace relation
  greek,      // \theta: a symbol of this name
  constant,   // \pi; value: Constant
  function,   // \sin; value: Function
  fraction,
  binomial,
  root,
  accent,   // \hat{x}: part of the name
  dressed,  // \vec{x}: read as x, but never as a constant
  big,      // \sum, \int, \lim: with bounds
  modulus,  // \pmod{5}, \bmod
  degree,
  begin,
  end,
  boxed,    // \boxed{..}, \phantom...: the argument itself
  circled,  // \textcircled{3}
  dots,     // \ldots
  opening,  // \lfloor, \langle, \lvert, \{: value names the bracket
  closing,
  named,  // \angle ABC, \triangle ABC
  money,
  choose,  // {n \choose k}
  over,    // {a \over b}
};

enum class Style : uint8_t { math, text, roman, bold, blackboard };

struct Command {
  std::string_view name;
  Meaning meaning;
  int value = 0;
};

// nullptr: unknown.
const Command* find_command(std::string_view name);

// LaTeX for the character beyond ASCII at text[i] ("\\pi " of U+03C0), itself if it has no such meaning;
// moves i behind it.
std::string_view latex_of(std::string_view text, size_t& i);

// sin, arctan, sqrt, lcm ... written without a backslash.
std::optional<Function> find_function(std::string_view word);

// "and" or "or" in English, French, German, Hungarian: 'a' or 'o'; 0 for other words.
char conjunction(std::string_view word);

// "three" is 3, "twenty" 20; -1 otherwise.
int number_word(std::string_view lower_case);

// million, dozen, tenths, milli: a power of ten, else a factor or a divisor; nullptr for other words.
struct Multiplier {
  std::string_view words;
  int power;
  std::string_view times = "1", over = "1";
};
const Multiplier* multiplier(std::string_view lower_case);

// Units of measure: what each is in base units, exactly.

struct Unit {
  std::string_view name;       // as written, singular
  std::string_view dimension;  // in base units: "m", "kg m^2 s^-2"
  std::string_view numerator;  // of the factor to base units; digits, perhaps with a point
  std::string_view denominator = "1";
};

// What a unit node of an angle in radians says; next to other units (rad/s) a radian is 1.
constexpr std::string_view kRadian = "radian";

// One of the base units that dimensions are made of: "m", "kg", "dollar"; other words of a unit are what is counted.
bool is_base_unit(std::string_view name);

// nullptr: not a known unit. Plurals and the usual capitals are understood.
const Unit* find_unit(std::string_view word);

// Words that change a number, offer another or begin a clause: never a unit.
bool never_unit(std::string_view lower_case);

}  // namespace ucas::math
