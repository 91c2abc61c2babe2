#include "support/math_texts.h"

#include <rapidcheck.h>

#include <numeric>

#include "base/str.h"

namespace ucas::math_texts {

namespace {

std::string with_separators(const std::string& digits, const std::string& separator) {
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += separator;
    text += digits[i];
  }
  return text;
}

std::string write_integer(int64_t value) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  if (digits.size() > 3 && coin()) digits = with_separators(digits, pick<std::string>({",", "{,}", "\\,", ",\\!"}));
  return (value < 0 ? "-" : "") + digits;
}

// "" where the decimals do not end early.
std::string write_decimal(Fraction value) {
  int64_t scale = 1;
  int places = 0;
  while (scale % value.below != 0 && places < 7) {
    scale *= 10;
    ++places;
  }
  if (scale % value.below != 0) return "";
  int64_t scaled = value.above * (scale / value.below);
  std::string digits = std::to_string(scaled < 0 ? -scaled : scaled);
  if (digits.size() <= static_cast<size_t>(places))
    digits.insert(0, static_cast<size_t>(places) + 1 - digits.size(), '0');
  std::string whole = digits.substr(0, digits.size() - static_cast<size_t>(places));
  std::string decimals = digits.substr(whole.size()) + std::string(static_cast<size_t>(random_int(0, 2)), '0');
  if (whole == "0" && !decimals.empty() && coin()) whole.clear();
  return str(scaled < 0 ? "-" : "", whole, decimals.empty() ? "" : ".", decimals);
}

std::string write_quotient(const std::string& above, const std::string& below) {
  if (above.size() == 1 && below.size() == 1 && coin())
    return str(pick<std::string>({"\\frac", "\\dfrac"}), above, below);
  return str(pick<std::string>({"\\frac", "\\dfrac", "\\tfrac", "\\cfrac"}), "{", above, "}{", below, "}");
}

std::string write_term(int64_t coefficient, std::pair<int, int> powers) {
  std::vector<std::string> factors;
  auto power = [](const char* name, int exponent) {
    if (exponent == 1) return std::string(name);
    return coin() ? str(name, "^", exponent) : str(name, "^{", exponent, "}");
  };
  if (powers.first > 0) factors.push_back(power("x", powers.first));
  if (powers.second > 0) factors.push_back(power("y", powers.second));
  shuffle(factors);
  std::string joint = pick<std::string>({"", " ", " \\cdot "});
  std::string text = coefficient == 1 && !factors.empty() ? "" : std::to_string(coefficient);
  for (const std::string& factor : factors) text += (text.empty() ? "" : joint) + factor;
  return text;
}

void add(Polynomial& sum, std::pair<int, int> powers, int64_t coefficient) {
  int64_t& total = sum[powers];
  total += coefficient;
  if (total == 0) sum.erase(powers);
}

}  // namespace

int64_t random_int(int64_t low, int64_t high) {
  return *rc::gen::resize(100, rc::gen::inRange<int64_t>(low, high + 1));
}
bool coin() { return random_int(0, 1) == 1; }

Fraction fraction(int64_t above, int64_t below) {
  int64_t common = std::gcd(above, below) * (below < 0 ? -1 : 1);
  return {above / common, below / common};
}
Fraction operator+(Fraction a, Fraction b) {
  return fraction(a.above * b.below + b.above * a.below, a.below * b.below);
}
Fraction operator*(Fraction a, Fraction b) { return fraction(a.above * b.above, a.below * b.below); }

Fraction draw_fraction() {
  switch (random_int(0, 3)) {
    case 0:
      return {random_int(-20, 20), 1};
    case 1:
      return {random_int(-2'000'000, 2'000'000), 1};
    case 2:
      return fraction(random_int(-999, 999), pick<int64_t>({2, 4, 5, 8, 10, 20, 25, 100}));
    default:
      return fraction(random_int(-200, 200), random_int(1, 60));
  }
}

