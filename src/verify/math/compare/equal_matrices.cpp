// Sums, multiples, products and powers of matrices that were left to do.
#include <algorithm>

#include "verify/math/compare/comparer.h"

namespace ucas::math {

namespace {

constexpr size_t kMatrixCells = 100;  // of one matrix
constexpr int kMatrixPower = 16;

bool is_bar(Part p) { return p.node().has(Bracket::bar); }

// A tuple counts as a column.
bool is_matrix(Part p) { return (p.kind() == Kind::matrix && !is_bar(p)) || p.kind() == Kind::tuple; }

// The exponent of a small natural power, 0 for anything else.
int natural(const CircuitNode& node) {
  bool small = node.denominator == 1 && node.numerator >= 1 && node.numerator <= kMatrixPower;
  return small ? static_cast<int>(node.numerator) : 0;
}

}  // namespace

// Arithmetic with a matrix in it, as far as it reaches without other kinds of answers.
bool is_matrix_arithmetic(Part p) {
  if (is_matrix(p)) return true;
  switch (p.kind()) {
    case Kind::sum:
    case Kind::product:
      for (size_t k = 0; k < p.size(); ++k) {
        if (is_matrix_arithmetic(p.child(k))) return true;
      }
      return false;
    case Kind::negate:
    case Kind::quotient:
    case Kind::power:
      return is_matrix_arithmetic(p.child(0));
    default:
      return false;
  }
}

std::optional<Comparer::Matrix> Comparer::product(const Matrix& a, const Matrix& b) {
  size_t rows = a.rows(), inner = a.columns, columns = b.columns;
  if (b.rows() != inner || rows * columns > kMatrixCells) return std::nullopt;
  if (!budget_.spend(static_cast<int64_t>(10 * rows * inner * columns))) return std::nullopt;
  Matrix out{columns, std::vector<int>(rows * columns)};
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      int sum = circuit_.mul(a.cells[r * inner], b.cells[c]);
      for (size_t k = 1; k < inner; ++k) {
        int term = circuit_.mul(a.cells[r * inner + k], b.cells[k * columns + c]);
        sum = circuit_.add(sum, term);
      }
      out.cells[r * columns + c] = sum;
    }
  }
  return out;
}

// Numbers and matrices multiplied from left to right; a product of 1 x 1 is a number.
std::optional<Comparer::Matrix> Comparer::matrix_product(Part p, int depth) {
  std::optional<Matrix> result;
  int factor = circuit_.constant(1);
  for (size_t k = 0; k < p.size(); ++k) {
    Part part = p.child(k);
    if (!is_matrix_arithmetic(part)) {
      int number = lower(part);
      if (number < 0) return std::nullopt;
      factor = circuit_.mul(factor, number);
      continue;
    }
    auto next = matrix_value(part, depth + 1);
    if (!next) return std::nullopt;
    result = result ? product(*result, *next) : next;
    if (!result) return std::nullopt;
  }
  for (int& cell : result->cells) cell = circuit_.mul(cell, factor);
  return result;
}

std::optional<Comparer::Matrix> Comparer::matrix_sum(Part p, int depth) {
  std::optional<Matrix> total;
  for (size_t k = 0; k < p.size(); ++k) {
    auto next = matrix_value(p.child(k), depth + 1);
    if (!next) return std::nullopt;
    if (!total) {
      total = std::move(next);
      continue;
    }
    if (total->columns != next->columns || total->cells.size() != next->cells.size()) return std::nullopt;
    for (size_t i = 0; i < next->cells.size(); ++i) {
      total->cells[i] = circuit_.add(total->cells[i], next->cells[i]);
    }
  }
  return total;
}

