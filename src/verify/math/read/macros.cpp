#include "verify/math/read/macros.h"

#include <algorithm>
#include <array>

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

struct Letter {
  char32_t code_point;
  std::string_view latex;
};

// Sorted by code point.
constexpr Letter kLetters[] = {
    {0xa2, "\\text{ cents }"}, {0xa3, "\\pounds "}, {0xa5, "\\yen "}, {0xa0, " "}, {0xad, ""}, {0xb0, "^\\circ "}, {0xb1, "\\pm "}, {0xb2, "^{2}"},
    {0xb3, "^{3}"}, {0xb4, "'"}, {0xb5, "\\mu "}, {0xb7, "\\cdot "}, {0xb9, "^{1}"}, {0xbc, "\\frac{1}{4}"},
    {0xbd, "\\frac{1}{2}"}, {0xbe, "\\frac{3}{4}"}, {0xd7, "\\times "}, {0xf7, "\\div "},
    {0x391, "A"}, {0x393, "\\Gamma "}, {0x394, "\\Delta "}, {0x398, "\\Theta "}, {0x39b, "\\Lambda "}, {0x3a0, "\\Pi "},
    {0x3a3, "\\Sigma "}, {0x3a6, "\\Phi "}, {0x3a8, "\\Psi "}, {0x3a9, "\\Omega "}, {0x3b1, "\\alpha "}, {0x3b2, "\\beta "},
    {0x3b3, "\\gamma "}, {0x3b4, "\\delta "}, {0x3b5, "\\epsilon "}, {0x3b6, "\\zeta "}, {0x3b7, "\\eta "},
    {0x3b8, "\\theta "}, {0x3b9, "\\iota "}, {0x3ba, "\\kappa "}, {0x3bb, "\\lambda "}, {0x3bc, "\\mu "}, {0x3bd, "\\nu "},
    {0x3be, "\\xi "}, {0x3c0, "\\pi "}, {0x3c1, "\\rho "}, {0x3c3, "\\sigma "}, {0x3c4, "\\tau "}, {0x3c6, "\\phi "},
    {0x3c7, "\\chi "}, {0x3c8, "\\psi "}, {0x3c9, "\\omega "}, {0x3d5, "\\phi "},
    {0x2000, " "}, {0x2001, " "}, {0x2002, " "}, {0x2003, " "}, {0x2004, " "}, {0x2005, " "}, {0x2006, " "}, {0x2007, " "},
    {0x2008, " "}, {0x2009, " "}, {0x200a, " "}, {0x200b, ""}, {0x200c, ""}, {0x200d, ""}, {0x2010, "-"}, {0x2011, "-"},
    {0x2012, "-"}, {0x2013, "-"}, {0x2014, "-"}, {0x2016, "\\Vert "}, {0x2018, "'"}, {0x2019, "'"}, {0x201c, ""}, {0x201d, ""},
    {0x2022, "\\cdot "}, {0x2030, "\\text{ permille }"}, {0x2026, "\\ldots "}, {0x202f, " "}, {0x2032, "'"}, {0x2033, "''"}, {0x2044, "/"}, {0x2060, ""},
    {0x2061, ""}, {0x2062, ""}, {0x2063, ","}, {0x2070, "^{0}"}, {0x2074, "^{4}"}, {0x2075, "^{5}"}, {0x2076, "^{6}"},
    {0x2077, "^{7}"}, {0x2078, "^{8}"}, {0x2079, "^{9}"}, {0x207a, "^{+}"}, {0x207b, "^{-}"}, {0x207f, "^{n}"},
    {0x2080, "_{0}"}, {0x2081, "_{1}"}, {0x2082, "_{2}"}, {0x2083, "_{3}"}, {0x2084, "_{4}"}, {0x2085, "_{5}"},
    {0x2086, "_{6}"}, {0x2087, "_{7}"}, {0x2088, "_{8}"}, {0x2089, "_{9}"}, {0x2099, "_{n}"}, {0x20ac, "\\euro "},
    {0x20b9, "\\rupee "}, {0x2102, "\\mathbb{C}"}, {0x2103, "^\\circ\\mathrm{C}"}, {0x2109, "^\\circ\\mathrm{F}"},
    {0x2113, "\\ell "}, {0x2115, "\\mathbb{N}"}, {0x211a, "\\mathbb{Q}"}, {0x211d, "\\mathbb{R}"}, {0x2124, "\\mathbb{Z}"},
    {0x2126, "\\Omega "}, {0x212f, "e"}, {0x2153, "\\frac{1}{3}"}, {0x2154, "\\frac{2}{3}"}, {0x2155, "\\frac{1}{5}"},
    {0x2156, "\\frac{2}{5}"}, {0x2157, "\\frac{3}{5}"}, {0x2158, "\\frac{4}{5}"}, {0x2159, "\\frac{1}{6}"},
    {0x215a, "\\frac{5}{6}"}, {0x215b, "\\frac{1}{8}"}, {0x215c, "\\frac{3}{8}"}, {0x215d, "\\frac{5}{8}"},
    {0x215e, "\\frac{7}{8}"}, {0x2190, "\\leftarrow "}, {0x2192, "\\to "}, {0x2194, "\\leftrightarrow "},
    {0x21d2, "\\implies "}, {0x21d4, "\\iff "}, {0x2200, "\\forall "}, {0x2202, "\\partial "}, {0x2203, "\\exists "},
    {0x2205, "\\emptyset "}, {0x2207, "\\nabla "}, {0x2208, "\\in "}, {0x2209, "\\notin "}, {0x2211, "\\sum "},
    {0x220f, "\\prod "}, {0x2212, "-"}, {0x2213, "\\mp "}, {0x2215, "/"}, {0x2216, "\\setminus "}, {0x2217, "*"},
    {0x2218, "\\circ "}, {0x2219, "\\cdot "}, {0x221a, "\\sqrt "}, {0x221b, "\\sqrt[3]"}, {0x221d, "\\propto "},
    {0x221e, "\\infty "}, {0x2220, "\\angle "}, {0x2223, "|"}, {0x2225, "\\parallel "}, {0x2227, "\\land "},
    {0x2228, "\\lor "}, {0x2229, "\\cap "}, {0x222a, "\\cup "}, {0x222b, "\\int "}, {0x2234, ""}, {0x2236, ":"},
    {0x223c, "\\sim "}, {0x2245, "\\cong "}, {0x2248, "\\approx "}, {0x2260, "\\ne "}, {0x2261, "\\equiv "},
    {0x2264, "\\le "}, {0x2265, "\\ge "}, {0x2266, "\\le "}, {0x2267, "\\ge "}, {0x2282, "\\subset "}, {0x2286, "\\subseteq "},
    {0x22a5, "\\perp "}, {0x22c5, "\\cdot "}, {0x22ef, "\\ldots "}, {0x2308, "\\lceil "}, {0x2309, "\\rceil "},
    {0x230a, "\\lfloor "}, {0x230b, "\\rfloor "}, {0x2460, "\\textcircled{1}"}, {0x2461, "\\textcircled{2}"}, {0x2462, "\\textcircled{3}"}, {0x2463, "\\textcircled{4}"}, {0x2464, "\\textcircled{5}"},
    {0x2465, "\\textcircled{6}"}, {0x2466, "\\textcircled{7}"}, {0x2467, "\\textcircled{8}"}, {0x2468, "\\textcircled{9}"}, {0x2469, "\\textcircled{10}"},
    {0x246a, "\\textcircled{11}"}, {0x246b, "\\textcircled{12}"}, {0x246c, "\\textcircled{13}"}, {0x246d, "\\textcircled{14}"}, {0x246e, "\\textcircled{15}"},
    {0x246f, "\\textcircled{16}"}, {0x2470, "\\textcircled{17}"}, {0x2471, "\\textcircled{18}"}, {0x2472, "\\textcircled{19}"}, {0x2473, "\\textcircled{20}"},
    {0x25b3, "\\triangle "}, {0x27e8, "\\langle "}, {0x27e9, "\\rangle "},
    {0x2a7d, "\\le "}, {0x2a7e, "\\ge "}, {0x3000, " "}, {0x3001, ","}, {0x3002, "."}, {0x3008, "\\langle "},
    {0x3009, "\\rangle "}, {0x301c, "\\sim "}, {0x4e0e, "\\text{ and }"}, {0x548c, "\\text{ and }"}, {0x6216, "\\text{ or }"}, {0xfe63, "-"}, {0xfeff, ""},
};
// clang-format on

