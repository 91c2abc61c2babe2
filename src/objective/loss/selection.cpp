#include "objective/loss/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "objective/advantage/group_advantage.h"

namespace ucas {

namespace {

double sorted_mean(const std::vector<double>& x) {
  return x.empty() ? 0 : sorted_sum(x) / static_cast<double>(x.size());
}

double first_if_nan(double x) { return std::isnan(x) ? std::numeric_limits<double>::infinity() : x; }

}  // namespace

void scope_field(Fields& f, Scope& scope) {
  f.choice("scope", scope, {"micro", "mini", "step"},
           "scope of the token selection: a micro-batch (as released), a mini-batch, or the whole step");
}

const char* scope_words(Scope scope) {
  return scope == Scope::micro ? "micro-batch" : scope == Scope::mini ? "mini-batch" : "step's batch";
}

std::vector<TokenAt> valid_tokens(const LossInput& in) {
  std::vector<TokenAt> tokens;
  for (const Sequence& s : in.sequences) {
    for (int64_t t = 0; t < s.length; ++t) {
      tokens.push_back({s.first + t, s.response, t});
    }
  }
  std::ranges::sort(tokens, {}, [](const TokenAt& x) { return std::tuple(x.response, x.position); });
  return tokens;
}

std::vector<double> covariances(const LossInput& in, std::span<const TokenAt> tokens) {
  std::vector<double> A, lp, cov;
  for (const TokenAt& x : tokens) {
    A.push_back(in.advantage[x.index]);
    lp.push_back(in.logprob[x.index]);
  }
  double mean_A = sorted_mean(A), mean_lp = sorted_mean(lp);
  for (size_t i = 0; i < tokens.size(); ++i) cov.push_back((A[i] - mean_A) * (lp[i] - mean_lp));
  return cov;
}

std::vector<int64_t> largest(const LossInput& in, std::span<const TokenAt> tokens, std::span<const double> score,
                             size_t k) {
  auto key = [&](size_t i) {  // smaller comes first
    int64_t t = tokens[i].index;
    auto of = [&](std::span<const float> x) { return x.empty() ? 0 : -first_if_nan(x[t]); };
    return std::tuple(-first_if_nan(score[i]), of(in.logprob), of(in.old_logprob), of(in.advantage), of(in.entropy), i);
  };
  std::vector<size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  k = std::min(k, order.size());
  std::nth_element(order.begin(), order.begin() + k, order.end(), [&](size_t a, size_t b) {
    if (score[a] > score[b]) return true;
    if (score[a] < score[b]) return false;
    return key(a) < key(b);
  });
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < k; ++i) chosen.push_back(tokens[order[i]].index);
  return chosen;
}

double quantile(std::vector<double> x, double q) {
  if (std::ranges::any_of(x, [](double v) { return std::isnan(v); })) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(x);
  double at = q * static_cast<double>(x.size() - 1);
  // 0.8 * 35 is not exactly 28; the value itself must not fall below its own threshold for that.
  if (std::abs(at - std::round(at)) < 1e-9) at = std::round(at);
  auto below = static_cast<size_t>(at);
  size_t above = std::min(below + 1, x.size() - 1);
  return x[below] + (at - static_cast<double>(below)) * (x[above] - x[below]);
}

}  // namespace ucas