// nullopt: not a matrix, one whose shapes do not fit, or too large a one.
std::optional<Comparer::Matrix> Comparer::matrix_value(Part p, int depth) {
  if (depth > 30 || !budget_.spend(10)) return std::nullopt;
  if (is_matrix(p)) {
    size_t rows = p.kind() == Kind::tuple ? p.size() : static_cast<size_t>(std::max(p.node().value, 1));
    if (p.size() == 0 || p.size() > kMatrixCells || p.size() % rows != 0) return std::nullopt;
    Matrix out{p.size() / rows, {}};
    for (size_t k = 0; k < p.size(); ++k) {
      out.cells.push_back(lower(p.child(k)));
      if (out.cells.back() < 0) return std::nullopt;
    }
    return out;
  }
  if (p.kind() == Kind::sum) return matrix_sum(p, depth);
  if (p.kind() == Kind::product) return is_matrix_arithmetic(p) ? matrix_product(p, depth) : std::nullopt;
  if (p.kind() == Kind::power) return matrix_power(p, depth);
  bool negated = p.kind() == Kind::negate;
  if (!negated && p.kind() != Kind::quotient) return std::nullopt;
  auto of = matrix_value(p.child(0), depth + 1);
  int number = negated ? circuit_.constant(-1) : lower(p.child(1));
  if (!of || number < 0) return std::nullopt;
  for (int& cell : of->cells) cell = circuit_.apply(negated ? CircuitOp::mul : CircuitOp::div, cell, number);
  return of;
}

// M^3, M^T, and M^{-1} of two rows.
std::optional<Comparer::Matrix> Comparer::matrix_power(Part p, int depth) {
  auto of = matrix_value(p.child(0), depth + 1);
  if (!of) return std::nullopt;
  if (p.child(1).kind() == Kind::symbol && p.child(1).text() == "T") {
    Matrix turned{of->rows(), std::vector<int>(of->cells.size())};
    for (size_t k = 0; k < of->cells.size(); ++k) {
      turned.cells[k % of->columns * of->rows() + k / of->columns] = of->cells[k];
    }
    return turned;
  }
  int number = lower(p.child(1));
  if (number < 0) return std::nullopt;
  if (circuit_[number].denominator == 1 && circuit_[number].numerator == -1) return inverse(*of);
  std::optional<Matrix> power = of;
  int exponent = natural(circuit_[number]);
  for (int k = 1; k < exponent && power; ++k) power = product(*power, *of);
  return exponent == 0 ? std::nullopt : power;
}

std::optional<Comparer::Matrix> Comparer::inverse(const Matrix& m) {
  if (m.columns != 2 || m.cells.size() != 4) return std::nullopt;
  auto times = [&](int x, int y) { return circuit_.mul(x, y); };
  int determinant = circuit_.sub(times(m.cells[0], m.cells[3]), times(m.cells[1], m.cells[2]));
  if (equal_nodes(determinant, circuit_.constant(0)).outcome != Outcome::different) return std::nullopt;
  Matrix out{2, {m.cells[3], circuit_.neg(m.cells[1]), circuit_.neg(m.cells[2]), m.cells[0]}};
  for (int& cell : out.cells) cell = circuit_.div(cell, determinant);
  return out;
}

// At least one side is arithmetic that was left to do.
Finding Comparer::matrices(Part gold, Part answer) {
  auto value = [&](Part p) -> std::optional<Matrix> {
    if (is_matrix_arithmetic(p)) return matrix_value(p);
    int number = lower(p);
    return number < 0 ? std::nullopt : std::optional(Matrix{1, {number}});
  };
  auto g = value(gold), a = value(answer);
  if (budget_.steps < 0) return {Outcome::over_budget, "the comparison takes more steps than the budget"};
  if (!g || !a) return {Outcome::different, "a matrix and something else"};
  if (g->columns != a->columns || g->cells.size() != a->cells.size()) {
    return {Outcome::different, "a matrix of another shape"};
  }
  for (size_t k = 0; k < g->cells.size(); ++k) {
    Finding f = equal_nodes(g->cells[k], a->cells[k]);
    if (!f.equal()) return f.outcome == Outcome::over_budget ? f : Finding{Outcome::different, "a different entry"};
  }
  return {Outcome::equal, "the same matrix, worked out"};
}

}  // namespace ucas::math
