// Equal values in different forms, and changed ones, beyond single numbers: surds, polynomials, rational functions,
// multiples of constants, sets, tuples, intervals, matrices, equations, inequalities.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/str.h"
#include "support/math_texts.h"
#include "support/verdicts.h"

namespace ucas::math {

namespace {

using namespace math_texts;

RC_GTEST_PROP(verifier_forms, a_surd_is_itself_in_any_form, ()) {
  Surd value = draw_surd();
  expect_equal(dress(write(value)), dress(write(value)));
}

RC_GTEST_PROP(verifier_forms, another_surd_is_not_paid, ()) {
  Surd value = draw_surd();
  expect_unequal(dress(write(value)), dress(write(change(value))));
}

RC_GTEST_PROP(verifier_forms, a_polynomial_is_itself_expanded_or_factored, ()) {
  Polynomial a = draw_polynomial(), b = draw_polynomial();
  int power = static_cast<int>(random_int(1, 3));
  Polynomial product = b;
  for (int i = 0; i < power; ++i) product = times(product, a);
  std::string factored = str(write_power(a, power), "(", write(b), ")");
  expect_equal(dress(factored), dress(write(product)));
  expect_equal(dress(write(product)), dress(write(product)));
}

RC_GTEST_PROP(verifier_forms, another_polynomial_is_not_paid, ()) {
  Polynomial a = draw_polynomial(), b = draw_polynomial();
  Polynomial product = times(a, b);
  Polynomial other = change(product);
  expect_unequal(dress(str("(", write(a), ")(", write(b), ")")), dress(write(other)));
  expect_unequal(write(product), write(other));
}

RC_GTEST_PROP(verifier_forms, a_rational_function_may_be_reduced, ()) {
  Polynomial above = draw_polynomial(), below = draw_polynomial(), common = draw_polynomial();
  std::string reduced = str("\\frac{", write(above), "}{", write(below), "}");
  std::string whole = str("\\dfrac{", write(times(above, common)), "}{", write(times(common, below)), "}");
  expect_equal(dress(reduced), dress(whole));
  std::string other = str("\\frac{", write(times(change(above), common)), "}{", write(times(common, below)), "}");
  expect_unequal(dress(reduced), dress(other));
}

RC_GTEST_PROP(verifier_forms, multiples_of_constants, ()) {
  Fraction value = fraction(random_int(1, 30), random_int(1, 12));
  std::string name = pick<std::string>({"\\pi", "e", "\\ln 2", "\\sqrt[3]{5}"});
  std::string outside = str(value.below == 1 ? std::to_string(value.above) : write(value, true), " ", name);
  std::string inside = str("\\frac{", value.above, name, "}{", value.below, "}");
  expect_equal(dress(outside), dress(inside));
  Fraction other = change(value, true);
  expect_unequal(dress(inside), str("\\frac{", other.above, name, "}{", other.below, "}"));
  expect_unequal(inside, str("\\frac{", value.above, "}{", value.below, "}"));
}

RC_GTEST_PROP(verifier_forms, the_order_of_a_set_says_nothing_that_of_a_tuple_does, ()) {
  std::vector<Fraction> values;
  for (int64_t n = random_int(2, 5); n > 0; --n)
    values.push_back(fraction(random_int(-30, 30), random_int(1, 7)) + Fraction{100 * n, 1});
  auto listed = [](const std::vector<Fraction>& items) {
    std::string text;
    for (const Fraction& item : items) text += str(text.empty() ? "" : ", ", write(item, true));
    return text;
  };
  std::vector<Fraction> mixed = values;
  shuffle(mixed);
  expect_equal(str("\\{", listed(values), "\\}"), str("\\left\\{ ", listed(mixed), " \\right\\}"));
  expect_equal(str("(", listed(values), ")"), str("\\left(", listed(values), "\\right)"));
  if (mixed != values) expect_unequal(str("(", listed(values), ")"), str("(", listed(mixed), ")"));
  mixed[0] = change(mixed[0], true);
  expect_unequal(str("\\{", listed(values), "\\}"), str("\\{", listed(mixed), "\\}"));
  values.pop_back();
  expect_unequal(str("\\{", listed(values), "\\}"), str("\\{", listed(values), ", 7\\}"));
}

RC_GTEST_PROP(verifier_forms, an_interval_is_its_ends_and_their_brackets, ()) {
  Fraction low = fraction(random_int(-50, 50), random_int(1, 6));
  Fraction high = low + fraction(random_int(1, 50), random_int(1, 6));
  const char* opening = coin() ? "[" : "(";
  const char* closing = coin() ? "]" : ")";
  auto interval = [&](const char* left, const char* right) {
    return str(left, write(low, true), ",", coin() ? " " : "", write(high, true), right);
  };
  expect_equal(dress(interval(opening, closing)), interval(opening, closing));
  expect_unequal(interval("[", "]"), interval("[", ")"));
  expect_unequal(interval("[", "]"), interval("(", "]"));
  std::string ray = str("(-\\infty, ", write(low, true), ")"), other = str("[", write(high, true), ", \\infty)");
  expect_equal(str(ray, " \\cup ", other), str(other, "\\cup", ray));
  expect_equal(ray, str("x < ", write(low, true)));
  expect_equal(other, str("x \\ge ", write(high, true)));
  expect_unequal(ray, str("x \\le ", write(low, true)));
  expect_unequal(ray, str("x > ", write(low, true)));
}

RC_GTEST_PROP(verifier_forms, a_matrix_is_its_entries_in_their_places, ()) {
  std::vector<Fraction> entries;
  for (int i = 0; i < 4; ++i) entries.push_back(fraction(random_int(-20, 20), random_int(1, 5)));
  auto matrix = [](const std::vector<Fraction>& of, const std::string& kind) {
    return str("\\begin{", kind, "}", write(of[0], true), " & ", write(of[1], true), " \\\\ ", write(of[2], true), "&",
               write(of[3], true), coin() ? " \\\\" : "", "\\end{", kind, "}");
  };
  expect_equal(matrix(entries, "pmatrix"), matrix(entries, pick<std::string>({"pmatrix", "bmatrix"})));
  std::vector<Fraction> other = entries;
  size_t place = static_cast<size_t>(random_int(0, 3));
  other[place] = change(other[place], true);
  expect_unequal(matrix(entries, "pmatrix"), matrix(other, "pmatrix"));
}

RC_GTEST_PROP(verifier_forms, an_equation_may_be_moved_and_scaled, ()) {
  int64_t a = random_int(1, 9), b = random_int(1, 9), c = random_int(-20, 20),
          factor = random_int(2, 5) * (coin() ? 1 : -1);
  std::string line = str(a, "x + ", b, "y = ", c);
  expect_equal(line, str(a, "x + ", b, "y ", c < 0 ? "+" : "-", " ", c < 0 ? -c : c, " = 0"));
  expect_equal(line, str(factor * a, "x = ", factor * c, factor * b > 0 ? " - " : " + ",
                         factor * b > 0 ? factor * b : -factor * b, "y"));
  expect_unequal(line, str(a, "x + ", b, "y = ", c + 1));
  expect_unequal(line, str(a, "x - ", b, "y = ", c));
}

RC_GTEST_PROP(verifier_forms, a_named_value_is_the_value, ()) {
  Fraction value = draw_fraction();
  std::string name = pick<std::string>({"x", "n", "k", "\\theta"});
  expect_equal(write(value, true), str(name, " = ", write(value, true)));
  expect_unequal(write(value, true), str(name, " = ", write(change(value, true), true)));
  expect_unequal(str("x = ", write(value, true)), str("y = ", write(change(value, true), true)));
}

}  // namespace

}  // namespace ucas::math
