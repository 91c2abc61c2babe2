#include "train/loop/replay.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "config/train_config.h"
#include "records/run/run_directory.h"
#include "records/run/step_data.h"
#include "rollout/environment/environment.h"
#include "rollout/policy.h"
#include "rollout/rollouter.h"
#include "train/state/fingerprint.h"
#include "train/update/self_check.h"

namespace ucas {

namespace {

// Where the weights before a step are; "" where nowhere.
std::string weights_before(const RunDirectory& run, const TrainConfig& config, int64_t step) {
  if (step > 1) return is_directory(run.checkpoint(step - 1)) ? run.checkpoint(step - 1) : "";
  return is_directory(config.model) ? config.model : "";
}

std::string numbers(const std::vector<int64_t>& steps) {
  std::vector<std::string> texts;
  for (int64_t step : steps) texts.push_back(str(step));
  return texts.empty() ? "none" : join(texts, ", ");
}

int64_t step_to_replay(const RunDirectory& run, const TrainConfig& config, int64_t asked) {
  const std::vector<int64_t> with_signals = steps_with_signals(run.path());
  std::vector<int64_t> both;
  for (int64_t step : with_signals) {
    if (!weights_before(run, config, step).empty()) both.push_back(step);
  }
  if (asked == 0 && !both.empty()) return both.back();
  if (std::ranges::find(both, asked) != both.end()) return asked;
  throw Error(ErrorKind::path,
              str(run.path(), ": ", asked == 0 ? "no step can" : str("step ", asked, " cannot"),
                  " be replayed: it takes the step's signals (train.stored_signals = 1 keeps those of every step; "
                  "there are those of steps ",
                  numbers(with_signals),
                  ") and the weights before it (the checkpoint of the step before, which "
                  "train.save_freq = 1 and train.keep keep, or for step 1 ",
                  printable(config.model, 200), "); both are there of steps ", numbers(both)));
}

Replayed compare(const StepData& kept, const Response& o, const Episode& now, const Tokenizer& tokenizer) {
  const auto ids = Batch::tokens(kept.batch.token, o);
  const auto logprob = Batch::tokens(kept.batch.rollout_logprob, o);
  Replayed out;
  out.problem = kept.problem[static_cast<size_t>(o.group)];
  out.sample = o.sample;
  out.tokens = o.length;
  out.text = response_text(tokenizer, now.token);
  out.kept = response_text(tokenizer, ids);
  const auto said = std::ranges::mismatch(o.inserts, now.inserts);
  const int64_t other_insert = said.in1 != o.inserts.end()     ? said.in1->at
                               : said.in2 != now.inserts.end() ? said.in2->at
                                                               : std::ssize(ids) + std::ssize(now.token);
  for (size_t t = 0; t < std::max(ids.size(), now.token.size()); ++t) {
    if (std::cmp_equal(t, other_insert) || t >= ids.size() || t >= now.token.size() || ids[t] != now.token[t]) {
      out.first_other = static_cast<int64_t>(t);
      break;
    }
    out.largest = std::max(out.largest, static_cast<double>(std::fabs(logprob[t] - now.logprob[t])));
  }
  return out;
}

// What is kept of them: what an environment is reset to.
std::vector<Problem> problems_of(const StepData& kept) {
  std::vector<Problem> problems(kept.problem.size());
  for (size_t g = 0; g < problems.size(); ++g) {
    problems[g].id = kept.problem[g];
    if (!kept.question.empty()) problems[g].text = kept.question[g];
    if (!kept.gold.empty()) problems[g].gold = kept.gold[g];
  }
  return problems;
}

}  // namespace

Replay replay(const std::string& path, const ReplayAsk& ask) {
  RunDirectory::check_started(path);
  const RunDirectory run = RunDirectory::watch(path);
  const TrainConfig config = make_train_config(read_toml(path_join(path, "config.toml")));
  Replay out;
  out.step = step_to_replay(run, config, ask.step);
  out.weights = weights_before(run, config, out.step);
  const std::string was = run.environment("initial_weights");
  if (out.step == 1 && !was.empty() && was != hash_of_model(config.model)) {
    throw Error(ErrorKind::path, str(printable(config.model, 200), ": other weights than when ", path, " was started"));
  }
  const StepData kept = read_step_data(run.signals_file(out.step));
  std::vector<PromptJob> jobs;
  std::vector<int64_t> rows;
  const std::vector<Problem> problems = problems_of(kept);
  for (size_t i = 0; i < kept.batch.responses.size(); ++i) {
    const Response& o = kept.batch.responses[i];
    const Group& group = kept.batch.groups[static_cast<size_t>(o.group)];
    if (!ask.problem.empty() && kept.problem[static_cast<size_t>(o.group)] != ask.problem) continue;
    if (ask.sample >= 0 && o.sample != ask.sample) continue;
    jobs.push_back({.prompt = group.prompt,
                    .problem = static_cast<uint32_t>(group.problem),
                    .first_sample = static_cast<uint32_t>(o.sample),
                    .asked = &problems[static_cast<size_t>(o.group)]});
    rows.push_back(static_cast<int64_t>(i));
  }
  if (jobs.empty()) {
    throw Error(ErrorKind::usage, str("step ", out.step, " of ", path, " kept no such response; it has those to ",
                                      printable(join(kept.problem, ", "), 300)));
  }
  use_threads(ask.threads);
  const std::string tokenizer = tokenizer_directory(run, out.weights, config.model);
  Policy policy = open_policy(out.weights, parse_device(config.device), config.model_options(), tokenizer);
  require_sound_gpu(*policy.model);
  const std::unique_ptr<Rollouter> engine = make_engine(*policy.model, {});
  RolloutRequest request;
  request.jobs = jobs;
  request.sampling = config.rollout.sampling();
  request.seed = static_cast<uint64_t>(config.seed);
  request.step = static_cast<uint32_t>(out.step);
  request.limits.stop_ids = kept.batch.stop_ids;
  const Template form = load_template(config.data.prompt_template, tokenizer, config.data.examples);
  request.limits.ends = ends_at(policy.tokenizer, stops_of(form, config.rollout.stop, policy.tokenizer).texts);
  std::unique_ptr<Rollouter> answered;
  if (config.rollout.environment.some()) {
    answered = with_environment(*engine, config.rollout.environment, config.reward.code, policy.tokenizer);
  }
  for (const Episode& s : (answered ? *answered : *engine).run(request)) {
    const Response& o = kept.batch.responses[static_cast<size_t>(rows[static_cast<size_t>(s.job)])];
    out.responses.push_back(compare(kept, o, s, policy.tokenizer));
  }
  return out;
}

}  // namespace ucas
