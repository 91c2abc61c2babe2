#include "verify/math/compare/compare.h"

#include <algorithm>

#include "verify/math/compare/comparer.h"
#include "verify/math/read/letters.h"

namespace ucas::math {

namespace {

constexpr size_t kElementLimit = 100;

uint64_t hash(std::string_view text, uint64_t h) {
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

bool is_word_like(Kind kind) { return kind == Kind::text || kind == Kind::choice || kind == Kind::symbol; }

}  // namespace

std::vector<Part> children_of(Part part) {
  std::vector<Part> children;
  for (size_t k = 0; k < part.size(); ++k) children.push_back(part.child(k));
  return children;
}

std::string show(Part part) { return to_string(*part.tree, part.id); }

bool is_list(Part part) { return part.kind() == Kind::list || part.kind() == Kind::set; }

bool is_domain(Part part) {
  if (part.kind() != Kind::relation || part.text() != "e") return false;
  Part letter = part.child(0), domain = part.child(1);
  bool letters =
      letter.kind() == Kind::symbol || (letter.kind() == Kind::list && letter.child(0).kind() == Kind::symbol);
  return letters && domain.kind() == Kind::constant && domain.node().tag >= static_cast<uint8_t>(Constant::naturals) &&
         domain.node().tag <= static_cast<uint8_t>(Constant::complexes);
}

Part without_domains(Part part) {
  if (part.kind() != Kind::list) return part;
  Part only = part;
  int answers = 0;
  for (size_t k = 0; k < part.size(); ++k) {
    if (is_domain(part.child(k))) continue;
    only = part.child(k);
    ++answers;
  }
  return answers == 1 ? only : part;
}

bool has_domain(Part part) {
  if (part.kind() != Kind::list) return false;
  for (size_t k = 0; k < part.size(); ++k) {
    if (is_domain(part.child(k))) return true;
  }
  return false;
}

// \{\emptyset\}, \{\{1, 2\}\}: its braces may not be left out.
bool holds_a_set(Part set, Part other) {
  if (set.kind() != Kind::set || set.size() != 1 || other.kind() == Kind::set) return false;
  Part inside = set.child(0);
  return inside.kind() == Kind::set || inside.kind() == Kind::interval || inside.is(Constant::empty_set);
}

// 6k of \{6k \mid k \in \mathbb{Z}\}, for comparison with "6k, k \in \mathbb{Z}"; anything else stays as it is.
Part family_of(Part part) {
  bool family = part.kind() == Kind::set_builder && part.size() == 2 && part.child(0).kind() != Kind::symbol &&
                is_domain(part.child(1));
  if (family) return part.child(0);
  // \{x \mid x = 6k, k \in \mathbb{Z}\}
  bool named = part.kind() == Kind::set_builder && part.size() == 2 && part.child(0).kind() == Kind::symbol;
  Part condition = named ? without_domains(part.child(1)) : part;
  bool equation =
      named && condition.id != part.child(1).id && condition.kind() == Kind::relation && condition.text() == "=";
  return equation && show(condition.child(0)) == show(part.child(0)) ? condition.child(1) : part;
}

bool has_open_signs(Part part) { return !part.expanded && signs_below(*part.tree, part.id) != 0; }

bool is_pair(Part part) { return part.kind() == Kind::tuple && part.size() == 2 && part.node().has(Bracket::round); }

Comparer::Comparer(const Tree& gold, const Tree& answer, Budget& budget, const MathOptions& options)
    : gold_(gold), answer_(answer), budget_(budget), options_(options) {
  seed_ = hash(to_string(answer), hash(to_string(gold), 0xcbf29ce484222325ULL));
}

int Comparer::lower(Part part) {
  Lowering lowering(*part.tree, circuit_);
  lowering.signs = part.signs;
  if (part.tree == &answer_) lowering.renamed = &renamed_;
  return lowering(part.id);
}

Finding Comparer::finding(const Decision& decision) {
  if (decision.answer == Decision::equal) return {Outcome::equal, decision.how};
  if (decision.answer == Decision::different) return {Outcome::different, decision.how};
  return {decision.over_budget ? Outcome::over_budget : Outcome::undecided, decision.how};
}

Finding Comparer::equal_nodes(int g, int a) {
  if (g == a) return {Outcome::equal, "the same value"};
  return finding(Exact(circuit_, seed_, budget_).equal(g, a));
}

// The elements of a list or set, with each \pm written out; one element for anything else. `independent`: several \pm
// of one element take their signs freely, otherwise together.
std::vector<Part> Comparer::elements(Part part, bool independent) {
  std::vector<Part> open{part}, found;
  while (!open.empty() && found.size() <= kElementLimit) {
    Part p = open.back();
    open.pop_back();
    bool inner_list = p.kind() == Kind::list && p.id != part.id && p.node().has(Connective::comma) &&
                      part.kind() == Kind::list && part.node().has(Connective::semicolon);
    if ((p.kind() == Kind::list && !inner_list) || (p.kind() == Kind::set && p.id == part.id)) {
      for (size_t k = p.size(); k > 0; --k) open.push_back(p.child(k - 1));
      continue;
    }
    if (p.id != part.id && is_domain(p)) continue;
    Named named = strip_name(p);
    if (is_list(named.value) && named.value.id != p.id) {  // x = 1, 2
      for (size_t k = named.value.size(); k > 0; --k) open.push_back(named.value.child(k - 1));
      continue;
    }
    uint32_t bits = p.expanded ? 0 : signs_below(*p.tree, p.id);
    p.expanded = true;
    if (bits == 0 || __builtin_popcount(bits) > 6) {
      found.push_back(p);
    } else if (!independent || has_minus_plus(*p.tree, p.id)) {
      found.push_back(p);
      found.push_back({p.tree, p.id, bits, true});
    } else {
      for (uint32_t signs = bits;; signs = (signs - 1) & bits) {
        found.push_back({p.tree, p.id, signs, true});
        if (signs == 0) break;
      }
    }
  }
  return found;
}

// A perfect matching. Equality is transitive, so taking the first partner that fits is enough.
// `of_sets`: a set among the elements is no other than a set.
Finding Comparer::match(const std::vector<Part>& gold, const std::vector<Part>& answer, bool of_sets, int depth) {
  if (gold.size() != answer.size()) {
    return {Outcome::different,
            answer.size() > gold.size() ? "more values than the gold answer" : "fewer values than the gold answer"};
  }
  if (gold.size() > kElementLimit) return {Outcome::over_budget, "more than 100 elements"};
  std::vector<char> taken(answer.size());
  for (const Part& g : gold) {
    Finding worst{Outcome::different, "an element without a partner"};
    bool found = false;
    for (size_t k = 0; k < answer.size() && !found; ++k) {
      if (taken[k]) continue;
      bool braces = (g.kind() == Kind::set) != (answer[k].kind() == Kind::set) && (of_sets || depth > 0);
      if (braces) continue;
      Finding f = compare(g, answer[k], depth + 1);
      found = f.equal();
      if (found) taken[k] = 1;
      if (f.outcome == Outcome::over_budget) worst = f;
    }
    if (!found) return worst;
  }
  return {Outcome::equal, "the same elements"};
}

// A, B and D of ABD or of a list of them, in their order; "" for anything but choices of up to H, each once.
std::string choices_of(const std::vector<Part>& parts) {
  std::string letters;
  for (const Part& part : parts) {
    for (const Part& p : part.kind() == Kind::product ? children_of(part) : std::vector{part}) {
      if (!is_word_like(p.kind())) return "";
      letters += p.text();
    }
  }
  std::sort(letters.begin(), letters.end());
  bool once = std::adjacent_find(letters.begin(), letters.end()) == letters.end();
  return once && letters.find_first_not_of("ABCDEFGH") == std::string::npos ? letters : "";
}

Finding Comparer::collections(Part gold, Part answer, int depth) {
  Finding first{Outcome::different, "a different answer"};
  if (lists_of_other_names(gold, answer)) return {Outcome::different, "a value of another variable"};
  bool several = __builtin_popcount(signs_below(*gold.tree, gold.id)) > 1 ||
                 __builtin_popcount(signs_below(*answer.tree, answer.id)) > 1;
  for (bool independent : {false, true}) {
    auto g = elements(gold, independent), a = elements(answer, independent);
    // a set has each element once
    for (auto* list : {&g, &a}) {
      if ((list == &g ? gold : answer).kind() != Kind::set) continue;
      std::vector<Part> distinct;
      for (const Part& p : *list) {
        bool known = std::any_of(distinct.begin(), distinct.end(),
                                 [&](const Part& q) { return show(p) == show(q) && p.signs == q.signs; });
        if (!known) distinct.push_back(p);
      }
      *list = std::move(distinct);
    }
    std::string choices = g.size() == 1 || a.size() == 1 ? choices_of(g) : "";
    if (choices.size() > 1 && choices.size() == std::max(g.size(), a.size()) && choices == choices_of(a)) {
      return {Outcome::equal, "the same choices"};
    }
    Finding f = match(g, a, gold.kind() == Kind::set || answer.kind() == Kind::set, depth);
    if (f.equal()) return f;
    if (!independent) first = f;
    if (!several) break;
  }
  return first;
}

Finding Comparer::same_order(Part gold, Part answer, int depth) {
  return in_order(children_of(gold), children_of(answer), depth);
}

Finding Comparer::in_order(const std::vector<Part>& gold, const std::vector<Part>& answer, int depth) {
  if (gold.size() != answer.size()) return {Outcome::different, "a different number of components"};
  for (size_t k = 0; k < gold.size(); ++k) {
    Finding f = compare(gold[k], answer[k], depth + 1);
    if (!f.equal()) return f.outcome == Outcome::over_budget ? f : Finding{f.outcome, "a different component"};
  }
  return {Outcome::equal, "the same components"};
}

// 1 : 2 : 3 is 2 : 4 : 6; nullopt for times of day and parts without a value.
std::optional<Finding> Comparer::proportional(Part gold, Part answer) {
  if (!gold.text().empty() || !answer.text().empty()) return std::nullopt;
  int g0 = lower(gold.child(0)), a0 = lower(answer.child(0));
  for (size_t k = 0; k < gold.size(); ++k) {
    int g = lower(gold.child(k)), a = lower(answer.child(k));
    if (g0 < 0 || a0 < 0 || g < 0 || a < 0) return std::nullopt;
    Finding f = equal_nodes(circuit_.mul(g, a0), circuit_.mul(a, g0));
    if (!f.equal()) return f.outcome == Outcome::over_budget ? f : Finding{Outcome::different, "another ratio"};
    if (equal_nodes(a, circuit_.constant(0)).outcome != Outcome::different) return std::nullopt;  // 0 : 0 : 0 is any
  }
  return Finding{Outcome::equal, "the same ratio"};
}

// Same kind, same fields, equal children: for everything that has no value of its own.
Finding Comparer::structure(Part gold, Part answer, int depth) {
  const Node &g = gold.node(), &a = answer.node();
  if (g.kind != a.kind || g.tag != a.tag || g.value != a.value || gold.text() != answer.text() ||
      g.kind == Kind::error) {
    return {Outcome::different, "a different kind of answer"};
  }
  if (g.child_count == 0) {
    return {Outcome::equal, "the same text"};
  }
  return same_order(gold, answer, depth);
}

// Intervals, unions, inequalities; nullopt where other rules decide.
std::optional<Finding> Comparer::sets_of_reals(Part gold, Part answer, int depth) {
  bool real_gold = is_real_set(gold), real_answer = is_real_set(answer);
  if (!real_gold && !real_answer) return std::nullopt;
  if (other_unknown(gold, answer)) return Finding{Outcome::different, "a value of another variable"};
  auto p = pieces(gold), q = pieces(answer);
  // \{1\} \cup \{2\} and x \in \{1, 2\} against 1, 2
  auto finite = [](const std::vector<Piece>& set) {
    return !set.empty() && std::all_of(set.begin(), set.end(), [](const Piece& piece) { return piece.is_point(); });
  };
  if (!p && q && is_list(gold) && finite(*q)) p = points(gold);
  if (!q && p && is_list(answer) && finite(*p)) q = points(answer);
  if (p && q) return real_sets(*p, *q);
  if (!real_gold || !real_answer) return std::nullopt;
  if (gold.kind() == answer.kind()) return structure(gold, answer, depth);
  return Finding{Outcome::different, "a different set"};
}

// (2, 3\%) has one, (2\%, 3\%) two.
static size_t percents_in(Part p) {
  auto parts = children_of(p);
  return static_cast<size_t>(
      std::count_if(parts.begin(), parts.end(), [](Part c) { return c.kind() == Kind::percent; }));
}

// Tuples, rows, columns and matrices; a pair for two values in this order, and the other way round. nullopt: neither.
std::optional<Finding> Comparer::sequences(Part gold, Part answer, int depth) {
  auto ordered = [](Part p) {  // between bars it is a determinant, which is a number
    return p.kind() == Kind::tuple || (p.kind() == Kind::matrix && !p.node().has(Bracket::bar));
  };
  if (ordered(gold) && ordered(answer)) {
    bool matrices = gold.kind() == Kind::matrix && answer.kind() == Kind::matrix;
    if (matrices && gold.node().value != answer.node().value) {
      return Finding{Outcome::different, "a matrix of another shape"};
    }
    auto is_row = [](Part p) {
      return p.kind() == Kind::tuple || p.node().value == 1 || p.node().value == static_cast<int32_t>(p.size());
    };
    bool rows = is_row(gold) && is_row(answer);
    size_t g = percents_in(gold), a = percents_in(answer);
    if (g != a && g + a != gold.size()) return Finding{Outcome::different, "a percent sign at one component"};
    if (!rows && gold.kind() != answer.kind()) return Finding{Outcome::different, "a matrix and a tuple"};
    return same_order(gold, answer, depth);
  }
  auto list_for = [&](Part list, Part sequence) {
    bool plain = list.kind() == Kind::list && list.node().tag <= static_cast<uint8_t>(Connective::conj_and);
    return plain && ordered(sequence) && list.size() == sequence.size() && list.size() > 1 && !ordered(list.child(0));
  };
  if (list_for(answer, gold) || list_for(gold, answer)) return same_order(gold, answer, depth);
  return std::nullopt;
}

// p \land q, written so, of letters and not of relations: no list of them, and no p \lor q. nullopt: neither is.
std::optional<Finding> Comparer::logic(Part gold, Part answer, int depth) {
  auto is_or = [](Part p) { return p.node().has(Connective::conj_or); };
  auto is_and = [](Part p) { return p.node().has(Connective::conj_and); };
  auto has_sign = [](Part p) { return p.kind() == Kind::list && p.node().value == 1; };
  if (!has_sign(gold) && !has_sign(answer)) return std::nullopt;
  if ((is_or(gold) && is_and(answer)) || (is_and(gold) && is_or(answer)))
    return Finding{Outcome::different, "and is not or"};
  auto is_term = [](Part p) { return p.kind() == Kind::symbol || p.kind() == Kind::call || p.kind() == Kind::list; };
  auto of_terms = [&](Part p) {
    auto parts = children_of(p);
    return has_sign(p) && std::all_of(parts.begin(), parts.end(), is_term);
  };
  if (!of_terms(gold) && !of_terms(answer)) return std::nullopt;
  bool both = has_sign(gold) && has_sign(answer);
  return both ? match(children_of(gold), children_of(answer), false, depth)
              : Finding{Outcome::different, "another connective"};
}

Finding Comparer::compare(Part gold, Part answer, int depth) {
  if (depth > kDepthLimit || !budget_.spend(10))
    return {Outcome::over_budget, "the comparison takes more steps than the budget"};
  bool gold_domain = has_domain(gold), answer_domain = has_domain(answer);
  gold = without_domains(gold), answer = without_domains(answer);
  if (answer_domain) gold = family_of(gold);
  if (gold_domain) answer = family_of(answer);
  if (gold.kind() == Kind::error || answer.kind() == Kind::error) return {Outcome::different, "not a readable answer"};
  if (auto decided = logic(gold, answer, depth)) return *decided;
  if (auto decided = by_name(gold, answer, depth)) return *decided;
  if (auto decided = relations(gold, answer, depth)) return *decided;

  Kind g = gold.kind(), a = answer.kind();
  if (gold.is(Function::mod) && answer.is(Function::mod)) {  // residue classes
    Finding same = compare(gold.child(1), answer.child(1), depth + 1);
    return same.equal() ? scalars(gold, answer) : Finding{Outcome::different, "another modulus"};
  }
  if (is_word_like(g) && is_word_like(a) && (g != Kind::symbol || a != Kind::symbol)) {
    bool letters = g != Kind::symbol && a != Kind::symbol && g != a;  // (b) written as a word
    bool same = letters ? lower_case(gold.text()) == lower_case(answer.text()) : gold.text() == answer.text();
    return same ? Finding{Outcome::equal, "the same text"} : Finding{Outcome::different, "a different text"};
  }
  if (auto decided = sets_of_reals(gold, answer, depth)) return *decided;
  bool times = g == Kind::ratio && (gold.node().value == 1 || (a == Kind::ratio && answer.node().value == 1));
  if (times) {  // of day, whose half may be left out
    bool same_half = a == Kind::ratio && (gold.text() == answer.text() || gold.text().empty() || answer.text().empty());
    return same_half ? same_order(gold, answer, depth) : Finding{Outcome::different, "another time"};
  }
  if (g == Kind::ratio && a == Kind::ratio && gold.size() == answer.size() && gold.size() > 2) {
    if (auto same = proportional(gold, answer)) return *same;
  }
  bool open_signs = has_open_signs(gold) || has_open_signs(answer);
  if (!open_signs) {
    if (auto decided = sequences(gold, answer, depth)) return *decided;
  }
  if (holds_a_set(gold, answer) || holds_a_set(answer, gold)) return {Outcome::different, "a set of a set"};
  if (is_list(gold) || is_list(answer) || open_signs) return collections(gold, answer, depth);
  auto to_do = [](Part p) { return p.kind() != Kind::matrix && p.kind() != Kind::tuple && is_matrix_arithmetic(p); };
  if (to_do(gold) || to_do(answer)) return matrices(gold, answer);
  Finding value = scalars(gold, answer);
  if (value.outcome != Outcome::undecided) return value;
  Finding same = structure(gold, answer, depth);
  return same.outcome == Outcome::different && value.reason[0] != 0 ? Finding{Outcome::different, value.reason} : same;
}

Comparison compare_trees(const Tree& gold, const Tree& answer, Budget& budget, const MathOptions& options) {
  if (gold.root() == kNoNode || answer.root() == kNoNode) return {VerdictKind::unparseable, "no answer"};
  Comparer comparer(gold, answer, budget, options);
  Finding f = comparer.compare_up_to_letters();
  switch (f.outcome) {
    case Outcome::equal:
      return {VerdictKind::equal, f.reason};
    case Outcome::over_budget:
      return {VerdictKind::over_budget, f.reason};
    default:
      return {VerdictKind::unequal, f.reason};
  }
}

}  // namespace ucas::math
