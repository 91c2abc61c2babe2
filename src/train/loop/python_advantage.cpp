#include "train/loop/python_advantage.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/text/json.h"
#include "train/collect/reward_command.h"

namespace ucas {

namespace {

constexpr size_t kLongestAnswer = size_t{1} << 32;  // bytes: some twenty for each token of a step

template <class T>
OrderedJson values_of(const std::vector<T>& values, const Response& response) {
  if (values.empty()) return nullptr;
  const std::span<const T> its = Batch::tokens(values, response);
  return std::vector<T>(its.begin(), its.end());
}

// Of the rewards of a group: mean, and the deviation with n - 1.
std::pair<double, double> moments_of(std::span<const Response> group) {
  double mean = 0, squares = 0;
  for (const Response& o : group) mean += o.reward;
  mean /= static_cast<double>(group.size());
  for (const Response& o : group) squares += (o.reward - mean) * (o.reward - mean);
  return {mean, group.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(group.size() - 1))};
}

std::vector<std::string> advantage_words(const std::string& function) {
  // reward.py's text goes along: the function is loaded as a reward is.
  std::vector<std::string> words = {"env",
                                    "UCAS_REWARD_BRIDGE=" + std::string(embedded("python/ucas/reward.py").value())};
  for (std::string& word : python_words("advantage", {function})) words.push_back(std::move(word));
  return words;
}

}  // namespace

std::string advantage_line(int64_t step, const Batch& batch, const std::vector<Problem>& problems,
                           const std::vector<float>& own) {
  OrderedJson line = {{"id", 0}, {"step", step}, {"responses", OrderedJson::array()}};
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const std::span<const Response> group = batch.of(batch.groups[g]);
    const auto [mean, deviation] = moments_of(group);
    for (const Response& o : group) {
      line["responses"].push_back({{"group", g},
                                   {"problem", problems[static_cast<size_t>(batch.groups[g].problem)].id},
                                   {"reward", o.reward},
                                   {"score", o.score},
                                   {"right", o.verdict.kind == VerdictKind::equal},
                                   {"length", o.length},
                                   {"finished", o.finished},
                                   {"trained", o.trained},
                                   {"group_mean", mean},
                                   {"group_std", deviation},
                                   {"advantage", values_of(own, o)},
                                   {"token", values_of(batch.token, o)},
                                   {"logprob", values_of(batch.old_logprob, o)},
                                   {"entropy", values_of(batch.entropy, o)},
                                   {"confidence", values_of(batch.confidence, o)}});
    }
  }
  return json_text(line) + "\n";
}

std::vector<float> parse_advantages(const std::string& line, const Batch& batch, const std::string& name) {
  std::vector<float> advantage(static_cast<size_t>(batch.token_count()), 0);
  try {
    const Json json = parse_json_rows(line, name);
    const Json& lists = json.at("advantages");
    if (lists.size() != batch.responses.size()) throw Error(ErrorKind::reward, str(lists.size(), " advantages"));
    for (size_t i = 0; i < batch.responses.size(); ++i) {
      const Response& o = batch.responses[i];
      if (static_cast<int64_t>(lists[i].size()) != o.length)
        throw Error(ErrorKind::reward, "one number for each token is expected");
      for (int64_t t = 0; t < o.length && o.trained; ++t) {
        const auto value = static_cast<float>(lists[i][static_cast<size_t>(t)].get<double>());
        if (!std::isfinite(value)) throw Error(ErrorKind::reward, "a value that is not finite");
        advantage[static_cast<size_t>(o.first + t)] = value;
      }
    }
  } catch (const std::exception& error) {
    throw Error(ErrorKind::reward, str(name, ": ", error.what()), kIoFailure);
  }
  return advantage;
}

PythonAdvantages::PythonAdvantages(std::string function, double seconds, Ranks& ranks)
    : name_(str("method.python ", printable(function, 200))), ranks_(ranks) {
  if (!ranks_.leads()) return;
  child_ = std::make_unique<LineChild>(advantage_words(function),
                                       LineChildOptions{.name = name_,
                                                        .seconds = seconds,
                                                        .seconds_option = "reward.command_seconds",
                                                        .kind = ErrorKind::reward,
                                                        .consequence = after_failure("advantages"),
                                                        .longest = kLongestAnswer});
}

std::vector<float> PythonAdvantages::ask(int64_t step, const Batch& batch, const std::vector<Problem>& problems,
                                         const std::vector<float>& own) {
  std::string mine;
  if (child_) mine = child_->ask(advantage_line(step, batch, problems, own), 1);
  return parse_advantages(ranks_.from_leader("advantages of method.python", mine), batch, name_);
}

}  // namespace ucas
