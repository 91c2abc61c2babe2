#include "train/collect/early_stop.h"

#include <algorithm>
#include <utility>

#include "base/str.h"
#include "train/collect/collect.h"

namespace ucas {

namespace {

constexpr int64_t kPerCounter = 32;  // prompts that share a counter of the store, a bit each
constexpr int64_t kHearEvery = 16;   // decode steps: what others found is a round trip away

}  // namespace

EarlyStop::EarlyStop(const TrainConfig& config, Rewards& rewards, Ranks& ranks, std::vector<Prompt> prompts,
                     int64_t wanted)
    : config_(config),
      rule_(config.keep_rule()),
      rewards_(rewards),
      ranks_(ranks),
      name_(str("passed/", ranks.next_number(), "/")),
      prompts_(std::move(prompts)),
      wanted_(wanted),
      group_(prompts_.size()),
      passes_(prompts_.size(), 0),
      needed_(std::ssize(prompts_)) {}

void EarlyStop::ended(const Episode& episode) {
  Response o;
  o.length = std::ssize(episode.token);
  o.sample = episode.sample;
  o.finished = episode.finished;
  o.inserts = episode.inserts;
  sampled_tokens_ += o.length;
  new_.push_back({episode.job, std::move(o), {prompts_[static_cast<size_t>(episode.job)].number, episode.sample}});
}

bool EarlyStop::is_due(const Ended& ended) const {
  return !rewards_.is_slow(prompts_[static_cast<size_t>(ended.prompt)].problem) || rewards_.is_graded(ended.key);
}

int64_t EarlyStop::needed() {
  std::vector<Ended> still;
  for (Ended& ended : due_) {
    if (ended.prompt >= needed_) continue;
    if (is_due(ended)) {
      read(std::move(ended));
    } else {
      still.push_back(std::move(ended));
    }
  }
  due_ = std::move(still);
  std::ranges::move(new_, std::back_inserter(due_));
  new_.clear();
  if (calls_++ % kHearEvery == 0) hear();
  int64_t found = 0;
  for (int64_t p = 0; p < needed_; ++p) {
    found += passes_[static_cast<size_t>(p)];
    if (found == wanted_) needed_ = p + 1;
  }
  return needed_;
}

void EarlyStop::read(Ended ended) {
  const GradedEarly* graded = rewards_.begun(ended.key);
  if (graded == nullptr || graded->failure) return;  // its error is thrown where all verdicts are asked for
  Sampled& group = group_[static_cast<size_t>(ended.prompt)];
  const bool cut = !ended.response.finished && config_.reward.truncated == Truncated::wrong;
  const bool right = graded->verdict.kind == VerdictKind::equal && !cut;
  group.right = group.right || right;
  group.wrong = group.wrong || !right;
  ended.response.verdict = graded->verdict;
  const auto place = std::ranges::lower_bound(group.response, ended.response.sample, {}, &Response::sample);
  group.text.insert(group.text.begin() + (place - group.response.begin()), graded->text);
  group.response.insert(place, std::move(ended.response));
  if (!passes_for_certain(group, prompts_[static_cast<size_t>(ended.prompt)].problem)) return;
  group.certain = true;
  passes_[static_cast<size_t>(ended.prompt)] = 1;
  tell(ended.prompt);
}

// A whole group as the step will judge it; one of which some are right and some are not needs no more where that is all
// that the rule asks for.
bool EarlyStop::passes_for_certain(Sampled& group, const Problem& problem) const {
  if (group.certain) return false;
  const bool mixed_alone = rule_.low <= 0 && rule_.high >= 1 && !rule_.untruncated;
  if (mixed_alone && config_.objective.keep_metric == KeepMetric::acc && group.right && group.wrong) return true;
  if (std::ssize(group.response) < config_.rollout.n) return false;
  rewards_.score({problem, group.text, group.response});
  return passes(rule_, outcome_of(group.response, config_.objective.keep_metric));
}

int64_t EarlyStop::sampled_tokens_of_ranks() const {
  int64_t tokens = 0;
  for (const std::string& of_rank : ranks_.all_gather("sampled tokens", str(sampled_tokens_))) {
    tokens += std::stoll(of_rank);
  }
  return tokens;
}

// Each rank sets the bits of its own groups, each once; so their sum is a set.
void EarlyStop::tell(int64_t prompt) {
  if (ranks_.alone()) return;
  ranks_.add_to_counter(str(name_, prompt / kPerCounter), int64_t{1} << (prompt % kPerCounter));
}

void EarlyStop::hear() {
  if (ranks_.alone()) return;
  for (int64_t first = 0; first < needed_; first += kPerCounter) {
    const int64_t bits = ranks_.add_to_counter(str(name_, first / kPerCounter), 0);
    for (int64_t p = first; p < std::min(first + kPerCounter, needed_); ++p) {
      if ((bits >> (p - first) & 1) != 0) passes_[static_cast<size_t>(p)] = 1;
    }
  }
}

}  // namespace ucas
