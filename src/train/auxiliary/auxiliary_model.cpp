#include "train/auxiliary/auxiliary_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

void check_same_tokens(const std::string& policy, const std::string& option, const std::string& other,
                       const std::string& whose) {
  const Tokenizer a = Tokenizer::load(policy), b = Tokenizer::load(other);
  const int64_t ids = std::max(a.vocab_size(), b.vocab_size());
  for (int32_t id = 0; id < ids; ++id) {
    const std::string ours = a.token_text(id), theirs = b.token_text(id);
    if (ours == theirs) continue;
    throw Error(ErrorKind::config,
                str(option, " = ", printable(other), ": its token ", id, " is \"", printable(theirs, 40), "\", but \"",
                    printable(ours, 40), "\" in the policy's tokenizer (", printable(policy), "): the ", whose,
                    " must read the policy's tokens; choose a model of the same family"));
  }
}

std::vector<std::unique_ptr<AuxiliaryModel>> make_auxiliary_models(const TrainConfig& config, at::Device device,
                                                                   Model& policy, const Ranks& ranks) {
  std::vector<std::unique_ptr<AuxiliaryModel>> auxiliary_models;
  auto add = [&](std::unique_ptr<AuxiliaryModel> auxiliary) {
    if (auxiliary) auxiliary_models.push_back(std::move(auxiliary));
  };
  const Placement placement{.rank = ranks.rank(), .ranks = ranks.size()};
  add(make_reference(config, device, &policy, own_masters(placement.rank, placement.ranks)));
  add(make_critic(config, device, placement));
  add(make_implicit_prm(config, device, placement));
  add(make_teacher(config, device, policy.config()));
  return auxiliary_models;
}

}  // namespace ucas
