#include "support/math_mutants.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "base/str.h"

namespace ucas::math_mutants {

namespace {

using Mutant = std::optional<std::string>;
constexpr size_t kNowhere = std::string::npos;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// A digit of c_1 or C_{2}: constants may be numbered in any way.
bool numbers_constant(const std::string& text, size_t i) {
  while (i > 0 && (is_digit(text[i]) || text[i] == '{')) --i;
  return i > 0 && text[i] == '_' && (text[i - 1] | 32) == 'c';
}

bool is_blank(char c) { return c == ' ' || c == '\n'; }

// What each byte belongs to: a command, words in \text{..}, or a formula. A text without LaTeX that has a word of four
// letters is words.
enum class Place : char { formula, command, words };

std::vector<Place> places_of(const std::string& text) {
  std::vector<Place> places(text.size(), Place::formula);
  auto fill = [&](size_t from, size_t to, Place place) {
    std::fill(places.begin() + static_cast<std::ptrdiff_t>(from),
              places.begin() + static_cast<std::ptrdiff_t>(std::min(to, text.size())), place);
  };
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = i;
    if (text[i] == '\\') {
      ++end;
      while (end < text.size() && is_letter(text[end])) ++end;
      std::string name = text.substr(i + 1, end - i - 1);
      fill(i, std::max(end, i + 2), Place::command);
      bool words = name == "text" || name == "mbox" || name == "textbf" || name == "mathrm";
      bool names = name == "begin" || name == "end";
      if ((words || names) && end < text.size() && text[end] == '{') {
        size_t close = std::min(text.find('}', end), text.size());
        fill(end, close + 1, words ? Place::words : Place::command);
        end = close;
        if (text.compare(end, 2, "}{") == 0) {  // the columns of an array
          size_t columns = std::min(text.find('}', end + 1), text.size());
          fill(end, columns + 1, Place::command);
          end = columns;
        }
      }
      i = std::max(end, i + 2) - 1;
      continue;
    }
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end - i >= 3) fill(i, end, Place::words);
    if (end > i) i = end - 1;
  }
  return places;
}

// Positions for which `fits` holds, all of them in formulas.
std::vector<size_t> places_for(const std::string& text, const std::function<bool(size_t)>& fits,
                               Place wanted = Place::formula) {
  std::vector<Place> places = places_of(text);
  std::vector<size_t> found;
  for (size_t i = 0; i < text.size(); ++i) {
    if (places[i] == wanted && fits(i)) found.push_back(i);
  }
  return found;
}

std::optional<size_t> one_of(const std::vector<size_t>& places, Rng& rng) {
  if (places.empty()) return std::nullopt;
  return places[static_cast<size_t>(rng.below(static_cast<int64_t>(places.size())))];
}

char before(const std::string& text, size_t i) {
  while (i > 0 && is_blank(text[i - 1])) --i;
  return i == 0 ? '\0' : text[i - 1];
}

char after(const std::string& text, size_t i) {
  for (++i; i < text.size() && is_blank(text[i]);) ++i;
  return i < text.size() ? text[i] : '\0';
}

std::pair<size_t, size_t> run_of_digits(const std::string& text, size_t at) {
  size_t begin = at, end = at;
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  while (end < text.size() && is_digit(text[end])) ++end;
  return {begin, end};
}

std::string with(std::string text, size_t at, size_t length, std::string_view instead) {
  return text.replace(at, length, instead);
}

// Numbers.

Mutant digit_changed(const std::string& gold, Rng& rng) {
  auto at = one_of(places_for(gold, [&](size_t i) { return is_digit(gold[i]) && !numbers_constant(gold, i); }), rng);
  if (!at) return std::nullopt;
  char other = static_cast<char>('0' + (gold[*at] - '0' + 1 + rng.below(9)) % 10);
  return with(gold, *at, 1, std::string(1, other));
}

