#include "evaluate/calibration.h"

#include <cmath>
#include <vector>

namespace ucas {

namespace {

struct Scored {
  std::vector<double> score;
  std::vector<bool> right;
};

template <class Number>
Scored with_finite(std::span<const Judged> responses, Number number) {
  Scored out;
  for (const Judged& response : responses) {
    const double score = number(response);
    if (!std::isfinite(score)) continue;
    out.score.push_back(score);
    out.right.push_back(response.right);
  }
  return out;
}

}  // namespace

Calibration calibrate(std::span<const Judged> responses) {
  // exp is monotone but not injective in floating point: ranks are taken before it.
  const Scored logprob = with_finite(responses, [](const Judged& r) { return r.mean_logprob; });
  const Scored confidence = with_finite(responses, [](const Judged& r) { return r.confidence; });
  std::vector<double> stated;
  for (double value : logprob.score) stated.push_back(std::exp(value));
  Calibration out;
  out.auroc_logprob = auroc(logprob.score, logprob.right);
  out.auroc_confidence = auroc(confidence.score, confidence.right);
  out.bins = reliability(stated, logprob.right);
  out.ece = expected_calibration_error(out.bins);
  return out;
}

}  // namespace ucas
