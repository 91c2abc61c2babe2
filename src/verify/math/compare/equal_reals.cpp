#include <algorithm>

#include "verify/math/compare/comparer.h"

namespace ucas::math {

namespace {

constexpr int kInfinite = Piece::kInfinite;

// +1, -1: plus or minus infinity; 0: neither.
int infinity_sign(Part p) {
  if (p.is(Constant::infinity)) return 1;
  if (p.kind() == Kind::negate) return -infinity_sign(p.child(0));
  return 0;
}

bool is_order_chain(Part p) {
  return p.kind() == Kind::relation && !p.text().empty() && std::all_of(p.text().begin(), p.text().end(), is_order);
}

bool is_membership(Part p) { return p.kind() == Kind::relation && p.text() == "e"; }
bool is_exclusion(Part p) { return p.kind() == Kind::relation && p.text() == "!"; }

Piece between(int low, int high, bool low_closed, bool high_closed) {
  Piece piece;
  piece.low = low, piece.high = high;
  piece.low_closed = low_closed, piece.high_closed = high_closed;
  return piece;
}

Piece point(int node) { return between(node, node, true, true); }

// x, and f(x), whose values are a range.
bool is_unknown(Part p) {
  bool value = p.is(Function::user) && !p.text().starts_with('\\') && !bound_symbols(p).empty();
  return p.kind() == Kind::symbol || value;
}

// The variable that an inequality, or a list of them, is about; "" for none and for sets, whose variable is bound.
std::string unknown_in(Part p) {
  if (p.kind() == Kind::list) {
    for (size_t k = 0; k < p.size(); ++k) {
      if (std::string name = unknown_in(p.child(k)); !name.empty()) return name;
    }
    return {};
  }
  if (p.kind() != Kind::relation) return {};
  std::string_view gaps = p.text();
  bool one_sided = gaps.size() == 1 && (is_order_chain(p) || is_membership(p) || is_exclusion(p) || gaps == "=");
  bool between_ends = gaps.size() == 2 && is_order_chain(p);
  if (!one_sided && !between_ends) return {};
  Part middle = p.child(between_ends ? 1 : is_unknown(p.child(0)) || !is_unknown(p.child(1)) ? 0 : 1);
  if (middle.is(Function::abs)) middle = middle.child(0);
  return is_unknown(middle) ? show(middle) : std::string();
}

}  // namespace

bool Comparer::is_real_set(Part p) const {
  switch (p.kind()) {
    case Kind::interval:
    case Kind::set_builder:
    case Kind::set_operation:
      return true;
    case Kind::constant:
      return p.is(Constant::reals) || p.is(Constant::empty_set) || p.is(Constant::no_answer);
    case Kind::relation:
      return is_order_chain(p) || is_membership(p) || is_exclusion(p);
    case Kind::tuple:
      return is_pair(p) && (infinity_sign(p.child(0)) != 0 || infinity_sign(p.child(1)) != 0);
    case Kind::list:
      for (size_t k = 0; k < p.size(); ++k) {
        if (!is_real_set(p.child(k)) && !(p.child(k).kind() == Kind::relation)) return false;
      }
      return p.size() > 0 &&
             std::any_of(p.tree->children(p.id).begin(), p.tree->children(p.id).end(),
                         [&](NodeId id) { return is_real_set({p.tree, id, p.signs, p.expanded}); }) &&
             p.node().tag >= static_cast<uint8_t>(Connective::conj_and);
    default:
      return false;
  }
}

// -1, 0, 1 as a <, =, > b; nullopt for expressions with variables.
std::optional<int> Comparer::order(int a, int b) {
  if (a == b) return 0;
  int difference = circuit_.sub(a, b);
  if (equal_nodes(a, b).equal()) return 0;
  return Exact(circuit_, seed_, budget_).sign(difference);
}

// x < 3, 3 < x <= 5 for a lone symbol x; |x| < 3.
std::optional<std::vector<Piece>> Comparer::inequality(Part p) {
  std::string_view gaps = p.text();
  size_t n = gaps.size();
  if (n == 0 || n > 2) return std::nullopt;
  Part middle = p.child(n == 2 ? 1 : is_unknown(p.child(0)) || !is_unknown(p.child(1)) ? 0 : 1);
  bool absolute = middle.is(Function::abs) && is_unknown(middle.child(0));
  if (!is_unknown(middle) && !absolute) return std::nullopt;
  Piece piece;
  auto bound = [&](Part side, char gap, bool side_is_left) {
    bool side_below = (gap == '<' || gap == 'l') == side_is_left;  // side < x
    bool closed = gap == 'l' || gap == 'g';
    int sign = infinity_sign(side);
    int node = sign != 0 ? kInfinite : lower(side);
    if (sign == 0 && node < 0) return false;
    if (sign != 0 && (sign > 0) == side_below) return false;
    if (side_below) {
      piece.low = node, piece.low_closed = closed && sign == 0, piece.low_part = side;
    } else {
      piece.high = node, piece.high_closed = closed && sign == 0, piece.high_part = side;
    }
    return true;
  };
  if (n == 2) {
    bool rising = (gaps[0] == '<' || gaps[0] == 'l') && (gaps[1] == '<' || gaps[1] == 'l');
    bool falling = (gaps[0] == '>' || gaps[0] == 'g') && (gaps[1] == '>' || gaps[1] == 'g');
    if (!rising && !falling) return std::nullopt;
    if (!bound(p.child(0), gaps[0], true) || !bound(p.child(2), gaps[1], false)) return std::nullopt;
  } else if (middle.id == p.child(0).id) {
    if (!bound(p.child(1), gaps[0], false)) return std::nullopt;
  } else if (!bound(p.child(0), gaps[0], true)) {
    return std::nullopt;
  }
  if (is_reversed(piece)) return std::nullopt;
  if (!absolute) return std::vector{piece};
  // |x| < c, |x| > c, a < |x| < b
  std::vector<Piece> both;
  auto negative = [&](int node) { return node == kInfinite ? kInfinite : circuit_.neg(node); };
  if (piece.low == kInfinite) {
    if (piece.high == kInfinite) return std::nullopt;
    return std::vector{between(negative(piece.high), piece.high, piece.high_closed, piece.high_closed)};
  }
  both.push_back(between(negative(piece.high), negative(piece.low), piece.high_closed, piece.low_closed));
  both.push_back(piece);
  return both;
}

// The elements of a set or list as points: 1, 2 and \{x_1 = 1, x_2 = 2\}.
std::optional<std::vector<Piece>> Comparer::points(Part p) {
  std::vector<Piece> found;
  for (size_t k = 0; k < p.size(); ++k) {
    int node = lower(strip_name(p.child(k)).value);
    if (node < 0) return std::nullopt;
    found.push_back(point(node));
  }
  return found;
}

// [a, b), and a pair (a, b).
std::optional<std::vector<Piece>> Comparer::interval(Part p) {
  Piece piece;
  int below = infinity_sign(p.child(0)), above = infinity_sign(p.child(1));
  if (below > 0 || above < 0) return std::nullopt;
  piece.low = below != 0 ? kInfinite : lower(p.child(0));
  piece.high = above != 0 ? kInfinite : lower(p.child(1));
  if ((below == 0 && piece.low < 0) || (above == 0 && piece.high < 0)) return std::nullopt;
  uint8_t closed = p.kind() == Kind::interval ? p.node().tag : 0;
  piece.low_part = p.child(0);
  piece.high_part = p.child(1);
  piece.low_closed = (closed & kLeftClosed) != 0 && below == 0;
  piece.high_closed = (closed & kRightClosed) != 0 && above == 0;
  if (is_reversed(piece)) return std::nullopt;
  return std::vector{piece};
}

// 1 < x, x \in A, x \ne 2; x = 3 inside something larger.
std::optional<std::vector<Piece>> Comparer::relation_pieces(Part p, int depth) {
  if (is_order_chain(p)) return inequality(p);
  if (!is_unknown(p.child(0))) return std::nullopt;
  if (is_membership(p)) return pieces(p.child(1), depth + 1);
  if (p.text() == "=" && depth > 0) {
    int node = lower(p.child(1));
    return node < 0 ? std::nullopt : std::optional(std::vector{point(node)});
  }
  if (!is_exclusion(p)) return std::nullopt;
  Part values = p.child(1);
  if (is_list(values) && values.size() != 1) return std::nullopt;
  int node = lower(is_list(values) ? values.child(0) : values);
  if (node < 0) return std::nullopt;
  return std::vector{between(kInfinite, node, false, false), between(node, kInfinite, false, false)};
}

// What two sets share.
std::optional<std::vector<Piece>> Comparer::shared(const std::vector<Piece>& a, const std::vector<Piece>& b) {
  if (a.size() * b.size() > 400) return std::nullopt;
  std::vector<Piece> out;
  for (const Piece& x : a) {
    for (const Piece& y : b) {
      auto low = y.low == kInfinite ? std::optional(1) : x.low == kInfinite ? std::optional(-1) : order(x.low, y.low);
      auto high = y.high == kInfinite   ? std::optional(-1)
                  : x.high == kInfinite ? std::optional(1)
                                        : order(x.high, y.high);
      if (!low || !high) return std::nullopt;
      Piece both = x;
      if (*low < 0) both.low = y.low, both.low_closed = y.low_closed, both.low_part = y.low_part;
      if (*low == 0) both.low_closed &= y.low_closed;
      if (*high > 0) both.high = y.high, both.high_closed = y.high_closed, both.high_part = y.high_part;
      if (*high == 0) both.high_closed &= y.high_closed;
      if (!is_reversed(both)) out.push_back(both);
    }
  }
  return out;
}

// x < 1 or x > 2; x > 1 and x < 2, unless nothing is both, where "and" means "or".
std::optional<std::vector<Piece>> Comparer::alternatives(Part p, int depth) {
  bool either = p.node().has(Connective::conj_or);
  if (!either && !p.node().has(Connective::conj_and)) return std::nullopt;
  std::vector<Piece> all;
  for (size_t k = 0; k < p.size(); ++k) {
    std::string unknown = unknown_in(p.child(k));
    if (!unknown.empty() && unknown != unknown_in(p)) return std::nullopt;  // x < 1 or w > 2
    Kind kind = p.child(k).kind();
    if (kind == Kind::constant || kind == Kind::set) return std::nullopt;  // "nothing, or x > 3" hedges
    auto part = pieces(p.child(k), depth + 1);
    if (part && !either && k > 0) part = shared(all, *part);
    if (!part) return std::nullopt;
    if (!either) all.clear();
    all.insert(all.end(), part->begin(), part->end());
  }
  return all.empty() ? std::nullopt : std::optional(all);
}

// Intervals without single points.
std::optional<std::vector<Piece>> Comparer::without_points(std::vector<Piece> from, const std::vector<Piece>& holes) {
  if (from.size() > 50 || holes.size() > 50) return std::nullopt;
  for (const Piece& hole : holes) {
    if (hole.low < 0 || hole.low != hole.high) return std::nullopt;
    std::vector<Piece> cut;
    for (const Piece& piece : from) {
      auto above = piece.low == kInfinite ? std::optional<int>(1) : order(hole.low, piece.low);
      auto below = piece.high == kInfinite ? std::optional<int>(-1) : order(hole.low, piece.high);
      if (!above || !below) return std::nullopt;
      if (*above < 0 || *below > 0) {
        cut.push_back(piece);
        continue;
      }
      if (*above > 0) cut.push_back(between(piece.low, hole.low, piece.low_closed, false));
      if (*below < 0) cut.push_back(between(hole.low, piece.high, false, piece.high_closed));
    }
    from = std::move(cut);
  }
  return from;
}

// Unions, and differences with sets of points.
std::optional<std::vector<Piece>> Comparer::operation_pieces(Part p, int depth) {
  if (p.size() < 2) return std::nullopt;
  auto first = pieces(p.child(0), depth + 1);
  for (size_t k = 1; k < p.size() && first; ++k) {
    auto next = pieces(p.child(k), depth + 1);
    if (!next) return std::nullopt;
    if (p.node().tag == static_cast<uint8_t>(SetOperation::unite)) {
      first->insert(first->end(), next->begin(), next->end());
    } else if (p.node().tag == static_cast<uint8_t>(SetOperation::subtract)) {
      first = without_points(std::move(*first), *next);
    } else {
      first = shared(*first, *next);
    }
  }
  return first;
}

// The set of reals that a part describes; nullopt where it is none.
std::optional<std::vector<Piece>> Comparer::pieces(Part p, int depth) {
  using Pieces = std::vector<Piece>;
  if (depth > 30 || has_open_signs(p)) return std::nullopt;
  switch (p.kind()) {
    case Kind::constant:
      if (p.is(Constant::reals)) return Pieces{Piece{}};
      if (p.is(Constant::empty_set) || p.is(Constant::no_answer)) return Pieces{};
      return std::nullopt;
    case Kind::tuple:
      return is_pair(p) ? interval(p) : std::nullopt;
    case Kind::interval:
      return interval(p);
    case Kind::set:
      return points(p);
    case Kind::set_builder: {
      if (p.size() != 2) return std::nullopt;
      Part element = is_membership(p.child(0)) ? p.child(0).child(0) : p.child(0);
      std::string unknown = unknown_in(p.child(1));
      bool named = is_unknown(element) && (unknown.empty() || unknown == element.text());
      return named ? pieces(p.child(1), depth + 1) : std::nullopt;
    }
    case Kind::relation:
      return relation_pieces(p, depth);
    case Kind::list:
      return alternatives(p, depth);
    case Kind::set_operation:
      return operation_pieces(p, depth);
    default:
      return std::nullopt;
  }
}

// From 5 to -10, or from 5 to 5 without it, there is no interval: neither the empty set nor any other.
bool Comparer::is_reversed(const Piece& piece) {
  if (piece.low == kInfinite || piece.high == kInfinite) return false;
  std::optional<int> gap = order(piece.low, piece.high);
  return gap == 1 || (gap == 0 && !(piece.low_closed && piece.high_closed));
}

// The same in the letters of the gold answer.
std::string Comparer::unknown_of(Part p) const {
  std::string name = unknown_in(p);
  if (p.tree == &answer_) {
    for (const Renaming& r : renamed_) {
      if (r.from == name) return r.to;
    }
  }
  return name;
}

// Sorted, disjoint and as few as possible; false where ends cannot be ordered.
bool Comparer::normalize(std::vector<Piece>& pieces) {
  if (pieces.size() > 60) return false;
  std::vector<Piece> kept;
  for (const Piece& piece : pieces) {
    if (piece.low == kInfinite || piece.high == kInfinite) {
      kept.push_back(piece);
      continue;
    }
    auto gap = order(piece.low, piece.high);
    if (!gap) return false;
    if (*gap < 0 || (*gap == 0 && piece.low_closed && piece.high_closed)) kept.push_back(piece);
  }
  bool ordered = true;
  auto before = [&](const Piece& x, const Piece& y) {
    if (x.low == kInfinite || y.low == kInfinite) return x.low == kInfinite && y.low != kInfinite;
    auto gap = order(x.low, y.low);
    if (!gap) ordered = false;
    return gap && (*gap < 0 || (*gap == 0 && x.low_closed && !y.low_closed));
  };
  for (size_t k = 1; k < kept.size(); ++k) {  // insertion: a comparison that fails cannot confuse it
    for (size_t j = k; j > 0 && before(kept[j], kept[j - 1]); --j) std::swap(kept[j], kept[j - 1]);
  }
  if (!ordered) return false;
  pieces.clear();
  for (const Piece& piece : kept) {
    if (pieces.empty()) {
      pieces.push_back(piece);
      continue;
    }
    Piece& last = pieces.back();
    if (last.high == kInfinite) continue;
    auto gap = piece.low == kInfinite ? std::optional<int>(-1) : order(piece.low, last.high);
    if (!gap) return false;
    if (*gap > 0 || (*gap == 0 && !piece.low_closed && !last.high_closed)) {
      pieces.push_back(piece);
      continue;
    }
    auto further = piece.high == kInfinite ? std::optional<int>(1) : order(piece.high, last.high);
    if (!further) return false;
    if (*further > 0) {
      last.high = piece.high;
      last.high_closed = piece.high_closed;
    } else if (*further == 0) {
      last.high_closed |= piece.high_closed;
    }
  }
  return true;
}

Finding Comparer::real_sets(const std::vector<Piece>& gold, const std::vector<Piece>& answer) {
  auto same_end = [&](int g, int a, Part gold_part, Part answer_part) {
    if (g == a) return true;
    if (g == kInfinite || a == kInfinite) return false;
    // by the rules for numbers, rounded ones too, where both ends are there as written
    if (gold_part.id != kNoNode && answer_part.id != kNoNode)
      return scalars(gold_part, answer_part).outcome == Outcome::equal;
    return equal_nodes(g, a).equal();
  };
  auto same = [&](const Piece& g, const Piece& a) {
    return g.low_closed == a.low_closed && g.high_closed == a.high_closed &&
           same_end(g.low, a.low, g.low_part, a.low_part) && same_end(g.high, a.high, g.high_part, a.high_part);
  };
  auto matched = [&](const std::vector<Piece>& g, const std::vector<Piece>& a) {
    if (g.size() != a.size()) return false;
    std::vector<char> taken(a.size());
    for (const Piece& piece : g) {
      size_t k = 0;
      while (k < a.size() && (taken[k] || !same(piece, a[k]))) ++k;
      if (k == a.size()) return false;
      taken[k] = 1;
    }
    return true;
  };
  if (gold.size() > 60 || answer.size() > 60) return {Outcome::over_budget, "more than 60 intervals"};
  if (matched(gold, answer)) return {Outcome::equal, "the same set"};
  auto g = gold, a = answer;
  if (normalize(g) && normalize(a) && matched(g, a)) return {Outcome::equal, "the same set"};
  return {Outcome::different, "a different set"};
}

}  // namespace ucas::math