Mutant one_more(const std::string& gold, Rng&) {
  std::vector<size_t> digits =
      places_for(gold, [&](size_t i) { return is_digit(gold[i]) && !numbers_constant(gold, i); });
  if (digits.empty()) return std::nullopt;
  std::string out = gold;
  for (size_t i = digits.back();; --i) {  // 199 + 1
    out[i] = out[i] == '9' ? '0' : static_cast<char>(out[i] + 1);
    if (out[i] != '0') return out;
    if (i == 0 || !is_digit(out[i - 1])) return out.insert(i, "1");
  }
}

Mutant digits_swapped(const std::string& gold, Rng& rng) {
  auto at = one_of(places_for(gold,
                              [&](size_t i) {
                                return i + 1 < gold.size() && is_digit(gold[i]) && is_digit(gold[i + 1]) &&
                                       gold[i] != gold[i + 1];
                              }),
                   rng);
  if (!at) return std::nullopt;
  std::string out = gold;
  std::swap(out[*at], out[*at + 1]);
  return out;
}

Mutant digit_added(const std::string& gold, Rng& rng) {
  auto at = one_of(places_for(gold, [&](size_t i) { return is_digit(gold[i]) && !numbers_constant(gold, i); }), rng);
  if (!at) return std::nullopt;
  return with(gold, *at + 1, 0, std::string(1, static_cast<char>('1' + rng.below(9))));
}

Mutant digit_left_out(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) {
    auto [begin, end] = run_of_digits(gold, i);
    bool decimals = begin > 0 && gold[begin - 1] == '.';
    return is_digit(gold[i]) && end - begin > 1 && !(i == begin && gold[i] == '0') && !(decimals && gold[i] == '0');
  };
  auto at = one_of(places_for(gold, fits), rng);
  return at ? Mutant(with(gold, *at, 1, "")) : std::nullopt;
}

// 1 2 for 12; 1 234 would be a number with its thousands apart, \frac1 2 the same fraction.
Mutant blank_inside(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) {
    if (i == 0 || !is_digit(gold[i]) || !is_digit(gold[i - 1])) return false;
    auto [begin, end] = run_of_digits(gold, i);
    char first = begin == 0 ? '\0' : gold[begin - 1];
    return (end - i) % 3 != 0 && !is_letter(first) && first != '^' && first != '_' && first != ',' && first != '!' &&
           first != ' ' && gold[i] != '0' && (end >= gold.size() || gold[end] != '/');
  };
  auto at = one_of(places_for(gold, fits), rng);
  return at ? Mutant(with(gold, *at, 0, " ")) : std::nullopt;
}

Mutant point_moved(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) {
    return gold[i] == '.' && i > 0 && i + 1 < gold.size() && is_digit(gold[i - 1]) && is_digit(gold[i + 1]);
  };
  auto at = one_of(places_for(gold, fits), rng);
  if (!at) return std::nullopt;
  std::string out = gold;
  std::swap(out[*at], out[*at + 1]);
  return out;
}

Mutant index_changed(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) {
    return is_digit(gold[i]) && !numbers_constant(gold, i) && i > 0 &&
           (gold[i - 1] == '_' || (i > 1 && gold[i - 1] == '{' && gold[i - 2] == '_'));
  };
  auto at = one_of(places_for(gold, fits), rng);
  if (!at) return std::nullopt;
  return with(gold, *at, 1, std::string(1, gold[*at] == '9' ? '8' : static_cast<char>(gold[*at] + 1)));
}

// Signs.

Mutant negated(const std::string& gold, Rng&) {
  if (gold.starts_with("-") && !gold.starts_with("--")) return gold.substr(1);
  bool value =
      is_digit(gold[0]) || gold.starts_with("\\frac") || gold.starts_with("\\sqrt") || gold.starts_with("\\pi");
  bool zero = gold.find_first_not_of("0.") == kNowhere || (gold[0] == '0' && (gold.size() < 2 || gold[1] != '.'));
  bool word = gold.find(':') != kNowhere;
  return value && !zero && !word ? Mutant("-" + gold) : std::nullopt;
}

Mutant plus_for_minus(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) {
    char left = before(gold, i), right = after(gold, i);
    bool binary = is_digit(left) || is_letter(left) || left == ')' || left == '}';
    return (gold[i] == '+' || gold[i] == '-') && binary && right != '0' && right != '>';
  };
  auto at = one_of(places_for(gold, fits), rng);
  if (!at) return std::nullopt;
  return with(gold, *at, 1, gold[*at] == '+' ? "-" : "+");
}

