#include "verify/math/exact/exact.h"

#include <algorithm>
#include <vector>

#include "base/str.h"
#include "verify/math/read/letters.h"

namespace ucas::math {

namespace {

constexpr int64_t kExponentLimit = 1'000'000'000;
constexpr uint64_t kLimb = 1'000'000'000'000'000'000;  // 10^18
constexpr size_t kLimbDigits = 18;

std::string_view without_spaces_before(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

void skip_spaces(std::string_view& text) { text = without_spaces_before(text); }

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_sign(std::string_view& text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
    skip_spaces(text);
  }
  return negative;
}

// Leading zeros go, trailing zeros become powers of ten; returns how many went at the end.
int64_t strip_zeros(std::string& digits) {
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  size_t kept = digits.find_last_not_of('0');
  kept = kept == std::string::npos ? 0 : kept + 1;
  auto gone = static_cast<int64_t>(digits.size() - kept);
  digits.resize(kept);
  return gone;
}

struct Decimal {
  std::string digits;  // all of them, the point left out
  int64_t places = 0;  // digits after the point
  bool whole = true;   // no point was written
};

// 12   1,234,567   12.5   .5   5.   A comma counts only where it splits the whole part into groups of three.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal d;
  size_t i = 0;
  while (i < text.size() && is_digit(text[i])) ++i;
  d.digits = text.substr(0, i);
  auto three_digits = [&](size_t at) {
    for (size_t k = at; k < at + 3; ++k) {
      if (k >= text.size() || !is_digit(text[k])) return false;
    }
    return at + 3 >= text.size() || !is_digit(text[at + 3]);
  };
  if (i >= 1 && i <= 3 && text[0] != '0') {
    while (i < text.size() && text[i] == ',' && three_digits(i + 1)) {
      d.digits += text.substr(i + 1, 3);
      i += 4;
    }
  }
  if (i < text.size() && text[i] == '.') {
    size_t begin = ++i;
    while (i < text.size() && is_digit(text[i])) ++i;
    d.digits += text.substr(begin, i - begin);
    d.places = static_cast<int64_t>(i - begin);
    d.whole = false;
  }
  if (d.digits.empty()) return std::nullopt;
  text.remove_prefix(i);
  return d;
}

Rational ratio(bool negative, const Decimal& over, const Decimal& under) {
  Rational r;
  r.numerator = over.digits;
  r.denominator = under.digits;
  r.exponent = strip_zeros(r.numerator) - over.places + under.places;
  r.exponent -= strip_zeros(r.denominator);
  r.negative = negative && !r.numerator.empty();
  if (r.numerator.empty()) r = Rational{};
  return r;
}

const Decimal kOne{"1", 0, true};

bool is_zero(const Decimal& d) { return d.digits.find_first_not_of('0') == std::string::npos; }

// One argument of \frac: {12}, {-3}, or a single digit.
struct Signed {
  bool negative = false;
  Decimal value;
};
std::optional<Signed> take_argument(std::string_view& text) {
  skip_spaces(text);
  if (!text.empty() && is_digit(text[0])) {
    Signed digit{false, Decimal{std::string(1, text[0]), 0, true}};
    text.remove_prefix(1);
    return digit;
  }
  if (!take(text, "{")) return std::nullopt;
  skip_spaces(text);
  Signed s;
  s.negative = take_sign(text);
  auto value = take_decimal(text);
  if (!value) return std::nullopt;
  s.value = std::move(*value);
  skip_spaces(text);
  if (!take(text, "}")) return std::nullopt;
  return s;
}

struct Fraction {
  bool negative = false;
  Decimal over, under;
};
std::optional<Fraction> take_frac(std::string_view& text) {
  std::string_view at = text;
  if (!take(at, "\\frac")) return std::nullopt;
  auto over = take_argument(at);
  if (!over) return std::nullopt;
  auto under = take_argument(at);
  if (!under || is_zero(under->value)) return std::nullopt;
  text = at;
  return Fraction{over->negative != under->negative, std::move(over->value), std::move(under->value)};
}

// 3/4 after its numerator was read: "/4", "/ -4".
std::optional<Fraction> take_slash(std::string_view& text, const Decimal& over) {
  std::string_view at = without_spaces_before(text);
  if (!take(at, "/")) return std::nullopt;
  skip_spaces(at);
  bool negative = take_sign(at);
  auto under = take_decimal(at);
  if (!under || is_zero(*under)) return std::nullopt;
  text = at;
  return Fraction{negative, over, std::move(*under)};
}

// w + n/d, n < d, for short whole numbers; longer ones are no mixed numbers.
std::optional<Rational> mixed(bool negative, const Decimal& whole, const Fraction& part) {
  auto value = [](const Decimal& d) -> std::optional<uint64_t> {
    if (!d.whole || d.digits.size() > 15) return std::nullopt;
    uint64_t n = 0;
    for (char c : d.digits) n = 10 * n + static_cast<uint64_t>(c - '0');
    return n;
  };
  auto w = value(whole), n = value(part.over), d = value(part.under);
  if (!w || !n || !d || part.negative || *n >= *d) return std::nullopt;
  unsigned __int128 total = static_cast<unsigned __int128>(*w) * *d + *n;
  Decimal over;
  for (; total > 0; total /= 10)
    over.digits.insert(over.digits.begin(), static_cast<char>('0' + static_cast<int>(total % 10)));
  return ratio(negative, over, part.under);
}

std::optional<int64_t> take_exponent(std::string_view& text) {
  std::string_view at = text;
  bool braces = take(at, "{");
  bool negative = take_sign(at);
  int64_t value = 0;
  size_t digits = 0;
  for (; digits < at.size() && is_digit(at[digits]); ++digits) {
    value = std::min<int64_t>(10 * value + (at[digits] - '0'), kExponentLimit + 1);
  }
  if (digits == 0 || value > kExponentLimit) return std::nullopt;
  at.remove_prefix(digits);
  if (braces && !take(at, "}")) return std::nullopt;
  text = at;
  return negative ? -value : value;
}

// The power of ten after a decimal: e5, E-3, \times 10^{4}, * 10^4; 0 when there is none.
int64_t take_power(std::string_view& text) {
  std::string_view at = text;
  bool found = (take(at, "e") || take(at, "E")) && !at.empty() && at[0] != '{';
  if (!found) {
    at = without_spaces_before(text);
    found = take(at, "\\times") || take(at, "\\cdot") || take(at, "*") || take(at, "x");
    skip_spaces(at);
    found = found && take(at, "10^");
  }
  if (!found) return 0;
  auto power = take_exponent(at);
  if (!power) return 0;
  text = at;
  return *power;
}

// 10^{5} after its 10 was read.
std::optional<int64_t> take_power_of_ten(const Decimal& base, std::string_view& text) {
  std::string_view at = text;
  if (base.digits != "10" || !base.whole || !take(at, "^")) return std::nullopt;
  auto power = take_exponent(at);
  if (power) text = at;
  return power;
}

std::vector<uint64_t> limbs_of(const std::string& digits) {
  std::vector<uint64_t> limbs;
  for (size_t end = digits.size(); end > 0;) {
    size_t begin = end > kLimbDigits ? end - kLimbDigits : 0;
    uint64_t limb = 0;
    for (size_t i = begin; i < end; ++i) limb = 10 * limb + static_cast<uint64_t>(digits[i] - '0');
    limbs.push_back(limb);
    end = begin;
  }
  return limbs;
}

std::string digits_of(const std::vector<uint64_t>& limbs) {
  std::string digits;
  for (size_t i = limbs.size(); i-- > 0;) {
    std::string limb = str(limbs[i]);
    if (!digits.empty()) digits.append(kLimbDigits - limb.size(), '0');
    if (!digits.empty() || limbs[i] != 0) digits += limb;
  }
  return digits;
}

std::optional<std::string> product(const std::string& a, const std::string& b, Budget& budget) {
  if (a == "1") return b;
  if (b == "1") return a;
  std::vector<uint64_t> x = limbs_of(a), y = limbs_of(b);
  if (!budget.spend(static_cast<int64_t>(x.size() * y.size() + x.size() + y.size()))) return std::nullopt;
  std::vector<uint64_t> z(x.size() + y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < y.size(); ++j) {
      unsigned __int128 sum = static_cast<unsigned __int128>(x[i]) * y[j] + z[i + j] + carry;
      z[i + j] = static_cast<uint64_t>(sum % kLimb);
      carry = static_cast<uint64_t>(sum / kLimb);
    }
    z[i + y.size()] += carry;
  }
  return digits_of(z);
}

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