std::string write(Fraction value, bool exact) {
  bool minus = value.above < 0;
  int64_t above = minus ? -value.above : value.above;
  if (!exact && coin()) {
    std::string decimal = write_decimal(value);
    if (!decimal.empty()) return decimal;
  }
  if (value.below == 1) return write_integer(value.above);
  int64_t scale = coin() ? 1 : random_int(2, 9);
  std::string p = std::to_string(above * scale), q = std::to_string(value.below * scale);
  if (scale == 1 && above > value.below && coin()) {
    return str(minus ? "-" : "", above / value.below, write_quotient(std::to_string(above % value.below), q));
  }
  if (coin()) return str(minus ? "-" : "", p, "/", q);
  if (minus && coin()) return write_quotient("-" + p, q);
  return str(minus ? "-" : "", write_quotient(p, q));
}

Fraction change(Fraction value, bool exact) {
  switch (random_int(0, 3)) {
    case 0:
      return value + fraction(coin() ? 1 : -1, exact ? value.below : 1);
    case 1:
      if (value.above != 0) return {-value.above, value.below};
      break;
    case 2:
      if (value.above != 0) return value * Fraction{10, 1};
      break;
    default:
      if (value.above != 0 && fraction(value.below, value.above) != value) return fraction(value.below, value.above);
  }
  return value + Fraction{1, 1};
}

Surd draw_surd() {
  Surd value;
  value.a = fraction(random_int(-12, 12), random_int(1, 6));
  value.b = fraction(random_int(1, 9) * (coin() ? 1 : -1), random_int(1, 6));
  value.root = pick<int64_t>({2, 3, 5, 6, 7, 10, 13});
  return value;
}

std::string write(const Surd& value) {
  auto root = [](int64_t of) { return of < 10 && coin() ? str("\\sqrt", of) : str("\\sqrt{", of, "}"); };
  // b sqrt(c), b > 0 here, as p sqrt(c) / q, sqrt(p^2 c) / q or p c / (q sqrt(c)).
  Fraction b = value.b.above < 0 ? Fraction{-value.b.above, value.b.below} : value.b;
  auto multiple = [&](int64_t p) {
    if (coin()) return root(p * p * value.root);
    return str(p == 1 ? "" : std::to_string(p), root(value.root));
  };
  const char* sign = value.b.above < 0 ? "-" : "+";
  if (value.a.above == 0 || coin()) {
    std::string surd = b.below == 1 ? multiple(b.above)
                       : coin()     ? write_quotient(multiple(b.above), std::to_string(b.below))
                       : coin()     ? write(b, true) + root(value.root)
                                : write_quotient(std::to_string(b.above * value.root), str(b.below, root(value.root)));
    if (b.below != 1 && surd.find('/') != std::string::npos)
      surd = write_quotient(multiple(b.above), std::to_string(b.below));
    if (value.a.above == 0) return str(sign[0] == '-' ? "-" : "", surd);
    if (sign[0] == '+' && coin()) {
      std::string rational = write(value.a, true);  // its minus sign may stand inside a fraction
      return str(surd, rational[0] == '-' ? "" : "+", rational);
    }
    return str(write(value.a, true), sign, surd);
  }
  int64_t below = std::lcm(value.a.below, value.b.below);
  int64_t p = value.a.above * (below / value.a.below), r = b.above * (below / b.below);
  std::string above = str(p, sign, multiple(r));
  return below == 1 ? above : write_quotient(above, std::to_string(below));
}

Surd change(Surd value) {
  switch (random_int(0, 3)) {
    case 0:
      value.a = value.a + fraction(1, value.a.below);
      break;
    case 1:
      value.b = Fraction{-value.b.above, value.b.below};
      break;
    case 2:
      value.b = value.b * Fraction{2, 1};
      break;
    default:
      value.root = value.root == 2 ? 3 : 2;
  }
  return value;
}

Polynomial draw_polynomial() {
  Polynomial value;
  bool two = coin();
  for (int64_t terms = random_int(1, 4); terms > 0; --terms) {
    add(value, {static_cast<int>(random_int(0, 3)), two ? static_cast<int>(random_int(0, 2)) : 0}, random_int(-9, 9));
  }
  Polynomial constant = value;
  constant.erase({0, 0});
  if (constant.empty()) add(value, {1, 0}, 1);
  return value;
}