Mutant order_turned(const std::string& gold, Rng& rng) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kSigns = {{{"<", ">"},
                                                                                     {">", "<"},
                                                                                     {"\\leq", "\\geq"},
                                                                                     {"\\geq", "\\leq"},
                                                                                     {"\\le ", "\\ge "},
                                                                                     {"\\ge ", "\\le "},
                                                                                     {"\\lt", "\\gt"},
                                                                                     {"\\gt", "\\lt"},
                                                                                     {"\\leqslant", "\\geqslant"},
                                                                                     {"\\geqslant", "\\leqslant"}}};
  std::vector<std::pair<size_t, size_t>> found;
  for (size_t k = 0; k < kSigns.size(); ++k) {
    for (size_t at = gold.find(kSigns[k].first); at != kNowhere; at = gold.find(kSigns[k].first, at + 1)) {
      found.emplace_back(at, k);
    }
  }
  if (found.empty() || gold.find("->") != kNowhere) return std::nullopt;
  auto [at, k] = found[static_cast<size_t>(rng.below(static_cast<int64_t>(found.size())))];
  return with(gold, at, kSigns[k].first.size(), kSigns[k].second);
}

Mutant order_strict(const std::string& gold, Rng& rng) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSigns = {
      {{"<", "\\le "}, {">", "\\ge "}, {"\\leq", "<"}, {"\\geq", ">"}, {"\\le ", "<"}, {"\\ge ", ">"}}};
  std::vector<std::pair<size_t, size_t>> found;
  for (size_t k = 0; k < kSigns.size(); ++k) {
    size_t at = gold.find(kSigns[k].first);
    if (at != kNowhere) found.emplace_back(at, k);
  }
  bool infinite = gold.find("infty") != kNowhere || gold.find("->") != kNowhere || gold.find("slant") != kNowhere;
  if (found.empty() || infinite) return std::nullopt;
  auto [at, k] = found[static_cast<size_t>(rng.below(static_cast<int64_t>(found.size())))];
  return with(gold, at, kSigns[k].first.size(), kSigns[k].second);
}

// Letters.

bool lone_letter(const std::string& text, size_t i) {
  bool left = i > 0 && (is_letter(text[i - 1]) || text[i - 1] == '\\'),
       right = i + 1 < text.size() && is_letter(text[i + 1]);
  return is_letter(text[i]) && !left && !right;
}

std::string replaced(const std::string& text, char from, char to) {
  std::string out = text;
  for (size_t i : places_for(text, [&](size_t k) { return text[k] == from; })) out[i] = to;
  return out;
}

// The variable of a function or a set, the letter whose range is said: any letter will do.
bool is_bound(const std::string& text, char letter) {
  std::string argument = str("(", std::string(1, letter), ")");
  bool set = text.find("\\mid") != kNowhere || text.find('|') != kNowhere;
  bool range = text.find("for all") != kNowhere || text.find("any ") != kNowhere || text.find("\\in") != kNowhere;
  return set || range || text.find(argument) != kNowhere;
}

// A letter everywhere for one that cannot stand for it: no constant for a constant, no integer for an integer.
Mutant letter_changed(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) {
    return lone_letter(gold, i) && std::string_view("edi").find(gold[i]) == kNowhere && !is_bound(gold, gold[i]);
  };
  auto at = one_of(places_for(gold, fits), rng);
  if (!at) return std::nullopt;
  bool capital = gold[*at] < 'a';
  for (char other : std::string_view(capital ? "XYZWQ" : "xyzwq")) {
    if (gold.find(other) == kNowhere) return replaced(gold, gold[*at], other);
  }
  return std::nullopt;
}

Mutant letter_changed_once(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) {
    return lone_letter(gold, i) && std::count(gold.begin(), gold.end(), gold[i]) > 1 && gold[i] != 'd' &&
           gold.find("for all") == kNowhere && gold.find("any ") == kNowhere;
  };
  auto at = one_of(places_for(gold, fits), rng);
  if (!at) return std::nullopt;
  return with(gold, *at, 1, gold.find('w') == kNowhere ? "w" : "q");
}