uint64_t multiply_mod(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % kPrime);
}
uint64_t power_mod(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base = multiply_mod(base, base)) {
    if (exponent & 1) result = multiply_mod(result, base);
  }
  return result;
}
uint64_t digits_mod(const std::string& digits) {
  uint64_t value = 0;
  for (char c : digits) value = (multiply_mod(value, 10) + static_cast<uint64_t>(c - '0')) % kPrime;
  return value;
}

}  // namespace

std::optional<Rational> parse_number(std::string_view text, std::string_view& rest) {
  skip_spaces(text);
  bool negative = take_sign(text);
  std::optional<Rational> number;
  if (auto fraction = take_frac(text)) {
    number = ratio(negative != fraction->negative, fraction->over, fraction->under);
  } else if (auto decimal = take_decimal(text)) {
    std::string_view after = without_spaces_before(text);
    bool space = after.size() < text.size();
    if (auto slash = take_slash(text, *decimal)) {
      number = ratio(negative != slash->negative, slash->over, slash->under);
    } else if (auto frac = take_frac(after)) {
      number = mixed(negative, *decimal, *frac);
      text = after;
    } else if (std::optional<Decimal> over = space ? take_decimal(after) : std::nullopt) {  // 1 1/2
      auto part = take_slash(after, *over);
      if (!part) return std::nullopt;
      number = mixed(negative, *decimal, *part);
      text = after;
    } else if (auto power = take_power_of_ten(*decimal, text)) {
      number = ratio(negative, kOne, kOne);
      number->exponent += *power;
    } else {
      number = ratio(negative, *decimal, kOne);
      int64_t exponent = take_power(text);
      if (!number->numerator.empty()) number->exponent += exponent;
    }
  }
  if (number) rest = text;
  return number;
}

std::optional<bool> equal_numbers(const Rational& a, const Rational& b, Budget& budget) {
  if (a.numerator.empty() || b.numerator.empty()) return a.numerator.empty() && b.numerator.empty();
  if (a.negative != b.negative) return false;
  auto left = product(a.numerator, b.denominator, budget);
  auto right = product(b.numerator, a.denominator, budget);
  if (!left || !right) return std::nullopt;
  int64_t left_zeros = strip_zeros(*left), right_zeros = strip_zeros(*right);
  return *left == *right && left_zeros + a.exponent == right_zeros + b.exponent;
}

uint64_t fingerprint(const Rational& number) {
  if (number.numerator.empty()) return 0;
  int64_t period = static_cast<int64_t>(kPrime - 1);
  auto exponent = static_cast<uint64_t>((number.exponent % period + period) % period);
  uint64_t value = multiply_mod(digits_mod(number.numerator), power_mod(10, exponent));
  uint64_t under = digits_mod(number.denominator);
  // A denominator that the prime divides has no inverse; such numbers share one bucket.
  value = under == 0 ? 1 : multiply_mod(value, power_mod(under, kPrime - 2));
  return number.negative && value != 0 ? kPrime - value : value;
}

}  // namespace ucas::math
