#include "verify/math/read/macros.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "verify/math/read/letters.h"

namespace ucas::math {

namespace {

constexpr int id(Style s) { return static_cast<int>(s); }
constexpr int id(Constant c) { return static_cast<int>(c); }
constexpr int id(Function f) { return static_cast<int>(f); }
// clang-format off
struct CommandGroup {
  Meaning meaning;
  int value;
  std::string_view names;
};

// Commands of one meaning each, by what they are read as.
namespace groups {
using enum Meaning;
constexpr CommandGroup kCommandGroups[] = {
    {skip, 0,
     "left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr displaystyle textstyle limits "
     "nolimits scriptstyle rm bf it hfill nonumber hline strut n normalsize large Large small tiny boldmath qed "
     "phantom hphantom vphantom label tag color textcolor blacksquare rmfamily therefore"},
    {space, 0, "thinspace enspace nobreakspace space negthinspace medspace thickspace vspace"},
    {separator, 0, "quad qquad newline hspace"},
    {style, id(Style::text), "text mbox textbf textit textrm textsf texttt textnormal hbox textsc emph"},
    {style, id(Style::roman), "mathtt mathrm mathsf operatorname si unit"},
    {style, id(Style::math), "mathit mathcal mathscr mathfrak mathnormal mathop mathrel mathbin ensuremath"},
    {style, id(Style::bold), "mathbf boldsymbol bm pmb"},
    {style, id(Style::blackboard), "mathbb Bbb"},
    {op, '*', "times cdot ast bullet cdotp star"}, {op, '/', "div slash"}, {op, 'P', "pm"}, {op, 'M', "mp"},
    {op, 'U', "cup bigcup cupdot sqcup"}, {op, 'N', "cap bigcap"}, {op, 'D', "setminus smallsetminus backslash"},
    {op, ':', "colon"}, {op, '\'', "prime"}, {op, ',', "comma"}, {op, 'O', "lor vee"}, {op, 'A', "land wedge And"},
    {op, '-', "minus"}, {op, '+', "plus"}, {op, '|', "mid vert"}, {op, 'V', "Vert"}, {op, '^', "sp"},
    {op, '_', "sb"}, {op, '[', "lbrack"}, {op, ']', "rbrack"}, {op, '(', "lparen"}, {op, ')', "rparen"},
    {op, '%', "percent"},
    {root, 0, "surd sqrt"},
    {relation, 'l', "le leq leqslant leqq"}, {relation, 'g', "ge geq geqslant geqq"}, {relation, '<', "lt"},
    {relation, '>', "gt"}, {relation, '!', "ne neq"}, {relation, '=', "eq triangleq coloneqq"},
    {relation, '~', "approx simeq doteq approxeq"}, {relation, 'e', "in"}, {relation, 'n', "notin"},
    {relation, 's', "subset subseteq"}, {relation, 'c', "equiv"}, {relation, 'm', "sim propto"}, {relation, 'k', "cong"},
    {relation, 'a', "to rightarrow longrightarrow mapsto"}, {relation, 'p', "perp"},
    {relation, 'q', "parallel"}, {relation, 'i', "Rightarrow implies Longrightarrow"},
    {relation, 'b', "iff Leftrightarrow"}, {relation, 'r', "leftrightarrow"}, {relation, 'd', "divides"},
    {greek, 0,
     "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma "
     "tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega Upsilon ell hbar "
     "partial nabla aleph imath jmath mho wp square Box diamond oplus"},
    {Meaning::constant, id(Constant::pi), "pi"}, {Meaning::constant, id(Constant::infinity), "infty infin"},
    {Meaning::constant, id(Constant::empty_set), "emptyset oslash varnothing"},
    {Meaning::constant, id(Constant::reals), "R reals"}, {Meaning::constant, id(Constant::integers), "Z"},
    {Meaning::constant, id(Constant::naturals), "N"}, {Meaning::constant, id(Constant::rationals), "Q"},
    {Meaning::constant, id(Constant::complexes), "C"},
    {function, id(Function::sin), "sin"}, {function, id(Function::cos), "cos"}, {function, id(Function::tan), "tan tg"},
    {function, id(Function::sec), "sec"}, {function, id(Function::csc), "csc cosec"},
    {function, id(Function::cot), "cot ctg cotg"}, {function, id(Function::arcsin), "arcsin"},
    {function, id(Function::arccos), "arccos"}, {function, id(Function::arctan), "arctan arctg"},
    {function, id(Function::arcsec), "arcsec"}, {function, id(Function::arccsc), "arccsc"},
    {function, id(Function::arccot), "arccot arcctg"}, {function, id(Function::sinh), "sinh sh"},
    {function, id(Function::cosh), "cosh ch"}, {function, id(Function::tanh), "tanh th"}, {function, id(Function::coth), "coth cth"},
    {function, id(Function::sech), "sech"}, {function, id(Function::csch), "csch cosech"},
    {function, id(Function::arsinh), "arsinh arcsinh asinh arsh"}, {function, id(Function::arcosh), "arcosh arccosh acosh"},
    {function, id(Function::artanh), "artanh arctanh atanh arth"}, {function, id(Function::arcoth), "arcoth arccoth acoth arcth"},
    {function, id(Function::arsech), "arsech arcsech"}, {function, id(Function::arcsch), "arcsch arccsch"},
    {function, id(Function::log), "log"}, {function, id(Function::lg), "lg"}, {function, id(Function::ln), "ln"}, {function, id(Function::exp), "exp"},
    {function, id(Function::gcd), "gcd"}, {function, id(Function::lcm), "lcm"}, {function, id(Function::max), "max"},
    {function, id(Function::min), "min"}, {function, id(Function::real_part), "Re"},
    {function, id(Function::imaginary_part), "Im"}, {function, id(Function::arg), "arg"},
    {function, id(Function::abs), "abs"}, {function, id(Function::sign), "sgn"},
    {fraction, 0, "frac dfrac tfrac cfrac nicefrac sfrac fraction"}, {binomial, 0, "binom dbinom tbinom"},
    {accent, 0, "hat widehat bar overline tilde widetilde dot ddot"},
    {boxed, 0, "underline boxed fbox framebox"},
    {dressed, 0, "vec overrightarrow overleftrightarrow"},
    {big, 0, "sum prod int iint oint lim sup inf"},
    {modulus, 'p', "pmod mod"}, {modulus, 'b', "bmod"},
    {degree, 0, "degree circ degrees textdegree textcirc"},
    {Meaning::begin, 0, "begin"},
    {Meaning::end, 0, "end"},
    {circled, 0, "textcircled"},
    {dots, 0, "ldots cdots dots dotsc dotsb vdots ddots"},
    {opening, 'f', "lfloor"}, {closing, 'f', "rfloor"}, {opening, 'c', "lceil"}, {closing, 'c', "rceil"},
    {opening, 'a', "langle"}, {closing, 'a', "rangle"}, {opening, '|', "lvert"}, {closing, '|', "rvert"},
    {opening, 'V', "lVert"}, {closing, 'V', "rVert"}, {opening, '{', "{ lbrace"}, {closing, '{', "} rbrace"},
    {named, 0, "angle triangle measuredangle odot parallelogram det"},
    {money, '$', "dollar"}, {money, 'P', "pounds pound"}, {money, 'E', "euro"}, {money, 'Y', "yen"},
    {money, 'R', "rupee"},
    {choose, 0, "choose"},
    {over, 0, "over"},
};
}  // namespace groups
using groups::kCommandGroups;

constexpr auto kCommands = [] {
  std::array<Command, words_in(kCommandGroups)> table{};
  size_t filled = 0;
  for (const CommandGroup& group : kCommandGroups) {
    each_word(group.names, [&](std::string_view name) { table[filled++] = {name, group.meaning, group.value}; });
  }
  std::sort(table.begin(), table.end(), [](const Command& a, const Command& b) { return a.name < b.name; });
  return table;
}();
// clang-format on

struct Word {
  std::string_view word;
  int value;
};
// clang-format off
// Besides the commands of functions, which are understood as words, too.
constexpr Word kFunctionWords[] = {
    {"asin", id(Function::arcsin)}, {"acos", id(Function::arccos)}, {"atan", id(Function::arctan)},
    {"sqrt", id(Function::sqrt)}, {"floor", id(Function::floor)}, {"ceil", id(Function::ceil)},
    {"cbrt", id(Function::root)}, {"binom", id(Function::binomial)}, {"nCr", id(Function::binomial)},
};
// clang-format on

constexpr Word kConjunctions[] = {
    {"and", 'a'}, {"And", 'a'}, {"AND", 'a'}, {"et", 'a'}, {"und", 'a'},  {"\u00e9s", 'a'},
    {"or", 'o'},  {"Or", 'o'},  {"OR", 'o'},  {"ou", 'o'}, {"oder", 'o'}, {"vagy", 'o'},
};

// What words behind a number make of it: so many powers of ten, a factor, a divisor.
// clang-format off
constexpr Multiplier kMultipliers[] = {
    {"tens deca deka", 1}, {"hundred hecto", 2}, {"thousand kilo", 3}, {"lakh", 5}, {"million mn mio millionen mega", 6}, {"crore", 7},
    {"billion bn milliard milliarden giga", 9}, {"trillion tera", 12}, {"quadrillion peta", 15}, {"myriad", 4}, {"tenth deci", -1}, {"hundredth centi", -2},
    {"thousandth milli permille permil", -3}, {"ppm micro millionth", -6}, {"nano billionth", -9}, {"pico trillionth", -12}, {"bps", -4}, {"dozen douzaine dutzend docena", 0, "12"}, {"score", 0, "20"},
    {"gross", 0, "144"}, {"fifth", 0, "1", "5"}, {"sixth", 0, "1", "6"}, {"seventh", 0, "1", "7"},
    {"eighth", 0, "1", "8"}, {"ninth", 0, "1", "9"},
};
// clang-format on

// vocabulary.txt, which says what its sections are; what is here points into it.
struct Vocabulary {
  std::map<std::string_view, Unit> units;
  std::map<char32_t, std::string_view> letters;
  std::set<std::string_view> never;
  std::vector<std::string_view> changing;
};

// The part of a row before the next " | ", which goes from the row.
std::string_view take_column(std::string_view& row) {
  const std::string_view column = row.substr(0, row.find(" | "));
  row.remove_prefix(std::min(column.size() + 3, row.size()));
  return column;
}

void read_row(std::string_view section, std::string_view row, Vocabulary& out) {
  if (section == "never") return each_word(row, [&](std::string_view word) { out.never.insert(word); });
  if (section == "changing") return each_word(row, [&](std::string_view part) { out.changing.push_back(part); });
  const std::string_view names = take_column(row);
  if (section == "letters") {
    const std::string_view latex = row.size() > 2 ? row.substr(1, row.size() - 2) : " ";
    return each_word(names, [&](std::string_view code) {
      out.letters[static_cast<char32_t>(std::stoul(std::string(code), nullptr, 16))] = latex;
    });
  }
  const std::string_view dimension = take_column(row), factor = take_column(row), divisor = row.empty() ? "1" : row;
  each_word(names, [&](std::string_view name) { out.units[name] = {name, dimension, factor, divisor}; });
}

const Vocabulary& vocabulary() {
  static const Vocabulary made = [] {
    Vocabulary out;
    std::string_view text = embedded("verify/math/read/vocabulary.txt").value(), section;
    while (!text.empty()) {
      const std::string_view row = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(row.size() + 1, text.size()));
      if (row.starts_with('@')) {
        section = row.substr(1, row.find(' ') - 1);
      } else if (!row.empty() && !row.starts_with('#')) {
        read_row(section, row, out);
      }
    }
    return out;
  }();
  return made;
}

const Unit* exact(std::string_view name) {
  const auto at = vocabulary().units.find(name);
  return at == vocabulary().units.end() ? nullptr : &at->second;
}

template <class Table>
const Word* find(const Table& table, std::string_view word) {
  auto at = std::find_if(std::begin(table), std::end(table), [&](const Word& w) { return w.word == word; });
  return at == std::end(table) ? nullptr : &*at;
}

constexpr std::string_view kSmall[] = {"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                       "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                       "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::string_view kTens[] = {"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};

// The number that a single word names, or -1.
int word_of_number(std::string_view word) {
  if (auto at = std::ranges::find(kSmall, word); at != std::end(kSmall)) return static_cast<int>(at - kSmall);
  auto at = std::ranges::find(kTens, word);
  return at == std::end(kTens) ? -1 : 20 + 10 * static_cast<int>(at - kTens);
}

}  // namespace

