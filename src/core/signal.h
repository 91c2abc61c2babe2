// What a method reads of every token besides its reward: a signal, by key. A method names those it needs
// (methods/method.h), and what it names provides: the LM head gives it what it declares to read in the pass over the
// logits that is made anyway, batch, stored steps, Python, plan and explain hold it by its key. One that is a method's
// own is in its file (methods/signals/lp_reg.cpp); those of this header are shared. Plain values, no tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace ucas {

// A token of a row of logits; z = logit / temperature.
struct LikelyToken {
  float z;
  int32_t id;
};

// Which tokens of a row a signal reads besides the sampled one, in `LogitRow::likely`: none, the `count` likeliest,
// from the likeliest on, or those of p >= share max p, in order of their ids.
struct LikelyTokens {
  int64_t count = 0;
  double share = 0;
  bool any() const { return count > 0 || share > 0; }
};

// What the LM head says of a row of logits and of the token sampled there.
struct LogitRow {
  float z, logprob, entropy, confidence, margin;
  double lse;  // ln sum exp z
  std::span<const LikelyToken> likely;
};

struct TokenSignal {
  std::string key;    // "margin"
  std::string words;  // "the margin of every token", for people
  LikelyTokens reads = {};
  // Its value in a row. None: of every batch, or an auxiliary model's.
  std::function<double(const LogitRow&)> compute = nullptr;
  // Its derivatives by the log-probs of the tokens it reads, in their order; none: no gradient runs through it.
  std::function<void(const LogitRow&, std::span<double>)> derivatives = nullptr;
  bool after_last = false;  // one value a response, of the row after its last token: Response::tail_confidence
};

namespace signals {

// New batches always have these four, a stored one may not.
inline TokenSignal old_logprob() { return {"old_logprob", "the log-prob of every token"}; }
inline TokenSignal entropy() { return {"entropy", "the entropy of every token"}; }
inline TokenSignal confidence() { return {"confidence", "the confidence of every token"}; }
inline TokenSignal logit() { return {"logit", "the chosen logit of every token"}; }
// ln pi(o_t) - max_v ln pi(v).
inline TokenSignal margin() {
  return {"margin", "the margin of every token", {}, [](const LogitRow& row) { return row.margin; }};
}
inline TokenSignal tail_confidence() {
  return {.key = "tail_confidence", .words = "the confidence after the last token", .after_last = true};
}
// Of auxiliary models.
inline TokenSignal ref_logprob() { return {"ref_logprob", "the reference's log-probs"}; }
inline TokenSignal value() { return {"value", "the values of a critic"}; }
inline TokenSignal prm_logratio() { return {"prm_logratio", "the reward model's log-ratios"}; }
inline TokenSignal teacher_logprob() { return {"teacher_logprob", "the teacher's log-probs"}; }

}  // namespace signals

}  // namespace ucas
