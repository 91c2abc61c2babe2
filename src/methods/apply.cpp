#include "methods/apply.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

std::string missing(const Needs& needs, const Batch& batch) {
  size_t n = batch.token.size();
  if (needs.critic && batch.value.size() != n) return "the values of a critic (\"value\")";
  if (needs.reference && batch.ref_logprob.size() != n) return "the reference's log-probs (\"ref_logprob\")";
  if (needs.prm && batch.prm_logratio.size() != n) return "the reward model's log-ratios (\"prm_logratio\")";
  if (needs.teacher && batch.teacher_logprob.size() != n) return "the teacher's log-probs (\"teacher_logprob\")";
  if (needs.confidence && batch.confidence.size() != n) return "the confidence of every token (\"confidence\")";
  if (needs.logit && batch.logit.size() != n) return "the chosen logit of every token (\"logit\")";
  if (needs.old_logprob && batch.old_logprob.size() != n) return "the log-prob of every token (\"old_logprob\")";
  if (needs.entropy && batch.entropy.size() != n) return "the entropy of every token (\"entropy\")";
  if (needs.margin && batch.margin.size() != n) return "the margin of every token (\"margin\")";
  if (needs.min_p && batch.min_p_logprob.size() != n)
    return "the log-prob of every token under min-p (\"min_p_logprob\")";
  return "";
}

Advantages compute_advantages(const Method& method, const Batch& batch) {
  std::string lacks = missing(method.needs(), batch);
  if (!lacks.empty()) {
    throw Error(ErrorKind::unsupported, str(method.title(), " needs ", lacks,
                                            ", which the batch does not hold; add it to the "
                                            "batch, or take another method"));
  }
  Advantages computed;
  computed.advantage.assign(batch.token.size(), std::nanf(""));  // a token that is left out shall be noticed
  method.advantages(batch, computed.advantage, computed.recording);
  for (const Response& o : batch.responses) {
    if (!o.trained) std::ranges::fill(Batch::tokens(computed.advantage, o), 0.0f);
  }
  return computed;
}

Advantages compute_advantages(const std::string& name, const Batch& batch, const std::string& preset,
                              const std::vector<Setting>& settings) {
  std::unique_ptr<Method> method = make_method(name, preset);
  apply(*method, settings);
  method->validate();
  return compute_advantages(*method, batch);
}

}  // namespace ucas
