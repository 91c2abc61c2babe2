// Figures from graded samples: pass@k, mean@k and majority vote of a problem, ranking by a score.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ucas {

// One problem's samples: n sampled, c right.
struct SampleCount {
  int64_t n = 0, c = 0;
};

// Unbiased estimate of the chance that at least one of k samples is right (Chen et al. 2021): 1 - C(n-c, k) / C(n, k),
// by multiplication that neither overflows nor cancels. Needs 0 <= c <= n and 1 <= k <= n.
double pass_at_k(SampleCount samples, int64_t k);
// frontier@k: the chance that k samples of a model solve a problem that n - k of the base's n samples, chosen without
// replacement, did not: C(n-c, n-k) / C(n, n-k) pass@k of the model. The control is the base itself, sampled again: the
// k samples that are left (frontier_of_base). A model that is the base has the same expectation, since n - k and k
// samples are of one distribution in both. Needs 1 <= k < base.n, k <= model.n.
double frontier_at_k(SampleCount base, SampleCount model, int64_t k);
double frontier_of_base(SampleCount base, int64_t k);
// mean@n = avg@n = the share of right samples; the same as pass@1.
double mean_at_n(SampleCount samples);

// cover@tau counts the problems with at least a share tau of their samples right (Dragoi et al. 2025,
// arXiv:2510.08325): what a model solves reliably, where pass@k of many samples counts what it solves once.
bool covers(SampleCount samples, double tau);

// maj@n: the sample whose answer represents the vote, i.e. the first of the largest answer class; ties go to the class
// seen first; samples of class -1 (unparseable) do not vote. Nothing if there is no vote: the problem then counts as
// wrong.
std::optional<size_t> majority(std::span<const int32_t> answer_class);

// Chance that a random right answer scores above a random wrong one, ties counting half (Mann-Whitney U / (n1 n0)).
// Unknown (NaN) unless there are both right and wrong answers.
double auroc(std::span<const double> score, const std::vector<bool>& right);

}  // namespace ucas
