// Letters that may be exchanged: constants, coefficients of a family of functions, integers that number solutions.
#include <algorithm>

#include "base/str.h"
#include "verify/math/compare/comparer.h"
#include "verify/math/read/letters.h"

namespace ucas::math {

namespace {

constexpr size_t kExchanged = 3;  // letters of one answer

using Names = std::vector<std::string>;

bool holds(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_equation(Part p) { return p.kind() == Kind::relation && p.size() == 2 && p.text() == "="; }

// What one answer says about its letters.
struct Letters {
  Names free;      // symbols of values, without names that values have and arguments of functions that are defined
  Names bound;     // x of f(x) = ..
  Names declared;  // k of "k \in \mathbb{Z}", with its domain
  Names inner;     // in a denominator, an exponent or a function
  Names raised;    // C_2 of C_2^3
  Names indices;   // n of a_n
  Names terms;     // C of x^2 + C and of C e^x: a term, or the factor of one, next to a variable
  bool periodic = false;  // there is a \pi, or degrees
  bool has_definition() const { return !bound.empty(); }
};

void keep_symbols(Part p, Names& into) {
  for (std::string& name : symbols_of(*p.tree, p.id)) into.push_back(std::move(name));
}

// n of a_n.
void keep_indices(std::string_view name, Names& into) {
  for (size_t k = name.find('_'); k < name.size(); ++k) into.emplace_back(1, name[k]);
}

// A variable as functions and solutions of differential equations have them.
bool is_argument(std::string_view name) {
  return (name.size() == 1 && std::string_view("xyztuvwrs").find(name[0]) != std::string_view::npos) || name == "theta";
}

bool has_argument(Part p) {
  auto names = symbols_of(*p.tree, p.id);
  return std::any_of(names.begin(), names.end(), is_argument);
}

void keep_terms(Part sum, Names& into) {
  std::vector<Part> terms = sum.kind() == Kind::sum ? children_of(sum) : std::vector{sum};
  for (Part term : terms) {
    if (term.kind() == Kind::negate) term = term.child(0);
    if (term.kind() == Kind::symbol && sum.kind() == Kind::sum && has_argument(sum)) into.emplace_back(term.text());
    if (term.kind() == Kind::symbol || !has_argument(term)) continue;
    if (term.kind() == Kind::quotient) term = term.child(0);
    for (const Part& factor : term.kind() == Kind::product ? children_of(term) : std::vector{term}) {
      if (factor.kind() == Kind::symbol) into.emplace_back(factor.text());
    }
  }
}

Letters letters_of(Part whole) {
  Letters letters;
  Names symbols;
  std::vector<Part> open{whole};
  while (!open.empty()) {
    Part p = open.back();
    open.pop_back();
    if (p.kind() == Kind::symbol && !holds(symbols, p.text())) symbols.emplace_back(p.text());
    bool expression = p.id == whole.id || (p.kind() != Kind::relation && is_list(whole)) || p.kind() == Kind::sum;
    if (expression) keep_terms(p, letters.terms);
    if (p.kind() == Kind::relation) keep_terms(p.child(p.size() - 1), letters.terms);
    letters.periodic |= p.is(Constant::pi) || p.kind() == Kind::degree;
    if (p.kind() == Kind::quotient || p.kind() == Kind::power) keep_symbols(p.child(1), letters.inner);
    if (p.kind() == Kind::call) keep_symbols(p, letters.inner);
    if (p.kind() == Kind::power && p.child(0).kind() == Kind::symbol) keep_symbols(p.child(0), letters.raised);
    if (is_domain(p) && p.child(0).kind() == Kind::symbol) {
      letters.declared.push_back(std::string(p.child(0).text()) + " " + show(p.child(1)));
    }
    bool named = is_equation(p) && is_name(p.child(0));
    if (named) {
      for (std::string& name : bound_symbols(p.child(0))) letters.bound.push_back(std::move(name));
      if (p.child(0).kind() == Kind::symbol) keep_indices(p.child(0).text(), letters.indices);
    }
    named |= p.kind() == Kind::set_builder && p.child(0).kind() == Kind::symbol;  // \{x \mid ..
    for (size_t k = named ? 1 : 0; k < p.size(); ++k) open.push_back(p.child(k));
  }
  for (std::string& name : symbols) {
    keep_indices(name, letters.indices);
    if (!holds(letters.bound, name)) letters.free.push_back(std::move(name));
  }
  return letters;
}

// The letter of "c", "C_1" and "c_2"; 0 for other names.
char base_letter(std::string_view name) {
  bool indexed =
      name.size() > 2 && name[1] == '_' && name.find_first_not_of("0123456789{}", 2) == std::string_view::npos;
  return name.size() == 1 || indexed ? name[0] : '\0';
}

bool one_of(std::string_view letters, char c) { return c != '\0' && letters.find(c) != std::string_view::npos; }

// What a letter means by default: any integer, any constant.
bool is_integer_letter(std::string_view name) { return one_of("knmlj", base_letter(name)) || name == "ell"; }
bool is_constant_of_integration(std::string_view name) { return one_of("cC", base_letter(name)); }

// Coefficients of a family, besides the variables that its definition names.
bool is_coefficient(std::string_view name) {
  return one_of("abcdkmnpqrABCDK", base_letter(name)) || name == "alpha" || name == "beta" || name == "lambda";
}

bool is_parameter(std::string_view name) { return in_words("t s k lambda mu", name); }

Names without(const Names& all, const Names& others) {
  Names kept;
  for (const std::string& name : all) {
    if (!holds(others, name)) kept.push_back(name);
  }
  return kept;
}

std::string domain_of(const Letters& letters, const std::string& name) {
  for (const std::string& entry : letters.declared) {
    if (entry.starts_with(name + " ")) return entry.substr(name.size());
  }
  return {};
}

// x_1 and x_2 are values of x, which have no order.
std::string without_number(std::string_view name) {
  size_t index = name.find_last_not_of("0123456789");
  bool numbered = index != std::string_view::npos && index > 0 && name[index] == '_' && index + 1 < name.size();
  return std::string(numbered ? name.substr(0, index) : name);
}

bool all_differ(const std::vector<NamedPart>& parts) {
  std::vector<std::string> names;
  for (const NamedPart& part : parts) {
    std::string name = without_number(part.name);
    if (among(names, name)) return false;
    names.push_back(std::move(name));
  }
  return true;
}

std::vector<Part> values_of(const std::vector<NamedPart>& parts) {
  std::vector<Part> values;
  for (const NamedPart& part : parts) values.push_back(part.value);
  return values;
}

std::vector<Part> wholes_of(const std::vector<NamedPart>& parts) {
  std::vector<Part> wholes;
  for (const NamedPart& part : parts) wholes.push_back(part.whole);
  return wholes;
}

// 60 lollipop candies and 60 hard candies, in a list in the same order: one of the words agrees.
bool share_words(const NamedPart& gold, const NamedPart& answer) {
  if (!gold.in_words || !answer.in_words) return false;
  bool shared = false;
  each_word(gold.name, [&](std::string_view word) { shared |= in_words(answer.name, word); });
  return shared;
}

const NamedPart* find_name(const std::vector<NamedPart>& parts, std::string_view name) {
  auto at = std::find_if(parts.begin(), parts.end(), [&](const NamedPart& part) { return part.name == name; });
  return at == parts.end() ? nullptr : &*at;
}

// A point without names is (x, y) or (x, y, z); of other letters a question may want any order, (m, b) or (k, a).
bool are_coordinates(const std::vector<NamedPart>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [](const NamedPart& part) { return part.name == "x" || part.name == "y" || part.name == "z"; });
}

bool is_sequence(Part p) { return p.kind() == Kind::tuple || p.kind() == Kind::matrix; }

// A set is read as it is written: names give its values an order.
bool is_plain_list(Part p) {
  bool list = p.kind() == Kind::list && p.node().tag <= static_cast<uint8_t>(Connective::conj_and);
  return list || p.kind() == Kind::set;
}

}  // namespace

std::vector<std::string> bound_symbols(Part p) {
  if (!p.is(Function::user)) return {};
  std::vector<std::string> names;
  for (size_t k = 0; k < p.size(); ++k) {
    if (p.child(k).kind() != Kind::symbol || holds(names, p.child(k).text())) return {};
    names.emplace_back(p.child(k).text());
  }
  return names;
}

// The ways in which the letters that only the answer has can be those that only the gold has, one for one; the one
// way without renaming where there is none. Only letters that by their name or by what is said of them may mean
// anything: x + a is not x + b.
std::vector<std::vector<Renaming>> Comparer::renamings() const {
  std::vector<std::vector<Renaming>> none(1);
  if (gold_[gold_.root()].kind == Kind::symbol || answer_[answer_.root()].kind == Kind::symbol) return none;
  Letters g = letters_of(gold()), a = letters_of(answer());
  Names of_gold = without(g.free, a.free), of_answer = without(a.free, g.free);
  size_t count = of_gold.size();
  if (count == 0 || count > kExchanged || of_answer.size() != count) return none;
  bool definitions = g.has_definition() && a.has_definition();
  auto is_line = [](Part p) {  // (2t, 3t), a point and t times a direction
    p = without_domains(p);
    return p.kind() == Kind::tuple || is_matrix_arithmetic(p);
  };
  bool line = count == 1 && is_line(gold()) && is_line(answer());
  // x^2 + C, y = C_1 e^x + C_2 e^{-x}: constants of integration; A and B for two of them
  auto all = [](const Names& names, auto of) { return std::all_of(names.begin(), names.end(), of); };
  auto capital = [](const std::string& n) { return one_of("ABCD", base_letter(n)); };
  auto added = [&](const std::string& n) {
    bool given =
        n == "c" && g.free.size() > 1 + static_cast<size_t>(std::count_if(g.free.begin(), g.free.end(), is_argument));
    return holds(g.terms, n) && !holds(g.inner, n) && !holds(g.raised, n) && !given;  // c of ax^2 + bx + c
  };
  bool integration =
      all(of_gold, added) && (all(of_gold, is_constant_of_integration) ||
                              (count > 1 && all(of_gold, capital) && all(of_answer, is_constant_of_integration)));
  // k\pi is n\pi, a_n = n^2 is a_k = k^2, and 2k + 1 is 2n + 1 where one of them is said to be an integer
  auto any_integer = [&](const Letters& letters, const std::string& name) {
    return domain_of(letters, name) == " integers" || holds(letters.indices, name) ||
           (letters.periodic && !holds(letters.inner, name));
  };
  auto exchangeable = [&](const std::string& x, const std::string& y) {
    if (x.size() > 1 && (holds(g.raised, x) || holds(a.raised, y))) return false;  // C_{11}^k
    if (is_integer_letter(x) && is_integer_letter(y) && (any_integer(g, x) || any_integer(a, y))) return true;
    if ((definitions || integration) && is_coefficient(x) && is_coefficient(y)) return true;
    if (line && is_parameter(x) && is_parameter(y)) return true;
    std::string domain = domain_of(g, x);
    return !domain.empty() && domain == domain_of(a, y);
  };
  std::vector<std::vector<Renaming>> ways;
  std::sort(of_answer.begin(), of_answer.end());
  do {
    std::vector<Renaming> way;
    for (size_t k = 0; k < count && exchangeable(of_gold[k], of_answer[k]); ++k)
      way.push_back({of_answer[k], of_gold[k]});
    if (way.size() == count) ways.push_back(std::move(way));
  } while (std::next_permutation(of_answer.begin(), of_answer.end()));
  return ways.empty() ? none : ways;
}

// k \in \mathbb{Z} against k \in \mathbb{N}. A letter of which one side says nothing is an integer there if it is one
// of those that usually are, except as an index.
bool Comparer::domains_differ() const {
  Letters g = letters_of(gold()), a = letters_of(answer());
  auto renamed = [&](const std::string& name) {
    for (const Renaming& r : renamed_) {
      if (r.from == name) return r.to;
    }
    return name;
  };
  auto differ = [&](const std::string& name) {
    const std::string other = renamed(name);
    std::string of_answer = domain_of(a, name), of_gold = domain_of(g, other);
    if (of_answer == of_gold) return false;
    if (!of_answer.empty() && !of_gold.empty()) return true;
    bool index = holds(g.indices, other) || holds(a.indices, name);
    std::string usual = is_integer_letter(other) ? " integers" : " reals";
    return !index && str(of_gold, of_answer) != usual;
  };
  Names names = a.free;
  names.insert(names.end(), a.bound.begin(), a.bound.end());
  for (const std::string& name : g.free) {
    bool met = std::any_of(renamed_.begin(), renamed_.end(), [&](const Renaming& r) { return r.to == name; });
    if (!met) names.push_back(name);
  }
  return std::any_of(names.begin(), names.end(), differ);
}

Finding Comparer::compare_up_to_letters() {
  Finding first;
  bool tried = false;
  for (std::vector<Renaming>& way : renamings()) {
    renamed_ = std::move(way);
    Finding f = compare(gold(), answer());
    if (f.equal() && domains_differ()) f = {Outcome::different, "a letter of another domain"};
    if (f.equal() || f.outcome == Outcome::over_budget) return f;
    if (!tried) first = f;
    tried = true;
  }
  return first;
}

// The values of a list with their names, all of which differ; none for anything else.
std::vector<NamedPart> Comparer::named_parts(Part p) {
  std::vector<NamedPart> parts;
  auto keep = [&](std::string name, Part of, Part value, Part whole, bool in_words) {
    parts.push_back({std::move(name), of, value, whole, in_words});
  };
  if (is_plain_list(p)) {
    for (size_t k = 0; k < p.size(); ++k) {
      Part child = p.child(k);
      bool equation = child.kind() == Kind::relation && child.text().find_first_not_of('=') == std::string_view::npos;
      bool named = equation && is_name(child.child(0));
      if (named) {
        std::string segment = segment_of(child.child(0));
        Part value = child.child(child.size() - 1);  // Alice = 1 + 2 = 3
        keep(segment.empty() ? show(child.child(0)) : segment, child.child(0), value, child, false);
      } else if (child.kind() == Kind::quantity) {
        bool in_words = child.child(1).node().tag == static_cast<uint8_t>(UnitKind::word);
        keep(std::string(child.child(1).text()), child.child(1), child.child(0), child, in_words);
      } else {
        return {};
      }
    }
  } else if (p.kind() == Kind::relation && p.text() == "=" && is_name(p.child(0))) {
    Part names = p.child(0), values = p.child(1);
    bool lists = (names.kind() == Kind::tuple || names.kind() == Kind::list) && names.size() == values.size() &&
                 (values.kind() == Kind::tuple || values.kind() == Kind::list);
    for (size_t k = 0; lists && k < names.size(); ++k)
      keep(show(names.child(k)), names.child(k), values.child(k), values.child(k), false);
  }
  return parts.size() > 1 && all_differ(parts) ? parts : std::vector<NamedPart>();
}

// x = 1; x = 2, 3 against x = 1; w = 2, 3: a letter that the gold answer does not know names several values.
bool Comparer::lists_of_other_names(Part gold, Part answer) {
  auto letter_of = [](Part p) {
    bool named = p.kind() == Kind::relation && p.size() == 2 && p.text() == "=" && p.child(0).kind() == Kind::symbol;
    return named ? p.child(0) : Part{p.tree};
  };
  if (gold.kind() != Kind::list || answer.kind() != Kind::list) return false;
  std::vector<Part> known;
  for (const Part& child : children_of(gold)) {
    known.push_back(letter_of(child));
    if (known.back().id == kNoNode) return false;
  }
  for (const Part& child : children_of(answer)) {
    Part letter = letter_of(child);
    if (letter.id == kNoNode || !is_list(child.child(1))) continue;
    if (std::all_of(known.begin(), known.end(), [&](Part name) { return other_name(name, letter); })) return true;
  }
  return false;
}

// nullopt: there are no names, or not as many values.
std::optional<Finding> Comparer::by_name(Part gold, Part answer, int depth) {
  std::vector<NamedPart> g = named_parts(gold), a = named_parts(answer);
  if (g.empty() && a.empty()) return std::nullopt;
  auto any_of = [](Part p) {
    return p.kind() == Kind::set || (p.kind() == Kind::relation && p.text() == "e") ||
           p.node().has(Connective::conj_or);
  };
  auto letters = [](const std::vector<NamedPart>& parts) {
    return !parts.empty() &&
           std::all_of(parts.begin(), parts.end(), [](const NamedPart& p) { return p.of.kind() != Kind::unit; });
  };
  if ((letters(g) && any_of(answer)) || (letters(a) && any_of(gold)))
    return Finding{Outcome::different, "names left out"};
  if (a.empty()) {
    bool values = (is_plain_list(answer) || is_sequence(answer)) && answer.size() == g.size();
    if (!values || has_open_signs(answer)) return std::nullopt;
    return in_order(wholes_of(g), children_of(answer), depth);
  }
  if (g.empty()) {
    if (!is_sequence(gold) || gold.size() != a.size() || !are_coordinates(a)) return std::nullopt;
    std::sort(a.begin(), a.end(), [](const NamedPart& x, const NamedPart& y) { return x.name < y.name; });
    return in_order(children_of(gold), wholes_of(a), depth);
  }
  if (g.size() != a.size()) return std::nullopt;
  std::vector<Part> found;
  bool crossed = false;
  for (size_t k = 0; k < g.size(); ++k) {
    const NamedPart* same = find_name(a, g[k].name);
    if (same != nullptr) found.push_back(same->whole);
    crossed |= same != nullptr && same != &a[k];
  }
  if (found.size() == g.size()) return in_order(wholes_of(g), found, depth);
  if (crossed) return Finding{Outcome::different, "values of other names"};
  bool shared = true;
  for (size_t k = 0; k < g.size(); ++k) shared &= share_words(g[k], a[k]);
  if (shared) return in_order(values_of(g), values_of(a), depth);
  for (size_t k = 0; k < g.size(); ++k) {
    if (other_name(g[k].of, a[k].of)) return Finding{Outcome::different, "values of other names"};
  }
  return in_order(wholes_of(g), wholes_of(a), depth);
}

}  // namespace ucas::math
