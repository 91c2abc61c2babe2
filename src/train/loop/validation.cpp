#include "train/loop/validation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "evaluate/engine/evaluator.h"
#include "rollout/policy.h"

namespace ucas {

bool validates(const Training& t, bool finished) {
  const int64_t every = t.config.train.test_freq;
  return every > 0 && (t.state.step % every == 0 || finished);
}

namespace {

// Verdicts as the training has them; what the responses are worth to it goes into the metrics, by source.
std::vector<Verdict> verdicts_of_reward(const Training& t, std::span<const Responses> responses, StepMetrics& m) {
  struct Judged {
    std::vector<std::string> text = {};
    std::vector<std::span<const int32_t>> ids = {};
    std::vector<Response> response = {};
  };
  std::vector<Judged> judged(responses.size());
  std::vector<GroupToScore> groups;
  for (size_t i = 0; i < judged.size(); ++i) {
    Judged& one = judged[i];
    for (const auto* outputs : {&responses[i].greedy, &responses[i].samples}) {
      for (const Output& output : *outputs) {
        one.text.push_back(graded_text(t.policy.tokenizer, output.ids, output.finished, t.stop_ids));
        one.ids.emplace_back(output.ids);
        Response& o = one.response.emplace_back();
        std::tie(o.length, o.sample, o.finished) = std::tuple(output.length(), output.sample, output.finished);
        o.inserts = output.inserts;
      }
    }
    groups.push_back({t.validation.problems[i], one.text, one.response, one.ids, t.validation.row_of(i)});
  }
  const std::shared_ptr<Ranks> here = alone();
  Rewards(t.config, t.graders, *here, t.external.get()).score(groups);
  std::map<std::pair<std::string, int64_t>, std::pair<double, int64_t>> sums;  // by source and number of samples
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < judged.size(); ++i) {
    for (const Response& o : judged[i].response) {
      const int64_t samples = o.sample == kGreedySample ? 1 : std::ssize(responses[i].samples);
      auto& [sum, count] = sums[{t.validation.problems[i].source, samples}];
      sum += o.scored ? o.score : 0;
      count += o.scored ? 1 : 0;
      verdicts.push_back(o.verdict);
    }
  }
  for (const auto& [of, total] : sums) {
    const auto& [sum, count] = total;
    if (count > 0) m.set(metric::val_reward, {of.first, str(of.second)}, sum / static_cast<double>(count));
  }
  return verdicts;
}

}  // namespace

void validate(const Training& t, StepRecord& record) {
  auto clock = record.time(metric::timing_testing, "validating");
  EvalInput input;
  input.problems = t.validation.problems;
  input.prompts = t.validation.prompt;
  input.stop_ids = t.stop_ids;
  input.ends = ends_at(t.policy.tokenizer, t.stop_texts);
  input.label = "validation";
  input.show_progress = false;
  EvalConfig eval;
  eval.samples = t.config.train.val_n;
  eval.temperature = 1.0;
  eval.seed = t.config.seed;
  eval.max_tokens = t.config.rollout.response_length;
  eval.truncated = t.config.reward.truncated == Truncated::wrong ? Truncated::wrong : Truncated::grade;
  eval.bootstrap_draws = 0;
  eval.stored_responses = 0;
  input.scored = t.ranks->leads();
  if (t.config.reward.from_outside() || !t.config.reward.weights.empty()) {
    input.judge = [&](std::span<const Responses> responses) {
      return verdicts_of_reward(t, responses, record.metrics);
    };
  }
  EvalRecord result = evaluate(*t.rollout, t.policy.tokenizer, t.graders, input, eval);
  if (!input.scored) return;
  std::ranges::sort(result.by_source, {}, &std::pair<std::string, EvalNumbers>::first);
  StepMetrics& m = record.metrics;
  for (const auto& [source, numbers] : result.by_source) {
    if (numbers.greedy.known()) m.set(metric::val_accuracy, {source}, numbers.greedy.value);
    for (const FigureAt& mean : numbers.mean_at) {
      if (mean.k == eval.samples) m.set(metric::val_mean_at, {source, str(mean.k)}, mean.share.value);
    }
    for (const FigureAt& pass : numbers.pass_at) {
      if (pass.k > 1) m.set(metric::val_best_at, {source, str(pass.k)}, pass.share.value);
    }
    m.set(metric::val_problems, {source}, static_cast<double>(numbers.problems));
    m.set(metric::val_response_length, {source}, numbers.length);
    m.set(metric::val_truncated_share, {source}, numbers.truncated);
    m.set(metric::val_unparseable_share, {source}, numbers.unparseable);
  }
}

double value_of_best(const std::string& best_metric, const StepMetrics& metrics) {
  double sum = 0;
  int64_t count = 0;
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics.values()) {
    if (name.starts_with("val-")) names.push_back(name);
    if (!matches_star(name, best_metric)) continue;
    sum += value;
    ++count;
  }
  if (count > 0) return sum / static_cast<double>(count);
  throw Error(ErrorKind::config, str("train.best_metric = \"", printable(best_metric, 100),
                                     "\" is no number of a validation; there are ", join(names, ", ")));
}

void judge(Training& t, const StepMetrics& validated) {
  if (t.config.train.best_metric.empty()) return;
  const double value = value_of_best(t.config.train.best_metric, validated);
  BestStep& best = t.state.best;
  if (std::isfinite(value) && (best.step == 0 || value > best.value)) {
    best = {t.state.step, value};
  }
}

void say_best(const Training& t) {
  const BestStep& best = t.state.best;
  if (best.step == 0) return;
  log(str("the best ", t.config.train.best_metric, " was ", fixed(best.value, 4), ", at step ", best.step, ": ",
          t.run.checkpoint(best.step)));
}

}  // namespace ucas
