#include "train/collect/reward.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/process/activity.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "objective/filter/dynamic_sampling.h"
#include "sharding/shared_grading.h"
#include "verify/over_budget.h"

namespace ucas {

namespace {

// The response of DeepSeek-R1 (arXiv:2501.12948): first the thoughts, then the answer, each tag once.
constexpr const char* kThinkAnswer = R"(\s*<think>(?:(?!</?think>|</?answer>).)*</think>\s*)"
                                     R"(<answer>(?:(?!</?think>|</?answer>).)*</answer>\s*)";

std::optional<Regex> format_of(const RewardConfig& reward) {
  if (reward.format.empty()) return std::nullopt;
  const std::string pattern = reward.format == "think_answer" ? kThinkAnswer : reward.format;
  try {
    return Regex(str("\\A(?m:", pattern, ")\\z"), "reward.format");
  } catch (const Error& error) {
    throw Error(ErrorKind::config, error.what());
  }
}

// A pattern that goes back and forth over a response for too long does not match it.
bool matches(const Regex& pattern, const std::string& text) {
  if (!valid_utf8(text)) return false;
  try {
    return pattern.find(text, 0).has_value();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::limit) throw;
    return false;
  }
}

}  // namespace

// Workers that grade responses while others are still sampled.
class Rewards::PrefetchedStep {
 public:
  PrefetchedStep() {
    for (int64_t i = 0; i < usable_cores(); ++i) workers_.emplace_back([this](std::stop_token stop) { work(stop); });
  }

  void begin(const Grader& grader, const Problem& problem, const Key& key, std::string text) {
    std::packaged_task<Verdict()> task([&grader, &problem, key, text = std::move(text)] {
      const Doing doing(str("grading ", printable(problem.id, 60), ", sample ", key.second, ", by a program"));
      const Answer answer{text, &problem.gold};
      return std::move(grader.grade({&answer, 1}).front());
    });
    const std::lock_guard lock(guard_);
    begun_[key] = task.get_future();
    queue_.push_back(std::move(task));
    ready_.notify_one();
  }

  // nullopt: not begun. What comes throws what the grader threw.
  std::optional<std::future<Verdict>> take(const Key& key) {
    const std::lock_guard lock(guard_);
    const auto found = begun_.find(key);
    if (found == begun_.end()) return std::nullopt;
    std::future<Verdict> future = std::move(found->second);
    begun_.erase(found);
    return future;
  }