Mutant other_case(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) {
    bool prefix = i > 0 && gold[i - 1] == '0';  // 0x1F
    return lone_letter(gold, i) && !prefix && std::string_view("cCeEiIdD").find(gold[i]) == kNowhere &&
           !is_bound(gold, gold[i]) && gold.find(static_cast<char>(gold[i] ^ 32)) == kNowhere;
  };
  auto at = one_of(places_for(gold, fits), rng);
  if (!at) return std::nullopt;
  return replaced(gold, gold[*at], static_cast<char>(gold[*at] ^ 32));
}

Mutant word_changed(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) { return is_letter(gold[i]) && i > 0 && is_letter(gold[i - 1]) && gold[i] != 's'; };
  bool words = gold.starts_with("\\text{") && gold.find('}') == gold.size() - 1 && gold.find(" the ") == kNowhere;
  auto at = one_of(places_for(gold, fits, Place::words), rng);
  if (!at || !words || std::any_of(gold.begin(), gold.end(), is_digit)) return std::nullopt;
  return with(gold, *at, 1, gold[*at] == 'q' ? "j" : "q");
}

// Brackets and fractions.

bool beside_infinity(const std::string& text, size_t bracket) {
  bool opens = text[bracket] == '(' || text[bracket] == '[';
  if (opens) {
    size_t comma = text.find(',', bracket);
    return text.substr(bracket, comma - bracket).find("infty") != kNowhere;
  }
  size_t comma = text.rfind(',', bracket);
  return comma != kNowhere && text.substr(comma, bracket - comma).find("infty") != kNowhere;
}

Mutant bracket_changed(const std::string& gold, Rng& rng) {
  constexpr std::string_view kBrackets = "()[]";
  auto fits = [&](size_t i) {
    if (kBrackets.find(gold[i]) == kNowhere) return false;
    bool opens = gold[i] == '(' || gold[i] == '[';
    size_t other = opens ? gold.find_first_of(")]", i) : gold.find_last_of("([", i);
    if (other == kNowhere) return false;
    std::string inside = gold.substr(std::min(i, other), std::max(i, other) - std::min(i, other));
    return inside.find(',') != kNowhere && !beside_infinity(gold, i);
  };
  auto at = one_of(places_for(gold, fits), rng);
  if (!at) return std::nullopt;
  return with(gold, *at, 1, std::string(1, "[]()"[kBrackets.find(gold[*at])]));
}

// The content of the braces at `open`.
std::optional<std::string> braces(const std::string& text, size_t open) {
  if (open >= text.size() || text[open] != '{') return std::nullopt;
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return std::nullopt;
}

Mutant fraction_turned(const std::string& gold, Rng&) {
  size_t at = gold.find("frac{");
  if (at == kNowhere) return std::nullopt;
  auto above = braces(gold, at + 4);
  size_t second = above ? at + 6 + above->size() : gold.size();
  auto below = braces(gold, second);
  if (!below || *above == *below || *above == "0") return std::nullopt;
  return with(gold, at + 4, above->size() + below->size() + 4, str("{", *below, "}{", *above, "}"));
}

Mutant root_changed(const std::string& gold, Rng&) {
  size_t at = gold.find("\\sqrt");
  if (at == kNowhere || at + 5 >= gold.size() || gold[at + 5] == '[') return std::nullopt;
  return with(gold, at + 5, 0, "[3]");
}

Mutant power_changed(const std::string& gold, Rng& rng) {
  auto fits = [&](size_t i) {
    return is_digit(gold[i]) && i > 0 && (gold[i - 1] == '^' || (i > 1 && gold[i - 1] == '{' && gold[i - 2] == '^'));
  };
  auto at = one_of(places_for(gold, fits), rng);
  if (!at) return std::nullopt;
  return with(gold, *at, 1, std::string(1, gold[*at] == '9' ? '8' : static_cast<char>(gold[*at] + 1)));
}

// Units.

