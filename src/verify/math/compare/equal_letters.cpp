// Letters that may be exchanged: constants, coefficients of a family of functions, integers that number solutions.
#include <algorithm>

#include "verify/math/compare/comparer.h"

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
  bool has_definition() const { return !bound.empty(); }
};

Letters letters_of(Part whole) {
  Letters letters;
  Names symbols;
  std::vector<Part> open{whole};
  while (!open.empty()) {
    Part p = open.back();
    open.pop_back();
    if (p.kind() == Kind::symbol && !holds(symbols, p.text())) symbols.emplace_back(p.text());
    if (is_domain(p) && p.child(0).kind() == Kind::symbol) {
      letters.declared.push_back(std::string(p.child(0).text()) + " " + show(p.child(1)));
    }
    bool named = is_equation(p) && is_name(p.child(0));
    if (named) {
      for (std::string& name : bound_symbols(p.child(0))) letters.bound.push_back(std::move(name));
    }
    for (size_t k = named ? 1 : 0; k < p.size(); ++k) open.push_back(p.child(k));
  }
  for (std::string& name : symbols) {
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

bool among(std::string_view letters, char c) { return c != '\0' && letters.find(c) != std::string_view::npos; }

// k, n, m: any integer; c, C, K: any constant.
bool is_free_letter(std::string_view name) {
  return among("cC", base_letter(name)) || (name.size() == 1 && among("knmlK", name[0]));
}

// Coefficients of a family, beside the variables that its definition names.
bool is_coefficient(std::string_view name) {
  return among("abcdkmnpqrABCDK", base_letter(name)) || name == "alpha" || name == "beta" || name == "lambda";
}

bool is_parameter(std::string_view name) {
  return (name.size() == 1 && among("tsknmracu", name[0])) || name == "lambda" || name == "mu";
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  return a.size() == 1 && b.size() == 1 && (a[0] ^ b[0]) == 32;
}

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
// way without renaming where there is none. Only letters that by their name or by what is said of them may stand for
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
  // y = C_1 e^x + C_2 e^{-x}: constants of integration beside a variable
  auto constants = [](const Names& names) {
    return std::all_of(names.begin(), names.end(),
                       [](const std::string& n) { return base_letter(n) == 'C' || n.starts_with("c_"); });
  };
  bool integration = of_gold.size() < g.free.size() && (constants(of_gold) || constants(of_answer));
  auto exchangeable = [&](const std::string& x, const std::string& y) {
    if (is_free_letter(x) && is_free_letter(y)) return true;
    if (count == 1 && same_but_for_case(x, y)) return true;
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

// k \in \mathbb{Z} against k \in \mathbb{N}: both say where a letter comes from, and not the same.
bool Comparer::domains_differ() const {
  Letters g = letters_of(gold()), a = letters_of(answer());
  auto renamed = [&](const std::string& name) {
    for (const Renaming& r : renamed_) {
      if (r.from == name) return r.to;
    }
    return name;
  };
  return std::any_of(a.declared.begin(), a.declared.end(), [&](const std::string& entry) {
    std::string name = entry.substr(0, entry.find(' '));
    std::string domain = domain_of(g, renamed(name));
    return !domain.empty() && domain != entry.substr(name.size());
  });
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

}  // namespace ucas::math