 private:
  void work(const std::stop_token& stop) {
    std::unique_lock lock(guard_);
    while (ready_.wait(lock, stop, [this] { return !queue_.empty(); })) {
      std::packaged_task<Verdict()> task = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex guard_;
  std::condition_variable_any ready_;
  std::deque<std::packaged_task<Verdict()>> queue_;
  std::map<Key, std::future<Verdict>> begun_;
  std::vector<std::jthread> workers_;  // last: they end before what they use
};

Rewards::Rewards(const TrainConfig& config, const Graders& graders, Ranks& ranks, RewardCommand* command)
    : config_(config),
      graders_(graders),
      ranks_(ranks),
      command_(command),
      parts_(parse_reward_weights(config.reward.weights, config.reward.from_outside())),
      terms_(reward_terms(parts_)),
      format_(format_of(config.reward)) {
  if (has_slow()) prefetched_ = std::make_unique<PrefetchedStep>();
}

Rewards::~Rewards() = default;

bool Rewards::has_slow() const {
  return graders_.standard->is_slow() ||
         std::ranges::any_of(graders_.of, [](const auto& entry) { return entry.second->is_slow(); });
}

void Rewards::begin(const Problem& problem, const Key& key, const std::function<std::string()>& text) {
  const Grader& grader = graders_.for_source(problem.source);
  if (prefetched_ && grader.is_slow()) prefetched_->begin(grader, problem, key, text());
}

// Verdicts of all responses. What was begun is graded by the rank that began it, the rest by whom its number says.
void Rewards::grade(std::span<const PaidGroup> groups, std::span<const Key> keys) {
  std::vector<GradeItem> items;
  std::vector<Response*> places;
  for (const PaidGroup& group : groups) {
    for (size_t i = 0; i < group.response.size(); ++i) {
      items.push_back({&group.problem, group.text[i]});
      places.push_back(&group.response[i]);
    }
  }
  std::vector<std::optional<std::future<Verdict>>> begun(items.size());
  if (prefetched_) {
    for (size_t i = 0; i < std::min(keys.size(), items.size()); ++i) begun[i] = prefetched_->take(keys[i]);
  }
  const std::vector<int64_t> by = prefetched_ ? graded_by_who_began(begun) : graded_by(ranks_, items.size());
  std::vector<Verdict> verdicts = gather_verdicts(ranks_, by, [&](std::span<const size_t> own) {
    std::vector<GradeItem> rest;
    for (const size_t i : own)
      if (!begun[i]) rest.push_back(items[i]);
    std::vector<Verdict> graded = grade_all(graders_, rest), all;
    auto next = graded.begin();
    for (const size_t i : own) all.push_back(begun[i] ? begun[i]->get() : std::move(*next++));
    return all;
  });
  for (size_t i = 0; i < verdicts.size(); ++i) places[i]->verdict = std::move(verdicts[i]);
}

// All ranks say which responses they began, a character for each.
std::vector<int64_t> Rewards::graded_by_who_began(std::span<const std::optional<std::future<Verdict>>> begun) const {
  std::vector<int64_t> by = graded_by(ranks_, begun.size());
  if (ranks_.alone()) return by;
  std::string mine(begun.size(), '0');
  for (size_t i = 0; i < begun.size(); ++i)
    if (begun[i]) mine[i] = '1';
  const std::vector<std::string> all = ranks_.all_gather("which responses are being graded", mine);
  for (size_t r = all.size(); r-- > 0;) {
    UCAS_CHECK(all[r].size() == by.size(), "expected the same responses on all ranks");
    for (size_t i = 0; i < by.size(); ++i)
      if (all[r][i] == '1') by[i] = static_cast<int64_t>(r);
  }
  return by;
}

std::vector<RewardReply> Rewards::ask(std::span<const PaidGroup> groups) const {
  if (!judges_all()) return {};
  std::vector<RewardAsk> asks;
  std::vector<int64_t> samples;
  for (const PaidGroup& group : groups) {
    for (size_t i = 0; i < group.response.size(); ++i) {
      const Response& o = group.response[i];
      asks.push_back({group.problem, group.text[i], o.length, o.finished, o.verdict});
      samples.push_back(o.sample);
    }
  }
  const auto name = [&](size_t i) { return str(printable(asks[i].problem.id, 60), ", sample ", samples[i]); };
  const std::string own = command_ != nullptr ? command_->ask(reward_lines(asks), asks.size(), name) : "";
  return parse_rewards(ranks_.from_leader("rewards of the command", own), asks.size(), config_.reward.scorer());
}

void Rewards::pay(std::span<const PaidGroup> groups, std::span<const Key> keys) {
  grade(groups, keys);
  for (const PaidGroup& group : groups) {
    for (const Response& o : group.response) note_over_budget({&o.verdict, 1});
    if (!group.problem.gold.empty()) continue;
    for (Response& o : group.response) o.verdict.reason = "the problem has no right answer to compare with";
  }
  const std::vector<RewardReply> replies = ask(groups);
  std::span<const RewardReply> left = replies;
  for (const PaidGroup& group : groups) {
    const size_t count = std::min(left.size(), group.response.size());
    pay_group(group, left.first(count));
    left = left.subspan(count);
  }
}

// r_ik of one part, but for the length, which is of the group.
double Rewards::part(RewardPart part, const Response& o, const std::string& text, const RewardReply* reply) const {
  const RewardConfig& reward = config_.reward;
  switch (part) {
    case RewardPart::answer: {
      if (o.verdict.kind == VerdictKind::equal) return reward.correct;
      return reward.partial ? reward.wrong + o.verdict.score * (reward.correct - reward.wrong) : reward.wrong;
    }
    case RewardPart::command:
      return reply->score;
    case RewardPart::format:
      return matches(*format_, text) ? 1 : 0;
    case RewardPart::length:
      return 0;
  }
  return 0;
}

void Rewards::pay_group(const PaidGroup& group, std::span<const RewardReply> replies) const {
  const RewardConfig& reward = config_.reward;
  std::vector<int64_t> lengths;
  std::vector<uint8_t> right;
  for (size_t i = 0; i < group.response.size(); ++i) {
    Response& o = group.response[i];
    const RewardReply* reply = replies.empty() ? nullptr : &replies[i];
    if (reply != nullptr && (reply->right || group.problem.gold.empty())) {
      o.verdict.decide(reply->right.value_or(reply->score >= 1) ? VerdictKind::equal : VerdictKind::unequal,
                       reply->reason.empty() ? "as the reward command says" : reply->reason);
    }
    if (!o.finished && reward.truncated == Truncated::wrong && o.verdict.kind == VerdictKind::equal) {
      o.verdict.decide(VerdictKind::unequal, "right, but cut at the length limit");
    }
    lengths.push_back(o.length);
    right.push_back(o.verdict.kind == VerdictKind::equal ? 1 : 0);
    o.terms.clear();
    for (const WeightedPart& p : parts_) o.terms.push_back(static_cast<float>(part(p.part, o, group.text[i], reply)));
  }
  const auto length = std::ranges::find(parts_, RewardPart::length, &WeightedPart::part);
  if (length != parts_.end()) {
    const std::vector<double> paid = length_rewards(lengths, right);
    for (size_t i = 0; i < paid.size(); ++i)
      group.response[i].terms[static_cast<size_t>(length - parts_.begin())] = static_cast<float>(paid[i]);
  }
  for (Response& o : group.response) {  // R_i
    double score = 0;
    for (size_t k = 0; k < parts_.size(); ++k) score += parts_[k].weight * o.terms[k];
    o.score = static_cast<float>(score);
    o.reward = o.score + static_cast<float>(overlong_penalty(o.length_with_inserts(), config_.rollout.response_length,
                                                             reward.overlong_buffer, reward.overlong_factor));
  }
}

}  // namespace ucas