Mutant unit_changed(const std::string& gold, Rng& rng) {
  size_t at = gold.find("\\text{");
  if (at == kNowhere || at == 0) return std::nullopt;
  auto content = braces(gold, at + 5);
  char left = before(gold, at);
  if (!content || !(is_digit(left) || left == '}' || left == ',')) return std::nullopt;
  std::string word = *content;
  std::erase_if(word, [](char c) { return c == ' ' || c == '.'; });
  bool plain = word.size() > 1 && std::all_of(word.begin(), word.end(), is_letter);
  constexpr std::array<std::string_view, 12> kNothing = {"way",   "am",     "pm",    "and",       "or", "times",
                                                         "value", "pieces", "total", "solutions", "th", "unit"};
  bool nothing = std::any_of(kNothing.begin(), kNothing.end(),
                             [&](std::string_view part) { return word == part || word.find("unit") != kNowhere; }) ||
                 word == "ways" || word == "values";
  if (!plain || nothing) return std::nullopt;
  std::string other = rng.below(2) == 0 ? " zorks" : " kilo" + word;
  return with(gold, at + 6, content->size(), other);
}

Mutant percent_for_degrees(const std::string& gold, Rng&) {
  if (size_t at = gold.find("\\%"); at != kNowhere) return with(gold, at, 2, "^\\circ");
  if (size_t at = gold.find("^\\circ"); at != kNowhere) return with(gold, at, 6, "\\%");
  if (size_t at = gold.find("^{\\circ}"); at != kNowhere) return with(gold, at, 8, "\\%");
  return std::nullopt;
}

// Lists.

// The text without $..$ around all of it.
std::string without_dollars(const std::string& gold) {
  bool whole = gold.size() > 2 && gold[0] == '$' && gold.find('$', 1) == gold.size() - 1;
  return whole ? gold.substr(1, gold.size() - 2) : gold;
}

// The text between the outermost brackets or braces, or all of it, cut at its commas; what stands around.
struct List {
  std::string head, tail;
  std::vector<std::string> items;
};

std::optional<List> list_of(const std::string& text) {
  List list;
  std::string gold = without_dollars(text);
  if (gold.find('$') != kNowhere) return std::nullopt;
  size_t begin = 0, end = gold.size();
  if (gold.ends_with("}") && gold.size() > 2 && gold.starts_with("\\{") && gold.ends_with("\\}")) begin = 2, end -= 2;
  if (gold.size() > 2 && (gold[0] == '(' || gold[0] == '[') && (gold.back() == ')' || gold.back() == ']'))
    ++begin, --end;
  list.head = gold.substr(0, begin), list.tail = gold.substr(end);
  int depth = 0;
  std::string item;
  for (size_t i = begin; i < end; ++i) {
    char c = gold[i];
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (depth < 0) return std::nullopt;
    bool thousands = i + 3 < gold.size() && is_digit(gold[i + 1]) && is_digit(gold[i + 2]) && is_digit(gold[i + 3]) &&
                     (i + 4 >= gold.size() || !is_digit(gold[i + 4])) && i > 0 && is_digit(gold[i - 1]);
    if (c == ',' && depth == 0 && thousands) return std::nullopt;
    if (c == '\\' && depth == 0 && i + 1 < end && (gold[i + 1] == '!' || gold[i + 1] == '\\')) return std::nullopt;
    if (c == ',' && depth == 0) {
      list.items.push_back(item);
      item.clear();
    } else {
      item += c;
    }
  }
  list.items.push_back(item);
  bool words = gold.find("text") != kNowhere || gold.find(" and") != kNowhere || gold.find("ldots") != kNowhere ||
               gold.find("cdots") != kNowhere || gold.find("in ") != kNowhere || gold.find("any ") != kNowhere;
  return depth == 0 && list.items.size() > 1 && !words ? std::optional(list) : std::nullopt;
}

std::string joined(const List& list) {
  std::string out = list.head;
  for (size_t k = 0; k < list.items.size(); ++k) out += str(k == 0 ? "" : ",", list.items[k]);
  return out + list.tail;
}

std::string without_blanks(std::string text) {
  std::erase_if(text, is_blank);
  return text;
}