Polynomial times(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (auto [p, c] : a) {
    for (auto [q, d] : b) add(product, {p.first + q.first, p.second + q.second}, c * d);
  }
  return product;
}

std::string write(const Polynomial& value) {
  if (value.empty()) return "0";
  std::vector<std::pair<std::pair<int, int>, int64_t>> terms(value.begin(), value.end());
  shuffle(terms);
  std::string text;
  for (auto [powers, coefficient] : terms) {
    if (text.empty()) {
      text = coefficient < 0 ? "-" + write_term(-coefficient, powers) : write_term(coefficient, powers);
    } else {
      std::string space = coin() ? " " : "";
      text += str(space, coefficient < 0 ? "-" : "+", space,
                  write_term(coefficient < 0 ? -coefficient : coefficient, powers));
    }
  }
  return text;
}

std::string write_power(const Polynomial& base, int power) {
  if (coin()) return str("(", write(base), ")^", power);
  Polynomial product = {{{0, 0}, 1}};
  std::string text;
  for (int i = 0; i < power; ++i) {
    product = times(product, base);
    text += str("(", write(base), ")");
  }
  return coin() ? text : str("(", write(product), ")");
}

Polynomial change(Polynomial value) {
  auto term = std::next(value.begin(), random_int(0, static_cast<int64_t>(value.size()) - 1));
  add(value, term->first, coin() ? 1 : -1);
  return value;
}

std::string dress(const std::string& text) {
  std::string done;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ' && random_int(0, 3) == 0) {
      done += pick<std::string>({"  ", "\\, ", "~", "\\; "});
    } else if ((c == '+' || c == '=') && coin()) {
      done += str(" ", c, " ");
    } else {
      done += c;
    }
  }
  switch (random_int(0, 5)) {
    case 0:
      return "$" + done + "$";
    case 1:
      return " " + done + " ";
    case 2:
      return "\\(" + done + "\\)";
    case 3:
      return "{" + done + "}";
    default:
      return done;
  }
}

std::string draw_bytes() {
  std::string text;
  for (int64_t n = random_int(0, 80); n > 0; --n)
    text += static_cast<char>(coin() ? random_int(0, 255) : random_int(32, 126));
  return text;
}

std::string draw_soup() {
  static const std::vector<std::string> kPieces = {"\\frac",
                                                   "{",
                                                   "}",
                                                   "\\sqrt",
                                                   "[",
                                                   "]",
                                                   "(",
                                                   ")",
                                                   "1",
                                                   "2",
                                                   "37",
                                                   "0",
                                                   ".",
                                                   ",",
                                                   "x",
                                                   "y",
                                                   "n",
                                                   "e",
                                                   "i",
                                                   "\\pi",
                                                   "^",
                                                   "_",
                                                   "+",
                                                   "-",
                                                   "/",
                                                   "=",
                                                   "<",
                                                   "\\le",
                                                   "\\cup",
                                                   "\\infty",
                                                   "\\left",
                                                   "\\right",
                                                   "\\{",
                                                   "\\}",
                                                   "|",
                                                   "!",
                                                   "\\%",
                                                   "\\$",
                                                   "^\\circ",
                                                   "\\text{",
                                                   "cm",
                                                   " or ",
                                                   " and ",
                                                   "\\pm",
                                                   "\\sin",
                                                   "\\log",
                                                   "\\binom",
                                                   "\\cdot",
                                                   "\\times",
                                                   "10^{",
                                                   "\\begin{pmatrix}",
                                                   "\\end{pmatrix}",
                                                   "\\\\",
                                                   "&",
                                                   "\\boxed{",
                                                   "$",
                                                   "\\in",
                                                   "\\lfloor",
                                                   "\\rfloor",
                                                   "A",
                                                   "B",
                                                   ":",
                                                   ";",
                                                   "\\mathbb{R}",
                                                   "\\emptyset",
                                                   "f(x)",
                                                   "99999999999",
                                                   "^{99}"};
  std::string text;
  for (int64_t n = random_int(0, 30); n > 0; --n) text += pick(kPieces);
  return text;
}

}  // namespace ucas::math_texts
