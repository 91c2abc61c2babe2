// SEED-GRPO: Dr.GRPO's advantage times one number per prompt, the smaller the more the model's answers to it disagree.
//
//   clusters    responses of a group with the same final answer; an answer that cannot be read is its own cluster
//   p_k         mass of cluster k: sum of its responses' weights w_i
//   SE          semantic entropy of the prompt, SE_max = ln G, x = SE / SE_max
//   A_i = (R_i - mean) f(x)
//
// The article estimates SE by Monte Carlo from the responses' likelihoods (its Eq. 5: `mc`), and states the maximum of
// the plain entropy of counts (`count`, the default, which never exceeds ln G). Likelihoods of whole responses span
// hundreds of nats, so weights are softmax over the group of the mean log-prob per token. f is only named there
// (linear, exponential, focal); these are the forms in docs/numerics.md, all held at 0 or above. No code was released.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/str.h"
#include "methods/registry.h"
#include "objective/advantage/group_advantage.h"

namespace ucas {

namespace {

constexpr Metric kSeedEntropy{
    .key = "seed/entropy_mean",
    .unit = Unit::nats,
    .help = "mean over prompts of the semantic entropy SE; `ln G` is the largest of `count` and `shannon`"};
constexpr Metric kSeedScale{.key = "seed/scale_mean",
                            .help = "mean over prompts of f, by which advantages are multiplied"};

enum class EntropyEstimator { mc, shannon, count };
enum class SeedScale { linear, exponential, focal, reciprocal };
enum class AnswerClusters { string, verifier };

struct SeedOptions {
  EntropyEstimator estimator = EntropyEstimator::count;
  SeedScale f = SeedScale::linear;
  double alpha = 0.02;
  AnswerClusters clusters = AnswerClusters::string;
  GroupOfOne group_of_one = GroupOfOne::reward;

  void fields(Fields& fields) {
    fields.choice("estimator", estimator, {"mc", "shannon", "count"}, "estimator of the semantic entropy SE");
    fields.choice("f", f, {"linear", "exponential", "focal", "reciprocal"},
                  "form of the scale that SE puts on a prompt's advantages");
    fields.field("alpha", alpha, Range{0, 10}, "strength of the scale by SE; 0 = Dr.GRPO");
    fields.choice("clusters", clusters, {"string", "verifier"},
                  "rule by which two answers fall in one cluster: equal text, or the verifier's judgement");
    fields.choice("group_of_one", group_of_one, {"reward", "zero"},
                  "advantage of the only response to a prompt: the reward, or zero");
  }
};

// The responses of each cluster.
std::vector<std::vector<size_t>> clusters_of(std::span<const Response> o, AnswerClusters by) {
  std::map<std::string, std::vector<size_t>> with_answer;
  std::vector<std::vector<size_t>> clusters;
  for (size_t i = 0; i < o.size(); ++i) {
    const Verdict& verdict = o[i].verdict;
    bool readable = by == AnswerClusters::string ? verdict.kind != VerdictKind::unparseable && !verdict.answer.empty()
                                                 : verdict.answer_class >= 0;
    if (!readable) {
      clusters.push_back({i});
    } else {
      with_answer[by == AnswerClusters::string ? verdict.answer : str(verdict.answer_class)].push_back(i);
    }
  }
  for (auto& [answer, members] : with_answer) clusters.push_back(std::move(members));
  return clusters;
}

// w_i: softmax over the group of mean_t ln pi_old(o_it); an empty response has none.
std::vector<double> likelihood_weights(const Batch& batch, std::span<const Response> o) {
  std::vector<double> w(o.size(), 0.0), present;
  for (size_t i = 0; i < o.size(); ++i) {
    w[i] = mean(Batch::tokens(batch.old_logprob, o[i]));
    if (o[i].length > 0) present.push_back(w[i]);
  }
  double largest = present.empty() || std::isnan(sorted_sum(present)) ? 0 : std::ranges::max(present);
  for (size_t i = 0; i < o.size(); ++i) w[i] = o[i].length > 0 ? std::exp(w[i] - largest) : 0;
  double total = sorted_sum(w);
  for (double& w_i : w) w_i = total == 0 ? 0 : w_i / total;
  return w;
}

// SE of one group, nats.
double semantic_entropy(const SeedOptions& c, const Batch& batch, std::span<const Response> o) {
  std::vector<double> w(o.size(), 1 / static_cast<double>(o.size()));
  if (c.estimator != EntropyEstimator::count) w = likelihood_weights(batch, o);
  std::vector<double> terms;
  for (const std::vector<size_t>& members : clusters_of(o, c.clusters)) {
    std::vector<double> mass;
    for (size_t i : members) mass.push_back(w[i]);
    double p_k = std::min(sorted_sum(mass), 1.0);  // in this order a NaN stays one, as in all comparisons below
    if (c.estimator == EntropyEstimator::count) {
      p_k = static_cast<double>(members.size()) / static_cast<double>(o.size());
    }
    if (p_k != 0) terms.push_back(c.estimator == EntropyEstimator::mc ? -std::log(p_k) : -p_k * std::log(p_k));
  }
  double clusters = static_cast<double>(terms.size());
  double sum = sorted_sum(terms);
  return c.estimator == EntropyEstimator::mc && clusters > 0 ? sum / clusters : sum;
}

// f(x), x = SE / ln G; a group of one has no disagreement to speak of.
double scale_of(const SeedOptions& c, double SE, size_t G) {
  if (G < 2) return 1;
  double x = SE / std::log(static_cast<double>(G));
  switch (c.f) {
    case SeedScale::linear:
      return std::max(1 - c.alpha * x, 0.0);
    case SeedScale::exponential:
      return std::exp(-c.alpha * x);
    case SeedScale::focal:
      return std::pow(std::max(1 - x, 0.0), c.alpha);
    case SeedScale::reciprocal:
      return 1 / (1 + c.alpha * x);
  }
  return 1;
}

class SeedGrpo final : public Method {
 public:
  // Dr.GRPO's: clip 0.2, no dual clip, the sum of a response's tokens over the response limit, mean over responses.
  explicit SeedGrpo(std::string_view) {
    objective_ = {.dual_clip = 0, .aggregation = Aggregation::row_mean_token_sum_norm};
  }
  void fields(Fields& f) override { options_.fields(f); }
  Needs needs() const override {
    Needs needs{.answer_classes = options_.clusters == AnswerClusters::verifier};
    if (options_.estimator != EntropyEstimator::count) needs.signals = {signals::old_logprob()};
    return needs;
  }

