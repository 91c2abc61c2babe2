
#include "verify/math/read/letters.h"
#include "verify/math/read/macros.h"

#include <algorithm>
#include <array>
#include <string>

namespace ucas::math {

namespace {

// clang-format off
struct UnitGroup {
  std::string_view names, dimension, numerator, denominator = "1";
};

// Names of one unit each. French and Hungarian time, Chinese measures as written (square and cubic: parse_units.cpp).
constexpr UnitGroup kUnitGroups[] = {
    // length
    {"m meter metre m\u00e8tre m\u00e9ter \u7c73", "m", "1"},
    {"cm centimeter centimetre \u5398\u7c73", "m", "1", "100"},
    {"mm millimeter millimetre \u6beb\u7c73", "m", "1", "1000"}, {"dm decimeter \u5206\u7c73", "m", "1", "10"},
    {"km kilometer kilometre kilom\u00e8tre kilom\u00e9ter \u5343\u7c73 \u516c\u91cc", "m", "1000"},
    {"nm nanometer", "m", "1", "1000000000"}, {"micron micrometer", "m", "1", "1000000"},
    {"in inch inche", "m", "0.0254"}, {"ft foot feet", "m", "0.3048"}, {"yd yard", "m", "0.9144"},
    {"mi mile", "m", "1609.344"}, {"angstrom", "m", "1", "10000000000"}, {"pc parsec", "m", "30856775814913673"},
    {"ly", "m", "9460730472580800"}, {"au", "m", "149597870700"},
    // area, volume
    {"acre", "m^2", "4046.8564224"}, {"hectare ha", "m^2", "10000"}, {"l liter litre \u5347", "m^3", "1", "1000"},
    {"ml milliliter millilitre cc \u6beb\u5347", "m^3", "1", "1000000"}, {"gallon gal", "m^3", "0.003785411784"},
    {"quart", "m^3", "0.000946352946"}, {"pint", "m^3", "0.000473176473"}, {"cup", "m^3", "0.0002365882365"},
    // mass
    {"kg kilogram kilos \u5343\u514b \u516c\u65a4", "kg", "1"}, {"g gram gm \u514b", "kg", "1", "1000"},
    {"mg milligram", "kg", "1", "1000000"}, {"tonne \u5428", "kg", "1000"}, {"ton", "kg", "907.18474"},
    {"lb pound", "kg", "0.45359237"}, {"oz ounce", "kg", "0.028349523125"},
    // time
    {"s sec second \u79d2", "s", "1"}, {"ms millisecond", "s", "1", "1000"}, {"ns nanosecond", "s", "1", "1000000000"},
    {"microsecond", "s", "1", "1000000"}, {"min minute perc \u5206\u949f", "s", "60"},
    {"h hr hour heure \u00f3ra \u5c0f\u65f6", "s", "3600"}, {"day jour nap \u5929", "s", "86400"},
    {"week semaine", "s", "604800"}, {"fortnight", "s", "1209600"}, {"month h\u00f3nap", "month", "1"},
    {"year yr ans ann\u00e9e \u00e9v", "month", "12"}, {"decade", "month", "120"}, {"century", "month", "1200"},
    // money
    {"dollar usd buck \u7f8e\u5143", "dollar", "1"}, {"cent penny pennie", "dollar", "1", "100"},
    {"euro eur", "euro", "1"}, {"yen", "yen", "1"}, {"yuan \u5143", "yuan", "1"}, {"rupee rs", "rupee", "1"},
    {"forint", "forint", "1"},
    // mechanics, heat
    {"n newton", "kg m s^-2", "1"}, {"j joule", "kg m^2 s^-2", "1"}, {"kj kilojoule", "kg m^2 s^-2", "1000"},
    {"cal calorie", "kg m^2 s^-2", "4.184"}, {"kcal", "kg m^2 s^-2", "4184"},
    {"ev", "kg m^2 s^-2", "0.0000000000000000001602176634"}, {"erg", "kg m^2 s^-2", "0.0000001"},
    {"w watt", "kg m^2 s^-3", "1"}, {"kw kilowatt", "kg m^2 s^-3", "1000"}, {"mw", "kg m^2 s^-3", "1000000"},
    {"pa pascal", "kg m^-1 s^-2", "1"}, {"kpa", "kg m^-1 s^-2", "1000"}, {"atm", "kg m^-1 s^-2", "101325"},
    {"bar", "kg m^-1 s^-2", "100000"}, {"dyne", "kg m s^-2", "0.00001"}, {"mph", "m s^-1", "0.44704"},
    {"kmh kph kmph", "m s^-1", "5", "18"}, {"mps", "m s^-1", "1"}, {"fps", "m s^-1", "0.3048"}, {"hz hertz", "s^-1", "1"},
    {"khz", "s^-1", "1000"}, {"mhz", "s^-1", "1000000"}, {"ghz", "s^-1", "1000000000"}, {"k kelvin", "K", "1"},
    {"celsius", "celsius", "1"}, {"fahrenheit", "fahrenheit", "1"},
    // electricity, light, matter
    {"a amp ampere", "A", "1"}, {"ma", "A", "1", "1000"}, {"c coulomb", "A s", "1"},
    {"v volt", "kg m^2 s^-3 A^-1", "1"}, {"ohm", "kg m^2 s^-3 A^-2", "1"}, {"f farad", "kg^-1 m^-2 s^4 A^2", "1"},
    {"t tesla", "kg s^-2 A^-1", "1"}, {"gauss", "kg s^-2 A^-1", "0.0001"}, {"mol mole", "mol", "1"},
    {"cd lumen", "cd", "1"}, {"rad radian", "", "1"},
    // counts of bits
    {"bit", "bit", "1"}, {"byte", "bit", "8"}, {"kb kilobyte", "bit", "8000"}, {"mb megabyte", "bit", "8000000"},
    {"gb gigabyte", "bit", "8000000000"},
};

constexpr auto kUnits = [] {
  std::array<Unit, words_in(kUnitGroups)> table{};
  size_t filled = 0;
  for (const UnitGroup& group : kUnitGroups) {
    each_word(group.names, [&](std::string_view name) {
      table[filled++] = {name, group.dimension, group.numerator, group.denominator};
    });
  }
  std::sort(table.begin(), table.end(), [](const Unit& a, const Unit& b) { return a.name < b.name; });
  return table;
}();

constexpr std::string_view kNever =
    "or and to not from between about less more than plus minus times over half halves third thirds quarter "
    "quarters mod base if when for is are but also maybe either approximately except without remainder wrong no "
    "where with which that since because so thus hence then be can such was instead rather actually wait answer "
    "correct incorrect divided multiplied equals equal unless while until neither nor both at as by it the real "
    "undefined infinity factorial inclusive exclusive below above least most greater fewer false true am pm "
    "negative positive nan none power option choice squared cubed dozen percentage double triple twice thrice treble does "
    "otherwise et ou und oder vagy pas reciprocal inverse opposite hex hexadecimal octal binary non nem nicht sauf "
    "moins fois demi mais hanem kiv\u00e9ve ezer mille mil mrd millier milliers tausend hundert halbiert verdoppelt "
    "quadriert carr\u00e9 cuadrado cubo halved doubled tripled halving doubling imaginary absolute complement conjugate "
    "pi off basis ish modulo modulus root logarithm exponent googol lakh nil nought almost nearly barely hardly too "
    "exa zetta yotta femto atto zepto yocto upward upwards onward onwards";
// clang-format on

// Parts of words beyond ASCII that change the number before them, deny it or offer another: Chinese numerals, "not",
// "or", "above", "below", "about", "times", "half", powers, possession ("the square of"); the like in Japanese, Korean.
constexpr std::string_view kChanging =
    "\u4e0d \u975e \u6ca1 \u65e0 \u6216 \u4e07 \u842c \u4ebf \u5104 \u5146 \u767e \u5341 \u534a \u4e0a \u4e0b "
    "\u5185 \u591a \u5c11 \u4f59 \u9918 \u5230 \u81f3 \u5206\u4e4b \u500d \u51cf \u6e1b \u52a0 \u4e58 \u9664 "
    "\u9519 \u932f \u5927 \u5c0f\u4e8e \u8d85 \u8fc7 \u7ea6 \u7d04 \u51e0 \u5e7e \u4f46 \u5426 \u3007 \u4e00 "
    "\u4e8c \u4e09 \u56db \u4e94 \u516d \u4e03 \u516b \u4e5d \u4e24 \u96f6 \u53c8 \u53ca \u8d1f \u8ca0 \u7684 "
    "\u65b9 \u6b21 \u5e42 \u6839 \u672a\u6e80 \u304b\u3089 \u307e\u3067 \u307e\u305f \u306a\u3044 \u306e \ub610 "
    "\uc544 \uc774\uc0c1 \uc774\ud558 \ubbf8\ub9cc \ucd08\uacfc \ub9cc \uc5b5 \ucc9c \ubc31 \ubc30 \uc758 "
    "\u0442\u044b\u0441 \u043c\u043b\u043d \u043c\u0438\u043b\u043b\u0438 \u0441\u043e\u0442 \u043d\u0435";
constexpr std::string_view kThousand = "\u5343";  // changes a number, except in kilometre, kilogram: units of the table

const Unit* exact(std::string_view name) {
  auto at = std::lower_bound(kUnits.begin(), kUnits.end(), name,
                             [](const Unit& u, std::string_view n) { return u.name < n; });
  return at != kUnits.end() && at->name == name ? &*at : nullptr;
}

}  // namespace

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
  if (in_words(kNever, word) || number_word(word) >= 0) return true;
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
  if (word.size() > kLongest || word.find(kThousand) != std::string_view::npos) return true;
  bool changes = false;
  each_word(kChanging, [&](std::string_view part) { changes |= word.find(part) != std::string_view::npos; });
  return changes;
}

}  // namespace ucas::math
