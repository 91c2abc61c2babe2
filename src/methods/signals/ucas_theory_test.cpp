// The theory behind Eq. 8 (the appendix's Eq. 16-18): exponential weights are those of greatest entropy under a
// constraint on confidence. The program, over the G responses of a group with y_i = 1 for right and -1 for wrong ones:
//
//   maximise    S(p) = -sum_i p_i ln p_i
//   subject to  sum_i p_i = 1,  p_i >= 0,  sum_i p_i y_i C_hat_i = mu
//
// Its Lagrangian, stationary in p_i, gives -ln p_i - 1 - nu - lambda y_i C_hat_i = 0, so p_i ~ exp(-lambda y_i
// C_hat_i): with lambda = alpha this is W of Eq. 8, normalised over the group; mu is the value that W itself attains. S
// is strictly concave, so the maximiser is the only one. The same holds over the responses of one sign, normalised
// among themselves. Checked on what methods/signals/ucas.cpp returns, not on a formula repeated here.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "support/shaping.h"

namespace ucas {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double entropy(const Vector& p) {
  double S = 0;
  for (double p_i : p) S -= p_i > 0 ? p_i * std::log(p_i) : 0;
  return S;
}

// p_i = W_i / sum W and y_i C_hat_i.
struct Weights {
  Vector p, y_C;
};

// Of the responses of one sign, or of the whole group.
enum class Over { right, wrong, all };

Weights weights_of(const std::vector<float>& confidence, const std::vector<bool>& right, Over over,
                   const std::vector<Setting>& settings) {
  std::vector<testing::Row> rows;
  for (size_t i = 0; i < confidence.size(); ++i) rows.push_back({0, right[i] ? 1.0f : 0.0f, {confidence[i]}, {1}});
  testing::Advantages s = testing::compute_advantages(testing::make_batch(rows), "ucas", "", settings);
  Weights w;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (over != Over::all && right[i] != (over == Over::right)) continue;
    w.p.push_back(s.rows["W"][i]);
    w.y_C.push_back(right[i] ? s.rows["C_hat"][i] : -s.rows["C_hat"][i]);
  }
  double sum = std::accumulate(w.p.begin(), w.p.end(), 0.0);
  for (double& p_i : w.p) p_i /= sum;
  return w;
}

// The part of d that keeps both constraints: orthogonal to the ones and to C_hat (Gram-Schmidt).
Vector feasible(Vector d, const Vector& C_hat) {
  auto n = static_cast<double>(d.size());
  Vector c = C_hat;
  double mean_c = std::accumulate(c.begin(), c.end(), 0.0) / n;
  for (double& x : c) x -= mean_c;
  for (int pass = 0; pass < 2; ++pass) {  // twice: the second takes off what rounding left
    double mean_d = std::accumulate(d.begin(), d.end(), 0.0) / n;
    for (double& x : d) x -= mean_d;
    double along = dot(c, c) > 1e-12 ? dot(d, c) / dot(c, c) : 0;
    for (size_t i = 0; i < d.size(); ++i) d[i] -= along * c[i];
  }
  return d;
}

// The longest step along d that keeps all p_i >= 0.
double longest_step(const Vector& p, const Vector& d) {
  double step = 1e9;
  for (size_t i = 0; i < p.size(); ++i) {
    if (d[i] < 0) step = std::min(step, -p[i] / d[i]);
  }
  return step;
}

std::vector<float> draw_confidence(size_t count) {
  std::vector<float> confidence;
  for (size_t i = 0; i < count; ++i) confidence.push_back(static_cast<float>(*rc::gen::inRange(96, 200)) / 8);
  return confidence;
}

TEST(ucas_theory, no_feasible_weights_have_more_entropy_than_those_of_the_paper) {
  EXPECT_TRUE(rc::check("every feasible step away from W lowers the entropy", [] {
    auto count = static_cast<size_t>(*rc::gen::inRange(4, 17));
    std::vector<bool> right;
    for (size_t i = 0; i < count; ++i) right.push_back(i == 0 || (i + 1 < count && *rc::gen::inRange(0, 2) == 1));
    double alpha = *rc::gen::inRange(0, 200) / 100.0;
    for (Over over : {Over::right, Over::wrong, Over::all}) {
      Weights w = weights_of(draw_confidence(count), right, over, {{"alpha", alpha, "alpha", false}});
      Vector d;
      for (size_t i = 0; i < w.p.size(); ++i) d.push_back(*rc::gen::inRange(-1000, 1001) / 1000.0);
      d = feasible(d, w.y_C);
      double size = std::sqrt(dot(d, d));
      if (size < 1e-6) continue;  // with two responses both constraints leave no freedom
      double end = longest_step(w.p, d), S = entropy(w.p);
      for (double share : {0.01, 0.1, 0.5, 1.0}) {
        Vector q = w.p;
        for (size_t i = 0; i < q.size(); ++i) q[i] = std::max(0.0, q[i] + share * end * d[i]);
        RC_ASSERT(std::fabs(std::accumulate(q.begin(), q.end(), 0.0) - 1) < 1e-9);
        RC_ASSERT(std::fabs(dot(q, w.y_C) - dot(w.p, w.y_C)) < 1e-9);
        // float32 weights: first-order terms of 1e-7 remain; the loss itself is of second order.
        RC_ASSERT(entropy(q) < S + 1e-6 * share * end * size);
        if (share == 1.0) RC_ASSERT(entropy(q) < S);
      }
    }
  }));
}

// The Lagrange conditions themselves: ln p_i = -1 - nu - alpha y_i C_hat_i for every response.
TEST(ucas_theory, log_weights_are_a_straight_line_in_confidence_with_slope_alpha) {
  std::vector<float> confidence = {12, 14.5f, 13, 20, 17, 15, 16, 19};
  std::vector<bool> right = {true, true, true, true, false, false, false, false};
  for (Over over : {Over::right, Over::wrong, Over::all}) {
    Weights w = weights_of(confidence, right, over, {{"alpha", 0.7, "alpha", false}});
    for (size_t i = 1; i < w.p.size(); ++i) {
      double slope = (std::log(w.p[i]) - std::log(w.p[0])) / (w.y_C[i] - w.y_C[0]);
      EXPECT_NEAR(slope, -0.7, 1e-5);
    }
  }
}

// The converse, without which the first test could not fail: linear weights leave entropy on the table.
TEST(ucas_theory, linear_weights_do_not_solve_the_program) {
  std::vector<float> confidence = {12, 14.5f, 13, 20, 17, 15, 16, 19};
  std::vector<bool> right(8, true);
  right[7] = false;
  Weights w = weights_of(confidence, right, Over::right,
                         {{"alpha", 0.4, "alpha", false}, {"weight", std::string("linear"), "weight", false}});
  Vector ascent;
  for (double p_i : w.p) ascent.push_back(-std::log(p_i) - 1);  // dS/dp
  ascent = feasible(ascent, w.y_C);
  double step = 0.05 * longest_step(w.p, ascent);
  Vector q = w.p;
  for (size_t i = 0; i < q.size(); ++i) q[i] += step * ascent[i];
  EXPECT_NEAR(dot(q, w.y_C), dot(w.p, w.y_C), 1e-12);
  EXPECT_GT(entropy(q), entropy(w.p) + 1e-5);
}

}  // namespace
}  // namespace ucas