const Command* find_command(std::string_view name) {
  auto at = std::lower_bound(kCommands.begin(), kCommands.end(), name,
                             [](const Command& c, std::string_view n) { return c.name < n; });
  return at != kCommands.end() && at->name == name ? &*at : nullptr;
}

std::string_view latex_of(std::string_view text, size_t& i) {
  const size_t begin = i;
  const Char read = char_at(text, i);
  i += read.length;
  if (read.code >= 0xff01 && read.code <= 0xff5e) {  // full-width forms of ASCII
    static constexpr auto ascii = [] {
      std::array<char, 0x7f> all{};
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
      return all;
    }();
    return {&ascii[read.code - 0xff01 + 0x21], 1};
  }
  const auto at = vocabulary().letters.find(read.code);
  return at == vocabulary().letters.end() ? text.substr(begin, read.length) : at->second;
}

std::optional<Function> find_function(std::string_view word) {
  const Word* at = find(kFunctionWords, word);
  const Command* command = at == nullptr ? find_command(word) : nullptr;
  if (command != nullptr && command->meaning == Meaning::function) return static_cast<Function>(command->value);
  return at ? std::optional(static_cast<Function>(at->value)) : std::nullopt;
}

char conjunction(std::string_view word) {
  const Word* at = find(kConjunctions, word);
  return at ? static_cast<char>(at->value) : '\0';
}

