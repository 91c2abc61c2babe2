// Lists whose values have names: "Alice: 3, Bob: 4", "x = 1, y = 2", "3 red, 4 blue", (x, y) = (1, 2). A value is that
// of its name; where the other side has no names, the order counts.
#include <algorithm>

#include "base/str.h"
#include "verify/math/compare/comparer.h"
#include "verify/math/read/letters.h"

namespace ucas::math {

namespace {

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
