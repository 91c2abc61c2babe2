#include "verify/math/exact/exact.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace ucas::math {
namespace {

struct Sums : Circuit {
  int sum(int a, int b) { return apply(CircuitOp::add, a, b); }
  int difference(int a, int b) { return apply(CircuitOp::sub, a, b); }
  int times(int a, int b) { return apply(CircuitOp::mul, a, b); }
  int over(int a, int b) { return apply(CircuitOp::div, a, b); }
  int sqrt(int64_t n) { return root(constant(n), 2); }
  int raised(int a, int64_t n) { return apply(CircuitOp::power, a, constant(n)); }
};

Decision decide(const Circuit& c, int a, int b) {
  Budget budget;
  return Exact(c, 7, budget).equal(a, b);
}

TEST(exact, sums_of_roots_that_are_a_nested_root_are_equal) {
  Sums c;
  int left = c.sum(c.sqrt(2), c.sqrt(3));
  int right = c.root(c.sum(c.constant(5), c.times(c.constant(2), c.sqrt(6))), 2);
  Decision d = decide(c, left, right);
  EXPECT_EQ(d.answer, Decision::equal);
  EXPECT_STREQ(d.how, "equal algebraic numbers");
}

// sqrt(n+1) - sqrt(n) against 1 / (2 sqrt(n)): 3 n/2 digits apart, and different
TEST(exact, numbers_that_agree_to_hundreds_of_digits_are_different) {
  Sums c;
  int n = c.constant("1" + std::string(199, '0') + "7", 0);
  int left = c.difference(c.root(c.sum(n, c.constant(1)), 2), c.root(n, 2));
  int right = c.over(c.constant(1), c.times(c.constant(2), c.root(n, 2)));
  EXPECT_EQ(decide(c, left, right).answer, Decision::different);
  int tiny = c.apply(CircuitOp::exp, c.constant(-2000));
  EXPECT_EQ(
      decide(c, c.apply(CircuitOp::exp, c.constant(1)), c.sum(c.apply(CircuitOp::exp, c.constant(1)), tiny)).answer,
      Decision::different);
}

TEST(exact, trigonometric_values_and_logarithms) {
  Sums c;
  int pi = c.leaf(CircuitOp::pi);
  int cosine = c.apply(CircuitOp::cos, c.over(pi, c.constant(12)));
  int surd = c.over(c.sum(c.sqrt(6), c.sqrt(2)), c.constant(4));
  EXPECT_EQ(decide(c, cosine, surd).answer, Decision::equal);
  int logs = c.sum(c.apply(CircuitOp::ln, c.constant(2)), c.apply(CircuitOp::ln, c.constant(3)));
  EXPECT_EQ(decide(c, logs, c.apply(CircuitOp::ln, c.constant(6))).answer, Decision::equal);
  EXPECT_EQ(decide(c, logs, c.apply(CircuitOp::ln, c.constant(5))).answer, Decision::different);
  int turn = c.apply(CircuitOp::exp, c.times(pi, c.leaf(CircuitOp::i)));
  EXPECT_STREQ(decide(c, turn, c.constant(-1)).how, "proved equal");
}

TEST(exact, functions_are_equal_as_functions) {
  Sums c;
  int x = c.variable("x"), one = c.constant(1);
  int expanded = c.sum(c.sum(c.raised(x, 2), c.times(c.constant(2), x)), one);
  EXPECT_EQ(decide(c, c.raised(c.sum(x, one), 2), expanded).answer, Decision::equal);
  EXPECT_EQ(decide(c, c.over(c.difference(c.raised(x, 2), one), c.difference(x, one)), c.sum(x, one)).answer,
            Decision::equal);
  int secant = c.raised(c.over(one, c.apply(CircuitOp::cos, x)), 2);
  EXPECT_EQ(decide(c, secant, c.sum(c.raised(c.apply(CircuitOp::tan, x), 2), one)).answer, Decision::equal);
  EXPECT_EQ(decide(c, secant, c.raised(c.apply(CircuitOp::tan, x), 2)).answer, Decision::different);
  EXPECT_EQ(decide(c, c.root(c.raised(x, 2), 2), x).answer, Decision::different);  // |x|
}

// The coefficient 1 that only the high powers hide: no sample in double precision would notice.
TEST(exact, a_polynomial_with_one_changed_coefficient_is_different) {
  Sums c;
  int x = c.variable("x"), y = c.variable("y");
  int a = c.raised(c.sum(x, y), 40);
  int b = c.sum(a, c.constant(1));
  EXPECT_EQ(decide(c, a, b).answer, Decision::different);
}

TEST(exact, towers_are_told_apart_or_given_up_at_once) {
  Sums c;
  int ten = c.constant(10);
  int tower = ten;
  for (int k = 0; k < 3; ++k) tower = c.apply(CircuitOp::power, ten, tower);
  EXPECT_NE(decide(c, tower, c.raised(ten, 10)).answer, Decision::equal);
  EXPECT_NE(decide(c, c.sum(tower, c.constant(1)), tower).answer, Decision::equal);
  int factorial = c.apply(CircuitOp::factorial, c.apply(CircuitOp::factorial, c.constant(30)));
  EXPECT_NE(decide(c, factorial, c.sum(factorial, c.constant(1))).answer, Decision::equal);
}

TEST(exact, signs_of_numbers) {
  Sums c;
  Budget budget;
  int positive = c.difference(c.sqrt(2), c.constant(1)), complex = c.root(c.constant(-1), 2);
  int cube = c.root(c.constant(-8), 3);
  EXPECT_EQ(Exact(c, 1, budget).sign(positive), 1);
  EXPECT_EQ(Exact(c, 1, budget).sign(c.neg(positive)), -1);
  EXPECT_EQ(Exact(c, 1, budget).sign(complex), std::nullopt);
  EXPECT_EQ(decide(c, cube, c.constant(-2)).answer, Decision::equal);
}

TEST(exact, decisions_are_the_same_on_every_thread) {
  std::vector<std::thread> threads;
  std::vector<int> answers(8, -1);
  for (size_t t = 0; t < answers.size(); ++t) {
    threads.emplace_back([&answers, t] {
      Sums c;
      int left = c.sum(c.sqrt(2), c.apply(CircuitOp::ln, c.variable("x")));
      int right = c.sum(c.apply(CircuitOp::ln, c.variable("x")), c.over(c.constant(2), c.sqrt(2)));
      answers[t] = decide(c, left, right).answer;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int answer : answers) EXPECT_EQ(answer, Decision::equal);
}

TEST(exact, the_budget_is_counted) {
  Sums c;
  int left = c.sum(c.sqrt(2), c.sqrt(3));
  int right = c.root(c.sum(c.constant(5), c.times(c.constant(2), c.sqrt(6))), 2);
  Budget budget{10};
  Decision d = Exact(c, 7, budget).equal(left, right);
  EXPECT_EQ(d.answer, Decision::undecided);
  EXPECT_TRUE(d.over_budget);
}

}  // namespace
}  // namespace ucas::math
