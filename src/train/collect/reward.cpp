#include "train/collect/reward.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "objective/filter/dynamic_sampling.h"
#include "sharding/agreement.h"
#include "train/collect/reward_command.h"

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

Rewards::Rewards(const TrainConfig& config, const Graders& graders, Ranks& ranks, LineChild* command)
    : config_(config),
      graders_(graders),
      ranks_(ranks),
      command_(command),
      parts_(parse_reward_weights(config.reward.weights, config.reward.from_outside())),
      terms_(reward_terms(parts_)),
      format_(format_of(config.reward)) {}

// Verdicts of all responses.
void Rewards::grade(std::span<const GroupToScore> groups) {
  std::vector<GradeItem> items;
  std::vector<Response*> places;
  for (const GroupToScore& group : groups) {
    for (size_t i = 0; i < group.response.size(); ++i) {
      items.push_back({&group.problem, group.text[i]});
      places.push_back(&group.response[i]);
    }
  }
  std::vector<Verdict> verdicts = grade_shared(graders_, items, ranks_);
  for (size_t i = 0; i < verdicts.size(); ++i) places[i]->verdict = std::move(verdicts[i]);
}

std::vector<RewardReply> Rewards::ask(std::span<const GroupToScore> groups) const {
  if (!judges_all()) return {};
  std::vector<RewardAsk> asks;
  std::vector<int64_t> samples;
  for (const GroupToScore& group : groups) {
    for (size_t i = 0; i < group.response.size(); ++i) {
      const Response& o = group.response[i];
      asks.push_back({group.problem, group.text[i], o.length, o.finished, o.verdict, group.row,
                      group.ids.empty() ? std::span<const int32_t>() : group.ids[i]});
      samples.push_back(o.sample);
    }
  }
  const auto name = [&](size_t i) { return str(printable(asks[i].problem.id, 60), ", sample ", samples[i]); };
  const std::string own = command_ != nullptr ? command_->ask(reward_lines(asks), asks.size(), name) : "";
  return parse_rewards(ranks_.from_leader("rewards of the command", own), asks.size(), config_.reward.scorer());
}

void Rewards::score(std::span<const GroupToScore> groups) {
  grade(groups);
  for (const GroupToScore& group : groups) {
    if (!group.problem.gold.empty()) continue;
    for (Response& o : group.response) o.verdict.reason = "the problem has no right answer to compare with";
  }
  const std::vector<RewardReply> replies = ask(groups);
  std::span<const RewardReply> left = replies;
  for (const GroupToScore& group : groups) {
    const size_t count = std::min(left.size(), group.response.size());
    score_group(group, left.first(count));
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

void Rewards::score_group(const GroupToScore& group, std::span<const RewardReply> replies) const {
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
    // As in TRL, another part of the reward is a score, too.
    o.scored = reply == nullptr || !reply->none || parts_.size() > 1;
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
    const std::vector<double> rewards = length_rewards(lengths, right);
    for (size_t i = 0; i < rewards.size(); ++i)
      group.response[i].terms[static_cast<size_t>(length - parts_.begin())] = static_cast<float>(rewards[i]);
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
