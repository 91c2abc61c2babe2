// Exact rational numbers as people write them: 12, -3.50, 1,234, 3/4, \frac{3}{4}, 1\frac{1}{2}, 7e-3, 7 \times 10^{3}.
// Nothing is rounded and nothing large is built: powers of ten stay exponents, and work is counted, never timed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ucas::math {

// Steps that one comparison may take. The same inputs always spend the same.
struct Budget {
  int64_t steps = 1'000'000;
  bool spend(int64_t n) {
    steps -= n;
    return steps >= 0;
  }
};

// (-1)^negative * numerator / denominator * 10^exponent; digits without leading or trailing zeros; zero is "" / "1".
struct Rational {
  bool negative = false;
  std::string numerator;
  std::string denominator = "1";
  int64_t exponent = 0;
};

// A number at the start of normalised text (verify/math/read/normalize.h); `rest` is what follows it.
std::optional<Rational> parse_number(std::string_view text, std::string_view& rest);

// nullopt: the budget is spent.
std::optional<bool> equal_numbers(const Rational& a, const Rational& b, Budget& budget);

// Equal numbers have equal fingerprints (value modulo the prime 2^61 - 1).
uint64_t fingerprint(const Rational& number);

}  // namespace ucas::math
