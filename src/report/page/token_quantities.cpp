#include "report/page/token_quantities.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "report/escape.h"

namespace ucas {

namespace {

using TokenKind = TokenQuantity::Kind;
constexpr size_t kMostTraceRows = 24, kMostMethods = 24, kNameBytes = 60;

struct Known {
  const char* name;  // of the trace row
  bool per_token;
  const char* title;
  const char* equation;
};
// Rows that methods record, under the symbols of their articles. A row that is not listed is shown by its name.
constexpr Known kKnown[] = {
    {"A", false, "group advantage", "Eq. 3"},
    {"A", true, "advantage before it is shaped", ""},
    {"C", false, "confidence of the response", "Eq. 6"},
    {"C_hat", false, "its z-score within the group", "Eq. 7"},
    {"W", false, "weight of the response", "Eq. 8"},
    {"A_mod", false, "weighted advantage", "Eq. 8"},
    {"l_hat", true, "logit, 0 to 1 within the response", "Eq. 9"},
    {"K", true, "key-token value", ""},
    {"psi", true, "entropy bonus", ""},
    {"SE", false, "semantic entropy of the prompt", ""},
    {"scale", false, "factor of the group advantage", ""},
    {"V", true, "the critic's value before the token", ""},
    {"A_gae", true, "generalised advantage before normalisation", ""},
    {"q", true, "log-ratio of the process reward model", ""},
    {"r", true, "process reward of the token", ""},
    {"v", false, "reward of the verdict", ""},
    {"u", false, "the response's own certainty, its reward", ""},
    {"R", true, "return from the token on", ""},
};

std::vector<float> finite(const std::vector<float>& values) {
  std::vector<float> out = values;
  for (float& v : out) v = std::isfinite(v) ? v : std::nanf("");
  return out;
}

std::vector<float> exponential(const std::vector<float>& a, const std::vector<float>& less) {
  std::vector<float> out(a.size());
  for (size_t t = 0; t < a.size(); ++t) out[t] = std::exp(a[t] - (less.empty() ? 0.0f : less[t]));
  return finite(out);
}

std::vector<float> means(const StepData& data, const std::vector<float>& values) {
  std::vector<float> mean;
  for (const Response& o : data.batch.responses) {
    double sum = 0;
    for (float v : Batch::tokens(values, o)) sum += v;
    mean.push_back(o.length > 0 ? static_cast<float>(sum / static_cast<double>(o.length)) : std::nanf(""));
  }
  return mean;
}

TokenQuantity of_trace(const StepData::Signal& signal) {
  TokenQuantity q{
      visible_text(signal.name, kNameBytes), "", "", TokenKind::trace, signal.per_token, finite(signal.values), {}};
  for (const Known& known : kKnown) {
    if (signal.name != known.name || signal.per_token != known.per_token) continue;
    q.title = known.title;
    q.equation = known.equation;
  }
  return q;
}

}  // namespace

std::vector<TokenQuantity> token_quantities(const StepData& data, std::span<const MethodAdvantages> methods) {
  const Batch& b = data.batch;
  std::vector<TokenQuantity> all;
  auto signal = [&](const char* symbol, const char* title, const char* equation, std::vector<float> values) {
    if (!values.empty()) all.push_back({symbol, title, equation, TokenKind::signal, true, std::move(values), {}});
  };
  auto traced = [&](const char* name) {
    return std::ranges::any_of(data.trace, [&](const StepData::Signal& s) { return s.name == name; });
  };
  signal("p", "probability, old policy", "", exponential(b.old_logprob, {}));
  signal("H", "entropy of the distribution", "", finite(b.entropy));
  signal("C_t", "confidence of the distribution", "Eq. 5", finite(b.confidence));
  signal("l", "raw logit", "Eq. 5", finite(b.logit));
  if (!b.ref_logprob.empty()) signal("p_ref", "probability, reference policy", "", exponential(b.ref_logprob, {}));
  if (!b.teacher_logprob.empty()) signal("p_T", "probability, teacher", "", exponential(b.teacher_logprob, {}));
  const std::vector<float>& sampler = b.sampler_logprob();
  if (sampler.size() == b.old_logprob.size() && sampler != b.old_logprob) {
    signal("p/p_s", "trainer over sampler, 1 if they agree", "", exponential(b.old_logprob, sampler));
  }
  if (!b.rollout_whole_logprob.empty()) {
    signal("q_p", "mass that top-p and top-k kept", "", exponential(b.rollout_whole_logprob, b.rollout_logprob));
  }
  if (!traced("V")) signal("V", "the critic's value before the token", "", finite(b.value));
  if (!traced("q")) signal("q", "log-ratio of the process reward model", "", finite(b.prm_logratio));
  signal("R_kl", "KL taken off the token's reward", "", finite(b.reward_kl));
  for (size_t i = 0; i < std::min(data.trace.size(), kMostTraceRows); ++i) all.push_back(of_trace(data.trace[i]));
  const char* equation = traced("A_mod") ? "Eq. 10" : "";
  all.push_back({"A_t", "advantage, as trained on", equation, TokenKind::advantage, true, finite(data.advantage),
                 means(data, data.advantage)});
  auto update = [&](const char* symbol, const char* title, const char* of, std::vector<float> values) {
    if (!values.empty()) all.push_back({symbol, title, of, TokenKind::update, true, std::move(values), {}});
  };
  update("r_t", "ratio of the new policy to the old", "Eq. 2", finite(data.ratio));
  update("clip", "1: the clip held the token, 2: the dual clip did", "Eq. 1",
         std::vector<float>(data.clipped.begin(), data.clipped.end()));
  for (size_t i = 0; i < std::min(methods.size(), kMostMethods); ++i) {
    const MethodAdvantages& m = methods[i];
    std::string preset = m.preset.empty() ? "" : ", preset " + visible_text(m.preset, kNameBytes);
    all.push_back({visible_text(m.title, kNameBytes), str("advantage under ", visible_text(m.name, kNameBytes), preset),
                   "", TokenKind::method, true, finite(m.advantage), means(data, m.advantage)});
  }
  return all;
}

}  // namespace ucas
