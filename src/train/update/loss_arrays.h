// Host arrays of some whole responses' tokens, in packed order: what a LossInput points into.
// Legend: n tokens of these responses.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/head/head.h"
#include "train/signals/logprobs.h"
#include "train/update/gradients.h"

namespace ucas {

struct LossArrays {
  std::vector<Sequence> sequences;
  std::vector<int64_t> place;  // [n] of each token in the batch
  std::vector<float> logprob, entropy, confidence, old_logprob, rollout_logprob, advantage;  // [n] each
  std::map<std::string, std::vector<float>> signals;                                         // [n] each
  std::vector<uint8_t> mark;  // [n], empty where no token is selected

  // What of the batch is known before a forward pass.
  void append(const ObjectiveInput& in, std::span<const int64_t> responses);
  // The policy as it was when the batch's signals were read.
  void append_old(const ObjectiveInput& in, std::span<const int64_t> responses);
  // The policy as it is, with these of its signals.
  void append(const HeadStats& stats, std::span<const TokenSignal> current);
  LossInput view(const ObjectiveInput& in) const;
  // Of some of the tokens; `pieces` keeps what of the sequences is among them.
  LossInput view(const ObjectiveInput& in, const RowRange& range, std::vector<Sequence>& pieces) const;
};

}  // namespace ucas
