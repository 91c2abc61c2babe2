#include "train/collect/scorer.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/process/python_child.h"
#include "base/str.h"
#include "data/problems.h"
#include "train/collect/training_set.h"
#include "verify/sandbox/sandbox.h"

namespace ucas {

namespace {

constexpr int64_t kScorersOwn = 1024;  // MiB of address space for the packages that scorers import

// Of the data, for a function that is called with their columns as TRL and verl call it.
std::map<std::string, std::string> rows_for_reward(const TrainConfig& config) {
  if (config.reward.python.empty() || config.reward.python == kTaskScorers) return {};
  ProblemOptions options = problem_options(config);
  options.labels = false;
  return read_source_rows(config.data.files, options);
}

// The program that scores responses, with its arguments.
std::vector<std::string> scorer_words(const TrainConfig& config) {
  if (!config.reward.command.empty()) return {"/bin/sh", "-c", config.reward.command};
  if (config.reward.python != kTaskScorers) return python_words("reward", {config.reward.python});
  // Scorers of reasoning-gym evaluate what the model wrote: in the sandbox, and nowhere else.
  const code::CodeOptions& code = config.reward.code;
  const code::Sandbox sandbox(code);
  std::vector<std::string> arguments = {"score", launcher_of_forks(sandbox, "the scorers of reasoning-gym"),
                                        str(code.wall_seconds), str(code.cpu()),
                                        str((code.memory_mib + kScorersOwn) << 20)};
  arguments.insert(arguments.end(), config.data.files.begin(), config.data.files.end());
  return python_words("reasoning", arguments);
}

// Loads a reward's function and calls it on two problems of the data, each with its answer in a box, in a Python that
// ends.
void check_call_of_reward(const TrainConfig& config) {
  constexpr size_t kRows = 2, kLongestWord = 60000;  // of a command line
  const std::map<std::string, std::string> rows = rows_for_reward(config);
  if (rows.empty()) return;
  ProblemOptions options = problem_options(config);
  options.labels = false;
  const std::vector<Problem> problems = read_problems(config.data.files, options);
  const Verdict none;
  const int32_t id = 0;
  std::vector<std::string> responses;
  std::vector<RewardAsk> asks;
  responses.reserve(kRows);
  for (const Problem& problem : problems) {
    const auto row = rows.find(problem.id);
    if (row == rows.end() || row->second.size() + problem.text.size() > kLongestWord) continue;
    responses.push_back(str("\\boxed{", problem.gold.empty() ? "" : problem.gold.front().substr(0, 1000), "}"));
    asks.push_back({problem, responses.back(), 1, true, none, &row->second, {&id, 1}});
    if (asks.size() == kRows) break;
  }
  if (asks.empty()) return;
  std::vector<std::string> words = {"check", config.reward.python};
  for (const std::string& line : split(trim(reward_lines(asks)), '\n')) words.push_back(line);
  run_python("reward", words, config.reward.scorer());
}

}  // namespace

void check_outside(const TrainConfig& config) {
  check_python_function("reward.python", config.reward.python == kTaskScorers ? "" : config.reward.python);
  check_python_function("method.python", config.method_python);
  check_call_of_reward(config);
}

std::unique_ptr<RewardCommand> start_scorer(const TrainConfig& config) {
  if (!config.reward.from_outside()) return nullptr;
  auto command =
      std::make_unique<RewardCommand>(scorer_words(config), config.reward.scorer(), config.reward.command_seconds);
  command->tell_rows(rows_for_reward(config));
  return command;
}

}  // namespace ucas
