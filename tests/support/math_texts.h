// Random mathematics with its meaning known, for properties of the verifier: a value is drawn, then written twice in
// ways that a person would call the same, or once changed. The arithmetic here is its own, so that the verifier's
// faults cannot hide in it. All draws come from rapidcheck.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ucas::math_texts {

int64_t random_int(int64_t low, int64_t high);  // low .. high
bool coin();
template <class T>
const T& pick(const std::vector<T>& from) {
  return from[static_cast<size_t>(random_int(0, static_cast<int64_t>(from.size()) - 1))];
}
template <class T>
void shuffle(std::vector<T>& items) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[static_cast<size_t>(random_int(0, i - 1))]);
}

struct Fraction {
  int64_t above = 0, below = 1;  // lowest terms, below > 0
  bool operator==(const Fraction&) const = default;
};
Fraction fraction(int64_t above, int64_t below);
Fraction operator+(Fraction a, Fraction b);
Fraction operator*(Fraction a, Fraction b);

// Numbers. `exact`: no decimals, whose precision would count.
Fraction draw_fraction();
std::string write(Fraction value, bool exact = false);
// Another number: apart by more than any rounding, or with `exact` perhaps by 1/below only.
Fraction change(Fraction value, bool exact = false);

// a + b sqrt(root), b != 0, root squarefree.
struct Surd {
  Fraction a, b;
  int64_t root = 2;
};
Surd draw_surd();
std::string write(const Surd& value);
Surd change(Surd value);

// Polynomials in x and y with integer coefficients: powers of x and y -> coefficient, none of them 0.
using Polynomial = std::map<std::pair<int, int>, int64_t>;
Polynomial draw_polynomial();  // small, not constant
Polynomial times(const Polynomial& a, const Polynomial& b);
std::string write(const Polynomial& value);                  // terms in any order
std::string write_power(const Polynomial& base, int power);  // (..)^n, (..)(..), expanded
Polynomial change(Polynomial value);

// Plain rewriting that changes nothing: \left( \right), \dfrac, spaces and spacing commands, $..$, braces.
std::string dress(const std::string& text);

// Anything: bytes; pieces of LaTeX in no order.
std::string draw_bytes();
std::string draw_soup();

}  // namespace ucas::math_texts