int number_word(std::string_view word) {
  if (const int value = word_of_number(word); value >= 0) return value;
  for (int tens = 20; tens < 100; tens += 10) {  // twentyfive, twenty-five
    const std::string_view name = kTens[tens / 10 - 2];
    if (!word.starts_with(name)) continue;
    word.remove_prefix(name.size() + word.substr(name.size()).starts_with('-'));
    const int ones = word_of_number(word);
    return ones > 0 && ones < 10 ? tens + ones : -1;
  }
  return -1;
}

const Multiplier* multiplier(std::string_view word) {
  for (std::string_view name : {word, word.substr(0, word.size() - (word.ends_with('s') && word != "scores"))}) {
    for (const Multiplier& row : kMultipliers) {
      if (in_words(row.words, name)) return &row;
    }
  }
  return nullptr;
}

bool is_base_unit(std::string_view name) {
  return in_words("m kg s month dollar euro yen yuan rupee forint K celsius fahrenheit A mol cd bit radian", name);
}

const Unit* find_unit(std::string_view word) {
  if (word.empty() || word.size() > 13) return nullptr;
  std::string name = lower_case(word);
  if (const Unit* unit = exact(name)) {
    // Of one-letter symbols the case counts: m s g h l are units, and so are N J W K A C V F T; "L" is usual, too.
    bool capital = word[0] >= 'A' && word[0] <= 'Z';
    bool wants_capital = std::string_view("njwkacvft").find(name[0]) != std::string_view::npos;
    if (name.size() == 1 && capital != wants_capital && name != "l") return nullptr;
    // So it does of those that begin with milli, nano or mega: Mm, Ns and mW are other units.
    bool mega = in_words("mw mhz", name), small = in_words("mm mg ml ms ma nm ns", name);
    bool shouted = in_words("MM MG ML", word);
    return (mega && !capital) || (small && capital && !shouted) ? nullptr : unit;
  }
  for (std::string_view plural : {std::string_view("es"), std::string_view("s")}) {
    if (name.size() <= plural.size() + 1 || !name.ends_with(plural)) continue;
    std::string_view singular = std::string_view(name).substr(0, name.size() - plural.size());
    if (const Unit* unit = exact(singular); unit && singular.size() > 1) return unit;
  }
  return name == "centuries" ? exact("century") : nullptr;
}