  std::vector<Equation> equations() const override {
    std::string alpha = str(options_.alpha);
    auto name = [](const char* const* names, auto value) { return std::string(names[static_cast<int>(value)]); };
    constexpr const char* kMass[] = {"p_k = sum over cluster k of softmax_i(mean_t ln pi_old)",
                                     "p_k = sum over cluster k of softmax_i(mean_t ln pi_old)",
                                     "p_k = responses in cluster k / G"};
    constexpr const char* kEntropy[] = {"SE = -(1/K) sum_k ln p_k", "SE = -sum_k p_k ln p_k", "SE = -sum_k p_k ln p_k"};
    std::string scale[] = {str("f = max(0, 1 - ", alpha, " x)"), str("f = exp(-", alpha, " x)"),
                           str("f = max(0, 1 - x)^", alpha), str("f = 1 / (1 + ", alpha, " x)")};
    return {{"clusters", name(kMass, options_.estimator),
             options_.clusters == AnswerClusters::string
                 ? "answers written alike are one cluster; unreadable ones are alone"
                 : "answers that the verifier finds equal are one cluster; unreadable "
                   "ones are alone"},
            {"semantic entropy", str(name(kEntropy, options_.estimator), ", x = SE / ln G"),
             "how much the answers to a prompt disagree"},
            {"scale", scale[static_cast<int>(options_.f)], "a prompt with many different answers counts less"},
            {"advantage", "A_i = (R_i - mean) f", "Dr.GRPO's advantage, scaled per prompt"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    std::vector<float> rewards(batch.responses.size()), SE_of(rewards), scale(rewards);
    std::vector<double> entropies, scales;
    for (const Group& group : batch.groups) {
      auto o = batch.of(group);
      std::vector<double> A = centered_rewards(o, options_.group_of_one);
      double SE = semantic_entropy(options_, batch, o);
      double f = scale_of(options_, SE, o.size());
      entropies.push_back(SE);
      scales.push_back(f);
      for (size_t i = 0; i < o.size(); ++i) {
        size_t row = group.first + i;
        rewards[row] = static_cast<float>(A[i]);
        SE_of[row] = static_cast<float>(SE);
        scale[row] = static_cast<float>(f);
        std::ranges::fill(advantage.subspan(o[i].first, o[i].length), static_cast<float>(A[i] * f));  // A_i f
      }
    }
    double groups = std::max<double>(1, static_cast<double>(batch.groups.size()));
    recording.record(kSeedEntropy, sorted_sum(entropies) / groups);
    recording.record(kSeedScale, sorted_sum(scales) / groups);
    recording.record_responses("A", std::move(rewards));
    recording.record_responses("SE", std::move(SE_of));
    recording.record_responses("scale", std::move(scale));
  }

 private:
  SeedOptions options_;
};

}  // namespace

MethodRow seed_grpo_row() {
  return {.title = "SEED-GRPO",
          .paper =
              "Chen et al. 2025, SEED-GRPO: Semantic Entropy Enhanced GRPO for Uncertainty-Aware Policy Optimization "
              "(arXiv:2505.12346)",
          .presets = {"paper"},
          .create = create<SeedGrpo>,
          .metrics = {&kSeedEntropy, &kSeedScale}};
}

}  // namespace ucas
