// The rules of collection, without a rollout, so that each can be checked on numbers: the overlong penalty, which
// prompts are worth training on, and when a step has enough of them.
// Fed by train/collect with what became of each generation batch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "objective/config.h"

namespace ucas {

// DAPO's overlong penalty: min(-(L - (limit - buffer)) / buffer * factor, 0). L counts the end token.
double overlong_penalty(int64_t length, int64_t limit, int64_t buffer, double factor);

// What became of one prompt's responses.
struct PromptOutcome {
  std::vector<double> metric;  // [G] of objective.keep_metric: verdict (1 or 0), score, or reward
  double accuracy = 0;         // share of right verdicts, before any shaping
  int64_t longest = 0;         // tokens of the longest response, end token included
};

struct KeepRule {
  bool mixed = false;        // the metric differs between the responses; a group of one passes
  double low = 0, high = 1;  // accuracy within, both ends included
  bool untruncated = false;  // no response of response_limit - 1 tokens or more (verl's PRIME)
  KeepOrder order = KeepOrder::refill;
  bool train_short = true;      // out of generation batches: train on the fewer prompts there are; false: abort
  int64_t wanted = 1;           // prompts trained on per step
  int64_t max_gen_batches = 0;  // per step; 0 = no limit
  int64_t response_limit = 0;

  bool filters() const { return mixed || low > 0 || high < 1 || untruncated; }
  // "both right and wrong answers", "an accuracy in [0.2, 0.8]" ...: what a prompt must show, for people.
  std::string words() const;
};

// Whether a prompt passes the rule.
bool passes(const KeepRule& rule, const PromptOutcome& prompt);

enum class SamplingAction { more, train, abort };

// One step's dynamic sampling. Prompts are numbered from 0 in order of arrival over all its generation batches.
//   refill (DAPO; the PRIME authors): generation batches until `wanted` prompts passed; train on the first of them.
//   prefer (verl's PRIME): generation batches until `wanted` prompts arrived; those that passed come first, then the
//                          others, so a step may train on failing prompts but always finds its batch.
class DynamicSampling {
 public:
  explicit DynamicSampling(const KeepRule& rule) : rule_(rule) {}

  // Takes in one generation batch and says what to do next.
  SamplingAction add(std::span<const PromptOutcome> generation_batch);

  int64_t gen_batches() const { return gen_batches_; }
  int64_t arrived() const { return arrived_; }
  const std::vector<int64_t>& kept() const { return kept_; }  // those that passed
  std::vector<int64_t> trained() const;                       // in the order in which they are trained on
  // Whether prompt `number` may still be among trained(); the responses of others need not be held.
  bool may_train(int64_t number) const;

 private:
  KeepRule rule_;
  int64_t gen_batches_ = 0, arrived_ = 0;
  std::vector<int64_t> kept_, failed_;
};

}  // namespace ucas
