// The state of one comparison and its rules, spread over equal.cpp (what is compared with what), equal_scalars.cpp
// (numbers, decimals, percent, units), equal_reals.cpp (sets of reals) and equal_relations.cpp (equations, names).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verify/math/compare/compare.h"
#include "verify/math/exact/exact.h"

namespace ucas::math {

// A part of one of the two answers, with the signs that its \pm take.
struct Part {
  const Tree* tree = nullptr;
  NodeId id = kNoNode;
  uint32_t signs = 0;
  bool expanded = false;  // the signs have been chosen

  const Node& node() const { return (*tree)[id]; }
  Kind kind() const { return node().kind; }
  size_t size() const { return tree->children(id).size(); }
  Part child(size_t k) const { return {tree, tree->child(id, k), signs, expanded}; }
  std::string_view text() const { return tree->text(id); }
  bool is(Constant c) const { return node().is(c); }
  bool is(Function f) const { return node().is(f); }
};

enum class Outcome : uint8_t { different, equal, undecided, over_budget };

struct Finding {
  Outcome outcome = Outcome::different;
  const char* reason = "a different answer";
  bool equal() const { return outcome == Outcome::equal; }
};

// An interval of the real line, or a point. Ends are circuit nodes; kInfinite for none.
struct Piece {
  static constexpr int kInfinite = -1;
  int low = kInfinite, high = kInfinite;
  bool low_closed = false, high_closed = false;
  Part low_part, high_part;  // the ends as written, id kNoNode where they were computed
  bool is_point() const { return low != kInfinite && low == high; }
};

struct Named {
  std::string name;     // "" for none
  Part value, of = {};  // `of`: the name, id kNoNode for none
};

// A value of a list, and what the list says it is.
struct NamedPart {
  std::string name;
  Part of, value, whole;  // x = 1 is 1; 3 red is 3
  bool in_words = false;  // other words may say the same
};

class Comparer {
 public:
  Comparer(const Tree& gold, const Tree& answer, Budget& budget, const MathOptions& options);
  Finding compare(Part gold, Part answer, int depth = 0);
  // The whole of both, with letters for any constant or integer renamed.
  Finding compare_up_to_letters();
  Part gold() const { return {&gold_, gold_.root()}; }
  Part answer() const { return {&answer_, answer_.root()}; }

 private:
  // equal.cpp
  Finding same_order(Part gold, Part answer, int depth);
  Finding in_order(const std::vector<Part>& gold, const std::vector<Part>& answer, int depth);
  Finding collections(Part gold, Part answer, int depth);
  std::optional<Finding> logic(Part gold, Part answer, int depth);
  Finding match(const std::vector<Part>& gold, const std::vector<Part>& answer, bool of_sets, int depth);
  std::optional<Finding> proportional(Part gold, Part answer);
  std::optional<Finding> sets_of_reals(Part gold, Part answer, int depth);
  std::optional<Finding> sequences(Part gold, Part answer, int depth);
  Finding structure(Part gold, Part answer, int depth);
  std::vector<Part> elements(Part part, bool independent);

  // equal_scalars.cpp
  Finding scalars(Part gold, Part answer);
  Finding measured_sums(Part gold, Part answer, Part gold_unit, Part answer_unit);
  Finding angles(Part gold, Part answer);
  Finding in_radians(int degrees, int radians);
  Finding values(Part gold, Part answer);
  Finding decimals(Part gold, Part answer, int g, int a);
  bool within(int g, int a, int64_t exponent, bool half);

  // equal_relations.cpp
  std::optional<Finding> relations(Part gold, Part answer, int depth);
  Finding equations(Part gold, Part answer, int depth);
  Finding solved(Part equation, std::string_view symbol, Part value);
  Named strip_name(Part part);
  std::optional<Part> restated(Part chain);
  std::optional<Part> restated_matrix(Part chain);
  Finding compare_renamed(Part gold, Part answer, const std::vector<std::string>& from,
                          const std::vector<std::string>& to, int depth);
  bool roughly_equal(Part exact, Part rounded);
  static std::string segment_of(Part name);
  bool other_name(Part gold, Part answer);

  // equal_letters.cpp
  std::optional<Finding> by_name(Part gold, Part answer, int depth);
  std::vector<NamedPart> named_parts(Part part);
  bool lists_of_other_names(Part gold, Part answer);

  // equal_matrices.cpp
  struct Matrix {
    size_t columns = 1;
    std::vector<int> cells;  // circuit nodes, row by row
    size_t rows() const { return cells.size() / columns; }
  };
  Finding matrices(Part gold, Part answer);
  std::optional<Matrix> matrix_value(Part part, int depth = 0);
  std::optional<Matrix> matrix_product(Part part, int depth);
  std::optional<Matrix> matrix_sum(Part part, int depth);
  std::optional<Matrix> matrix_power(Part part, int depth);
  std::optional<Matrix> inverse(const Matrix& matrix);
  std::optional<Matrix> product(const Matrix& a, const Matrix& b);

  // equal_reals.cpp
  bool is_real_set(Part part) const;
  std::optional<std::vector<Piece>> pieces(Part part, int depth = 0);
  std::optional<std::vector<Piece>> inequality(Part part);
  std::optional<std::vector<Piece>> points(Part part);
  std::optional<std::vector<Piece>> interval(Part part);
  std::optional<std::vector<Piece>> relation_pieces(Part part, int depth);
  std::optional<std::vector<Piece>> shared(const std::vector<Piece>& a, const std::vector<Piece>& b);
  std::optional<std::vector<Piece>> alternatives(Part part, int depth);
  std::optional<std::vector<Piece>> operation_pieces(Part part, int depth);
  std::optional<std::vector<Piece>> without_points(std::vector<Piece> from, const std::vector<Piece>& holes);
  Finding real_sets(const std::vector<Piece>& gold, const std::vector<Piece>& answer);
  bool is_reversed(const Piece& piece);
  bool normalize(std::vector<Piece>& pieces);
  std::string unknown_of(Part part) const;
  bool other_unknown(Part gold, Part answer) const;
  std::optional<int> order(int a, int b);

  int lower(Part part);
  Finding equal_nodes(int g, int a);
  // equal_letters.cpp
  std::vector<std::vector<Renaming>> renamings() const;
  bool domains_differ() const;
  Finding finding(const Decision& decision);

  const Tree& gold_;
  const Tree& answer_;
  Budget& budget_;
  MathOptions options_;
  uint64_t seed_ = 0;
  Circuit circuit_;
  std::vector<Renaming> renamed_;  // of the answer's symbols
};

// < > and their like, in the text of a relation.
inline bool is_order(char c) { return c == '<' || c == '>' || c == 'l' || c == 'g'; }
bool is_name(Part part);
bool is_matrix_arithmetic(Part part);
bool is_list(Part part);
// A \pm below whose sign has not been chosen.
bool has_open_signs(Part part);
// "(1, 2)" may be a pair or an interval.
bool is_pair(Part part);
std::string show(Part part);
std::vector<Part> children_of(Part part);
// "n \in \mathbb{N}": where a letter of the answer comes from, not an answer.
bool is_domain(Part part);
// A list of one answer and the domains of its letters is that answer.
Part without_domains(Part part);
// x and y of f(x, y); none for anything else.
std::vector<std::string> bound_symbols(Part part);

}  // namespace ucas::math
