#include "train/collect/reward.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/process/activity.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "base/text/json.h"
#include "base/text/json_object.h"
#include "objective/filter/dynamic_sampling.h"
#include "records/run/rollouts.h"
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

std::string verdict_lines(std::span<const Verdict> verdicts) {
  std::string lines;
  for (const Verdict& v : verdicts) {
    lines += json_text(OrderedJson{
                 {"verdict", name_of(v.kind)}, {"answer", v.answer}, {"reason", v.reason}, {"score", v.score}}) +
             "\n";
  }
  return lines;
}

std::vector<Verdict> parse_verdicts(const std::string& lines) {
  std::vector<Verdict> verdicts;
  for (size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1) {
    const JsonObject row = JsonObject::parse(std::string_view(lines).substr(at, end - at), "verdicts of the leader");
    Verdict& v = verdicts.emplace_back();
    v.kind = verdict_of(row).value_or(VerdictKind::unparseable);
    v.answer = row.text_or("answer", "");
    v.reason = row.text_or("reason", "");
    v.score = static_cast<float>(row.number_or("score", 0));
  }
  return verdicts;
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

  // nullopt: not begun. Throws what the grader threw.
  std::optional<Verdict> take(const Key& key) {
    std::future<Verdict> future;
    {
      const std::lock_guard lock(guard_);
      const auto found = begun_.find(key);
      if (found == begun_.end()) return std::nullopt;
      future = std::move(found->second);
      begun_.erase(found);
    }
    return future.get();
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
  if (has_slow() && ranks.alone()) prefetched_ = std::make_unique<PrefetchedStep>();
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

// Verdicts of all responses: those begun before, those that this rank computes, those that the leader tells.
void Rewards::grade(std::span<const PaidGroup> groups, std::span<const Key> keys) {
  std::map<const Grader*, std::vector<Answer>> answers;
  std::map<const Grader*, std::vector<Response*>> places;
  std::map<const Grader*, const Problem*> problems;  // the first of each
  size_t number = 0;
  for (const PaidGroup& group : groups) {
    const Grader& grader = graders_.for_source(group.problem.source);
    for (size_t i = 0; i < group.response.size(); ++i, ++number) {
      if (prefetched_ && grader.is_slow() && number < keys.size()) {
        if (auto verdict = prefetched_->take(keys[number])) {
          group.response[i].verdict = std::move(*verdict);
          continue;
        }
      }
      problems.try_emplace(&grader, &group.problem);
      answers[&grader].push_back({group.text[i], &group.problem.gold});
      places[&grader].push_back(&group.response[i]);
    }
  }
  // In an order that all ranks share, though their graders lie elsewhere: the leader speaks for all slow ones at once.
  std::vector<Response*> told;
  std::vector<Answer> asked;
  const Grader* slow = nullptr;
  for (auto& [grader, of_grader] : answers) {
    if (grader->is_slow() && !ranks_.alone()) {
      UCAS_CHECK(slow == nullptr, "expected at most one slow grader");
      slow = grader;
      told = places[grader];
      asked = of_grader;
      continue;
    }
    const Doing doing(str("grading ", of_grader.size(), " responses of source ",
                          printable(problems[grader]->source, 60), ", the first to ",
                          printable(problems[grader]->id, 60)));
    std::vector<Verdict> verdicts = grader->grade(of_grader);
    for (size_t i = 0; i < verdicts.size(); ++i) places[grader][i]->verdict = std::move(verdicts[i]);
  }
  if (slow == nullptr) return;
  const std::string own = ranks_.leads() ? verdict_lines(slow->grade(asked)) : "";
  std::vector<Verdict> verdicts = parse_verdicts(ranks_.from_leader("verdicts of slow graders", own));
  UCAS_CHECK(verdicts.size() == told.size(), "expected one verdict per response");
  for (size_t i = 0; i < verdicts.size(); ++i) told[i]->verdict = std::move(verdicts[i]);
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
