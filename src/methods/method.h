// What differs between RL methods: which signals they need, how rewards become advantages, and, for a few, the loss.
// A method is one file methods/NAME.cpp and one row of methods/registry.h. Plain loops, no autograd.
// Fed by train/collect + train/signals/logprobs (a full Batch); feeds train/update/gradients. The trainer never
// compares method names. Legend (core/batch.h): B responses, G per prompt, N packed tokens.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/fields.h"
#include "core/batch.h"
#include "core/metrics.h"
#include "core/signal.h"
#include "objective/config.h"
#include "objective/loss/loss.h"

namespace ucas {

// PolicyLoss::select(): among the tokens of which scope, and whether the others are left out of the mean.
struct Selection {
  Scope scope = Scope::mini;
  bool only_marked = false;
};

// An auxiliary model, and the signal that it gives.
struct NeededModel {
  std::string name;       // "critic"
  std::string directory;  // its checkpoint; empty: the policy's
  TokenSignal gives;
  int64_t held = 1, trained = 0;  // language models that it consists of
};

// What the trainer must provide. Only these are computed and held. May depend on the method's options.
struct Needs {
  bool labels = true;                       // right answers; false: problems without one are welcome
  bool answer_classes = false;              // Verdict::answer_class within each group
  bool reward_parts = false;                // Response::terms instead of the reward, where that has several parts
  std::vector<TokenSignal> signals = {};    // of the old policy, in the batch
  std::vector<TokenSignal> current = {};    // of the policy at each update, in LossInput and LossOutput alone
  bool reference = false;                   // Batch::signal("ref_logprob")
  std::optional<CriticConfig> critic = {};  // "value"
  std::optional<PrmConfig> prm = {};        // "prm_logratio"
  std::optional<std::string> teacher = {};  // "teacher_logprob", of the checkpoint in this directory
  std::optional<Selection> selection = {};  // a call of select(), after a forward pass of its own where not per step
  bool on_policy = false;                   // one update a step, of what the policy as it is has sampled
  int64_t responses = 1;                    // to a prompt, at least (rollout.n): with fewer every advantage is 0
  bool zero_advantages = false;  // tokens of advantage 0, for their loss is not exactly 0 whatever their log-probs;
                                 // else the trainer skips the backward pass of responses that have no other

  std::vector<NeededModel> models() const;
  std::vector<TokenSignal> all_signals() const;  // of the batch: `signals`, and those of the models
  bool reads(std::string_view key) const;        // whether it is among `signals`
  bool reads_tokens() const;   // whether one of them reads more of a row of logits than the sampled token
  bool sampler_knows() const;  // whether all of `signals` are what the sampler says of its tokens
};

// For people: one line of `ucas explain`.
struct Equation {
  std::string where;    // "Eq. 8"
  std::string formula;  // with this run's values: "W = exp(-0.25 C_hat) if A > 0, exp(0.25 C_hat) if A < 0"
  std::string words;    // "a confident right answer counts less, a confident wrong one is punished more"
};

// What a method records for the report, per token or per response, under the paper's symbols ("W", "C_hat", "A_mod",
// "l_hat"). Recorded, not recomputed.
struct Recording {
  struct Row {
    std::string name;
    bool per_token = false;  // values are [N] if so, else [B]
    std::vector<float> values;
  };
  std::vector<Row> rows;
  std::vector<std::pair<std::string, double>> metrics;  // names and values, to be logged

  void record(const Metric& metric, double value) { metrics.emplace_back(metric.key, value); }
  void record_tokens(std::string name, std::vector<float> values) {
    rows.push_back({std::move(name), true, std::move(values)});
  }
  void record_responses(std::string name, std::vector<float> values) {
    rows.push_back({std::move(name), false, std::move(values)});
  }
};

class Method;

// Who a method is. NAME_row() in methods/NAME.cpp makes it; its name is filled in from the registry.
struct MethodRow {
  std::string name = {};  // "ucas", for files and the command line
  std::string title;      // "UCAS", for people
  std::string paper;      // citation
  // Named sets of settings, where articles and released code differ; the first is the default.
  std::vector<std::string> presets = {"paper"};
  std::unique_ptr<Method> (*create)(std::string_view preset) = nullptr;
  std::vector<const Metric*> metrics = {};  // its own, all that it records; docs/metrics.md has them

  bool has_preset(const std::string& preset) const;
  // The method under one of the presets; "" = the first.
  std::unique_ptr<Method> make(const std::string& preset = "") const;
};

class Method : public PolicyLoss {
 public:
  // Empty for a method that is not made by a row.
  const MethodRow& row() const { return row_; }
  const std::string& title() const { return row_.title; }
  const ObjectiveConfig& objective_defaults() const { return objective_; }

  virtual void fields(Fields&) {}   // its own options: [method] beta = ...
  virtual void validate() const {}  // cross-field errors
  virtual Needs needs() const { return {}; }
  virtual std::vector<Equation> equations() const { return {}; }  // its own part, in order, with values

  // A_it for every token of the batch, from the old policy, once per step. advantage: [N].
  virtual void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const = 0;
  // What the critic learns, [N]; called only if needs().critic.
  virtual void returns(const Batch& /*batch*/, std::span<float> /*returns*/) const {}

 protected:
  ObjectiveConfig objective_;  // the loss it asks for

 private:
  friend struct MethodRow;
  MethodRow row_;
};

// For the `create` of a row.
template <class M>
std::unique_ptr<Method> create(std::string_view preset) {
  return std::make_unique<M>(preset);
}

std::span<const MethodRow> method_rows();
// The row that a name of steps.jsonl is of, of core/metrics.h or of a method; null where none is.
const Metric* find_any_metric(std::string_view name);
// Throws Error(ErrorKind::config) naming the nearest method.
const MethodRow& find_method(const std::string& name);
// Throws also where the method has no such preset; "" = the first.
std::unique_ptr<Method> make_method(const std::string& name, const std::string& preset = "");

}  // namespace ucas
