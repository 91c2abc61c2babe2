#include "train/collect/scorer.h"

#include <string>
#include <utility>
#include <vector>

#include "base/process/python_child.h"
#include "base/str.h"
#include "data/problems.h"
#include "train/collect/reward_command.h"
#include "train/collect/training_set.h"
#include "verify/sandbox/sandbox.h"

namespace ucas {

namespace {

constexpr const char* kWaitsForEnd =
    "; does it wait for the end of its input? That stays open from step to step: read line by line (for line in "
    "sys.stdin), answer each line or batch at once, and flush (print(.., flush=True))";
constexpr int64_t kScorersOwn = 1024;  // MiB of address space for the packages that scorers import

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

// Loads a reward's function and calls it on two problems of the files, each with its answer in a box, in a Python that
// ends.
void check_call_of_reward(const TrainConfig& config, bool validation) {
  constexpr size_t kRows = 2, kLongestWord = 60000;  // of a command line
  const std::vector<std::string>& files = validation ? config.data.val_files : config.data.files;
  if (files.empty()) return;
  ProblemOptions options = problem_options(config, validation);
  options.most = 64;  // among which two are that short
  std::vector<std::string> rows, responses;
  const std::vector<Problem> problems = read_problems(files, options, &rows);
  const Verdict none;
  const int32_t id = 0;
  std::vector<RewardAsk> asks;
  responses.reserve(kRows);
  for (size_t i = 0; i < problems.size() && asks.size() < kRows; ++i) {
    const Problem& problem = problems[i];
    if (rows[i].size() + problem.text.size() > kLongestWord) continue;
    responses.push_back(str("\\boxed{", problem.gold.empty() ? "" : problem.gold.front().substr(0, 1000), "}"));
    asks.push_back({problem, responses.back(), 1, true, none, &rows[i], {&id, 1}});
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
  if (!config.reward.asks_rows()) return;
  check_call_of_reward(config, false);
  if (config.train.test_freq > 0) check_call_of_reward(config, true);
}

std::unique_ptr<LineChild> start_scorer(const TrainConfig& config) {
  if (!config.reward.from_outside()) return nullptr;
  return std::make_unique<LineChild>(scorer_words(config),
                                     LineChildOptions{.name = config.reward.scorer(),
                                                      .seconds = config.reward.command_seconds,
                                                      .seconds_option = "reward.command_seconds",
                                                      .kind = ErrorKind::reward,
                                                      .advice = config.reward.command.empty() ? "" : kWaitsForEnd,
                                                      .consequence = after_failure("rewards")});
}

}  // namespace ucas
