#include "support/loss_methods.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "methods/clipped_ratio.h"

namespace ucas::testing {

namespace {

class LossMethod : public Method {
 public:
  std::string title() const override { return "test method"; }
  std::string paper() const override { return ""; }
  void advantages(const Batch&, std::span<float>, Trace&) const override {}
};

class Gspo final : public LossMethod {
 public:
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = 3e-4;
    objective.clip_high = 4e-4;
    objective.dual_clip = 0;
    objective.aggregation = Aggregation::seq_mean_token_mean;
    return objective;
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    for (const Sequence& o_i : in.sequences) {
      double sum = 0;
      for (size_t t = begin(o_i); t < end(o_i); ++t) sum += static_cast<double>(in.logprob[t]) - in.old_logprob[t];
      double s_i = std::exp(sum / static_cast<double>(o_i.length));
      double low = 1 - in.objective->clip_low, high = 1 + in.objective->clip_high;
      for (size_t t = begin(o_i); t < end(o_i); ++t) {
        double l1 = -in.advantage[t] * s_i, l2 = -in.advantage[t] * std::clamp(s_i, low, high);
        out.loss[t] = static_cast<float>(std::max(l1, l2));
        // The mean over the response's tokens gives each the share 1 / L_i, which is d s_i / d lp_t = s_i / L_i.
        out.d_logprob[t] = static_cast<float>(l2 > l1 ? 0 : l1);
        out.clipped[t] = l2 > l1;
      }
    }
  }

 private:
  static size_t begin(const Sequence& s) { return static_cast<size_t>(s.first); }
  static size_t end(const Sequence& s) { return static_cast<size_t>(s.first + s.length); }
};

class ForkingTokens final : public LossMethod {
 public:
  ForkingTokens(double share, bool released) : share_(share), released_(released) {}
  SelectionScope selection_scope() const override { return SelectionScope::mini; }
  bool counted(uint8_t mark) const override { return !released_ || mark == 1; }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    clipped_ratio_loss(in, out);
    for (size_t t = 0; t < in.mark.size(); ++t) {
      if (in.mark[t] == 0) out.loss[t] = out.d_logprob[t] = 0;
    }
  }
  void select(const LossInput& in, std::span<uint8_t> mark) const override {
    size_t n = in.entropy.size();
    if (n == 0) return;
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return in.entropy[a] > in.entropy[b]; });
    if (released_) {
      size_t k = std::max<size_t>(1, static_cast<size_t>(static_cast<double>(n) * share_ + 0.9999));
      for (size_t i = 0; i < std::min(k, n); ++i) mark[order[i]] = 1;
    } else {
      double at = share_ * static_cast<double>(n - 1);  // quantile 1 - share, counted from the top
      size_t above = static_cast<size_t>(at), below = std::min(above + 1, n - 1);
      double threshold = in.entropy[order[above]] +
                         (at - static_cast<double>(above)) * (in.entropy[order[below]] - in.entropy[order[above]]);
      for (size_t t = 0; t < n; ++t) mark[t] = in.entropy[t] >= threshold;
    }
  }

 private:
  double share_;
  bool released_;
};

class FixedLoss final : public LossMethod {
 public:
  explicit FixedLoss(std::vector<float> loss) : loss_(std::move(loss)) {}
  void token_loss(const LossInput& in, LossOutput& out) const override {
    for (size_t t = 0; t < in.advantage.size(); ++t) {
      out.loss[t] = loss_.at(static_cast<size_t>(in.advantage[t]));  // the advantage carries the token's number
      out.d_logprob[t] = 1;
    }
  }

 private:
  std::vector<float> loss_;
};

}  // namespace

std::unique_ptr<Method> make_gspo() { return std::make_unique<Gspo>(); }
std::unique_ptr<Method> make_forking_tokens(double share, bool released) {
  return std::make_unique<ForkingTokens>(share, released);
}
std::unique_ptr<Method> make_fixed_loss(std::vector<float> loss_by_token) {
  return std::make_unique<FixedLoss>(std::move(loss_by_token));
}

}  // namespace ucas::testing