struct Word {
  std::string_view word;
  int value;
};
// clang-format off
// Beside the commands of functions, which are understood as words, too.
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

constexpr Word kNumberWords[] = {
    {"zero", 0}, {"one", 1}, {"two", 2}, {"three", 3}, {"four", 4}, {"five", 5}, {"six", 6}, {"seven", 7}, {"eight", 8},
    {"nine", 9}, {"ten", 10}, {"eleven", 11}, {"twelve", 12}, {"thirteen", 13}, {"fourteen", 14}, {"fifteen", 15},
    {"sixteen", 16}, {"seventeen", 17}, {"eighteen", 18}, {"nineteen", 19}, {"twenty", 20}, {"thirty", 30},
    {"forty", 40}, {"fifty", 50}, {"sixty", 60}, {"seventy", 70}, {"eighty", 80}, {"ninety", 90},
};
// clang-format on

template <class Table>
const Word* find(const Table& table, std::string_view word) {
  auto at = std::find_if(std::begin(table), std::end(table), [&](const Word& w) { return w.word == word; });
  return at == std::end(table) ? nullptr : &*at;
}

char32_t decode(std::string_view text, size_t& i) {
  auto byte = static_cast<unsigned char>(text[i]);
  int more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
  char32_t code = byte & (0x3f >> more);
  for (++i; more-- > 0 && i < text.size(); ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  return code;
}

}  // namespace

const Command* find_command(std::string_view name) {
  auto at = std::lower_bound(kCommands.begin(), kCommands.end(), name,
                             [](const Command& c, std::string_view n) { return c.name < n; });
  return at != kCommands.end() && at->name == name ? &*at : nullptr;
}

std::string_view latex_of(std::string_view text, size_t& i) {
  const size_t begin = i;
  const char32_t code_point = decode(text, i);
  if (code_point >= 0xff01 && code_point <= 0xff5e) {  // full-width forms of ASCII
    static constexpr auto ascii = [] {
      std::array<char, 0x7f> all{};
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
      return all;
    }();
    return {&ascii[code_point - 0xff01 + 0x21], 1};
  }
  for (const Letter& letter : kLetters) {
    if (letter.code_point == code_point) return letter.latex.empty() ? std::string_view(" ") : letter.latex;
  }
  return text.substr(begin, i - begin);
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
  if (const Word* at = find(kNumberWords, word)) return at->value;
  for (const Word& tens : kNumberWords) {  // twentyfive, twenty-five
    if (tens.value < 20 || !word.starts_with(tens.word)) continue;
    word.remove_prefix(tens.word.size() + word.substr(tens.word.size()).starts_with('-'));
    const Word* ones = find(kNumberWords, word);
    return ones != nullptr && ones->value > 0 && ones->value < 10 ? tens.value + ones->value : -1;
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

}  // namespace ucas::math