bool never_unit(std::string_view word) {
  if (vocabulary().never.contains(word) || number_word(word) >= 0) return true;
  for (std::string_view part : {"illion", "illiard", "ilion", "iliard"}) {  // of any language
    if (word.find(part) != std::string_view::npos) return true;
  }
  bool tuple = word.ends_with("uple") && word != "couple";  // quadruple; fivefold, two-fold
  if (tuple || word.ends_with("fold")) return true;
  if (static_cast<unsigned char>(word[0]) < 0x80) return false;
  // "different", "ways": of their characters one could deny or square
  std::string rest(word);
  for (std::string_view part : {"\u4e0d\u540c\u7684", "\u4e0d\u540c", "\u65b9\u6cd5", "\u65b9\u5f0f", "\u65b9\u6848"}) {
    if (size_t at = rest.find(part); at != std::string::npos) rest.erase(at, part.size());
  }
  if (rest.empty()) return false;
  word = rest;
  constexpr size_t kLongest = 24;  // bytes: a word, not a sentence
  constexpr std::string_view kThousand =
      "\u5343";  // changes a number, except in kilometre, kilogram: units of the table
  if (word.size() > kLongest || word.find(kThousand) != std::string_view::npos) return true;
  return std::ranges::any_of(vocabulary().changing,
                             [&](std::string_view part) { return word.find(part) != std::string_view::npos; });
}

}  // namespace ucas::math