Mutant one_left_out(const std::string& gold, Rng&) {
  auto list = list_of(gold);
  if (!list) return std::nullopt;
  list->items.pop_back();
  return joined(*list);
}

Mutant one_added(const std::string& gold, Rng&) {
  auto list = list_of(gold);
  if (!list) return std::nullopt;
  list->items.emplace_back(" 97");
  return joined(*list);
}

Mutant components_swapped(const std::string& gold, Rng&) {
  auto list = list_of(gold);
  if (!list || list->head.empty() || list->head == "\\{") return std::nullopt;
  if (without_blanks(list->items[0]) == without_blanks(list->items[1])) return std::nullopt;
  std::swap(list->items[0], list->items[1]);
  return joined(*list);
}

// x=1, y=2 becomes x=2, y=1: names stay, values change places.
Mutant values_swapped(const std::string& gold, Rng&) {
  auto list = list_of(gold);
  if (!list) return std::nullopt;
  std::string &first = list->items[0], &second = list->items[1];
  size_t a = first.find('='), b = second.find('=');
  if (a == kNowhere || b == kNowhere || first.find('=', a + 1) != kNowhere || second.find('=', b + 1) != kNowhere) {
    return std::nullopt;
  }
  std::string names[2] = {first.substr(0, a), second.substr(0, b)}, values[2] = {first.substr(a), second.substr(b)};
  if (without_blanks(values[0]) == without_blanks(values[1]) || without_blanks(names[0]) == without_blanks(names[1])) {
    return std::nullopt;
  }
  first = names[0] + values[1];
  second = names[1] + values[0];
  return joined(*list);
}

Mutant or_another(const std::string& gold, Rng&) {
  if (gold.find("or") != kNowhere || gold.find('$') != kNowhere) return std::nullopt;
  return gold + " \\text{ or } 97";
}

}  // namespace

bool says_one_thing(const std::string& gold) {
  for (std::string_view part : {"\\lim", "\\int", "\\sum", "\\cdots", "\\ldots", "approx", "if ", "when", "cases"}) {
    if (gold.find(part) != kNowhere) return false;
  }
  int words = 0;
  std::vector<Place> places = places_of(gold);
  for (size_t i = 0; i < gold.size(); ++i) {
    words += places[i] == Place::words && is_letter(gold[i]) && (i == 0 || !is_letter(gold[i - 1]));
  }
  size_t item = 0;
  for (size_t i = gold.find('='); i != kNowhere; i = gold.find('=', i + 1)) {
    item = std::max(item, gold.find_last_of(",;", i) == kNowhere ? 0 : gold.find_last_of(",;", i));
    std::string name = gold.substr(item, i - item);
    bool formula = name.find_first_of("+*=\\") != kNowhere || name.find("-") != kNowhere;
    if (formula) return false;
  }
  return words <= 3;
}

const std::vector<MutantKind>& mutant_kinds() {
  static const std::vector<MutantKind> kKinds = {{"a digit changed", digit_changed},
                                                 {"one more", one_more},
                                                 {"digits swapped", digits_swapped},
                                                 {"a digit added", digit_added},
                                                 {"a digit left out", digit_left_out},
                                                 {"a blank inside a number", blank_inside},
                                                 {"the point moved", point_moved},
                                                 {"an index changed", index_changed},
                                                 {"negated", negated},
                                                 {"plus for minus", plus_for_minus},
                                                 {"order turned", order_turned},
                                                 {"strict for not strict", order_strict},
                                                 {"another letter", letter_changed},
                                                 {"another letter in one place", letter_changed_once},
                                                 {"a letter in the other case", other_case},
                                                 {"another word", word_changed},
                                                 {"another bracket", bracket_changed},
                                                 {"a fraction turned", fraction_turned},
                                                 {"another root", root_changed},
                                                 {"another power", power_changed},
                                                 {"another unit", unit_changed},
                                                 {"percent for degrees", percent_for_degrees},
                                                 {"one left out", one_left_out},
                                                 {"one added", one_added},
                                                 {"components swapped", components_swapped},
                                                 {"values of names swapped", values_swapped},
                                                 {"or another", or_another}};
  return kKinds;
}

}  // namespace ucas::math_mutants
