#include "support/synthetic_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/text/json.h"
#include "records/run/run_directory.h"
#include "records/run/step_data.h"

namespace ucas {

namespace {

constexpr int64_t kSamples = 64, kKept = 3;

// 0 at the start, 1 at the end, the turn at a quarter of the way.
double learned(double step, double steps) { return 1 / (1 + std::exp(-14 * (step / std::max(1.0, steps) - 0.25))); }

double round6(double value) { return std::round(value * 1e6) / 1e6; }

std::string problem_text(int64_t i) {
  return str("Synthetic problem ", i, ": a = ", 3 + i % 7, ", b = a + ", 1 + i % 5,
             ", c = b * 2. What is c modulo 30?");
}

int64_t gold_of(int64_t i) { return (3 + i % 7 + 1 + i % 5) * 2 % 30; }

std::string response_text(int64_t i, bool worked, int64_t answer) {
  if (!worked) return str("\\boxed{", answer, "}");
  int64_t a = 3 + i % 7, b = a + 1 + i % 5;
  return str("a = ", a, "\nb = ", a, " + ", 1 + i % 5, " = ", b, "\nc = ", b, " * 2 = ", b * 2, "\n\\boxed{", answer,
             "}");
}

OrderedJson step_row(const SyntheticRun& run, int64_t step, Rng& rng) {
  double t = learned(static_cast<double>(step), static_cast<double>(run.steps));
  auto noise = [&](double size) { return size * rng.normal(); };
  double entropy = run.troubled ? 0.6 * std::exp(-step) : 0.59 + t * (0.05 - 0.59) + noise(0.008);
  const double gained = run.troubled ? 0 : t * (run.final_accuracy - 0.23);  // in trouble it learns nothing
  double score = std::clamp(0.13 + gained + noise(0.012), 0.0, 1.0);
  double length = 5.6 + 12.8 * t + noise(0.2);
  OrderedJson row;
  row["training/global_step"] = step;
  row["training/epoch"] = 0;
  for (const char* name : {"critic/score", "critic/rewards"}) {
    row[str(name, "/mean")] = round6(score);
    row[str(name, "/max")] = 1;
    row[str(name, "/min")] = 0;
  }
  row["critic/advantages/mean"] = round6(noise(0.004));
  row["actor/entropy"] = round6(entropy);
  row["actor/pg_loss"] = round6(noise(0.01));
  row["actor/pg_clipfrac"] = round6(std::fabs(noise(0.004)));
  row["actor/ppo_kl"] = round6(noise(0.001));
  if (run.troubled && step == 3) {
    row["actor/grad_norm"] = nullptr;
  } else {
    row["actor/grad_norm"] = round6(0.4 + 0.8 * t * (1 - t) * 4 + std::fabs(noise(0.05)));
  }
  row["actor/lr"] = 5e-4 * std::min(1.0, static_cast<double>(step) / 5);
  row["response_length/mean"] = round6(length);
  row["response_length/clip_ratio"] = run.troubled ? 0.4 : round6(std::fabs(noise(0.002)));
  row["self_certainty/mean"] = round6(6.2 + 5 * t + noise(0.05));
  row["rollout/logprob_diff_max"] = run.troubled ? 0.02 : 0.0;
  row["rollout/logprob_diff_share"] = run.troubled ? 0.1 : 0.0;
  row["train/num_gen_batches"] = 1 + step % 2;
  row["train/dead_groups"] = run.troubled ? 0.8 : round6(std::clamp(0.06 + 0.25 * t + noise(0.02), 0.0, 1.0));
  row["train/solve_all"] = run.troubled ? 0.1 : round6(0.25 * t);
  row["train/solve_none"] = run.troubled ? 0.7 : round6(0.06 * (1 - t));
  row["train/skipped_steps"] = run.troubled ? 1 : 0;
  row["verifier/unparseable_share"] = run.troubled ? 0.3 : round6(0.02 * (1 - t));
  if (run.method == "ucas") {
    row["ucas/weight/std"] = round6(0.22 + noise(0.01));
    row["ucas/clamped_share"] = round6(0.03 + std::fabs(noise(0.004)));
    row["ucas/net_advantage/mean"] = round6(-0.05 + noise(0.01));
  }
  double gen = 0.11 + 0.03 * t, update = 0.30, testing = step % 3 == 0 ? 0.13 : 0;
  row["timing_s/gen"] = round6(gen);
  row["timing_s/reward"] = 0.003;
  row["timing_s/old_log_prob"] = 0.06;
  row["timing_s/adv"] = 0.001;
  row["timing_s/update_actor"] = round6(update);
  if (testing > 0) row["timing_s/testing"] = testing;
  row["timing_s/step"] = round6(gen + update + testing + 0.07);
  row["perf/throughput"] = round6(768 * (20 + length) / (gen + update + 0.07));
  row["perf/cpu_memory_used_gb"] = 0.41;
  if (step % 3 == 0)
    row["val-core/synthetic/acc/mean@1"] =
        round6(std::clamp(0.067 + (run.troubled ? 0 : t * (run.final_accuracy - 0.067)) + noise(0.008), 0.0, 1.0));
  return row;
}

OrderedJson figure(double value, double half) {
  return {{"value", round6(value)},
          {"low", round6(std::max(0.0, value - half))},
          {"high", round6(std::min(1.0, value + half))}};
}

void write_evaluation(const std::string& directory, const SyntheticRun& run, Rng& rng) {
  bool trained = !run.method.empty();
  double greedy = trained ? run.final_accuracy : 0.067, sampled = trained ? run.final_accuracy - 0.1 : 0.134;
  std::string rows;
  int64_t right = 0;
  double sum = 0;
  std::vector<int64_t> right_of(run.sources.size());
  for (int64_t i = 0; i < run.problems; ++i) {
    const size_t s = static_cast<size_t>(i) % run.sources.size();
    const std::string& source = run.sources[s];
    bool ok = rng.uniform() < greedy;
    right += ok;
    right_of[s] += ok;
    int64_t correct = 0;
    for (int64_t s = 0; s < kSamples; ++s) correct += rng.uniform() < sampled;
    sum += static_cast<double>(correct) / kSamples;
    auto response = [&](bool good) {
      int64_t answer = good ? gold_of(i) : (gold_of(i) + 7) % 30;
      std::string text = run.response.empty() ? response_text(i, trained, answer) : run.response;
      return OrderedJson{{"response", text},
                         {"verdict", good ? "equal" : "unequal"},
                         {"answer", str(answer)},
                         {"tokens", trained ? 18 : 5},
                         {"finished", true},
                         {"logprob", round6(-0.2 - (good ? 0 : 0.8) - 0.01 * static_cast<double>(i % 13))},
                         {"entropy", trained ? 0.033 : 0.59},
                         {"confidence", round6(12 + (good ? 1.5 : 0) + 0.1 * static_cast<double>(i % 7))}};
    };
    OrderedJson row = {{"id", str("synthetic/", i)},
                       {"source", source},
                       {"problem", run.response.empty() ? problem_text(i) : run.response},
                       {"gold", {str(gold_of(i))}},
                       {"greedy", response(ok)},
                       {"samples", kSamples},
                       {"correct", correct},
                       {"mean_length", trained ? 18.4 : 5.6},
                       {"responses", OrderedJson::array()}};
    for (int64_t s = 0; s < kKept; ++s) row["responses"].push_back(response(s < correct * kKept / kSamples));
    rows += row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  }
  double n = static_cast<double>(run.problems), share = static_cast<double>(right) / n, mean = sum / n;
  OrderedJson json = {{"label", run.label},
                      {"model", "synthetic/checkpoint"},
                      {"step", trained ? run.steps : 0},
                      {"data", "synthetic-test"},
                      {"problems", run.problems},
                      {"greedy", {{"pass@1", figure(share, 1.96 * std::sqrt(share * (1 - share) / n) + 0.5 / n)}}},
                      {"samples", kSamples},
                      {"temperature", 1.0},
                      {"mean@k", OrderedJson::array()},
                      {"pass@k", OrderedJson::array()},
                      {"entropy", trained ? 0.033 : 0.59},
                      {"length", trained ? 18.4 : 5.6},
                      {"truncated_share", run.troubled ? 0.3 : 0.0},
                      {"unparseable_share", run.troubled ? 0.2 : 0.004},
                      {"interval", "invented for tests"},
                      {"seed", run.seed}};
  OrderedJson at = figure(mean, 0.012);
  at["k"] = 16;
  json["mean@k"].push_back(at);
  for (int64_t k : {1, 2, 4, 8, 16, 32, 64}) {
    at = figure(1 - std::pow(1 - mean, static_cast<double>(k)), 0.03 / std::sqrt(static_cast<double>(k)));
    at["k"] = k;
    json["pass@k"].push_back(at);
  }
  // Every set its own figures; pass@k from its greedy answers, so that sets differ.
  for (size_t s = 0; run.sources.size() > 1 && s < run.sources.size(); ++s) {
    const double of = static_cast<double>(run.problems) / static_cast<double>(run.sources.size());
    const double own = static_cast<double>(right_of[s]) / of;
    OrderedJson numbers = {{"problems", static_cast<int64_t>(of)}, {"greedy", {{"pass@1", figure(own, 0.1)}}}};
    for (int64_t k : {1, 4}) {
      at = figure(1 - std::pow(1 - own, static_cast<double>(k)), 0.02);
      at["k"] = k;
      numbers["pass@k"].push_back(at);
    }
    json["by_source"][run.sources[s]] = std::move(numbers);
  }
  make_directories(path_join(directory, "eval"));
  write_file(path_join(directory, "eval/final.json"), json.dump(1) + "\n");
  write_file(path_join(directory, "eval/final.jsonl"), rows);
}

void write_rollouts(const std::string& directory, const SyntheticRun& run, int64_t step) {
  std::string rows;
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t s = 0; s < 4; ++s) {
      bool good = step > 1 ? s != 3 : s == 0;
      int64_t answer = good ? gold_of(i) : 11;
      OrderedJson row = {
          {"step", step},
          {"problem", str("synthetic-train/", i)},
          {"source", "synthetic"},
          {"prompt", problem_text(i)},
          {"gold", {str(gold_of(i))}},
          {"sample", s},
          {"response", run.response.empty() ? response_text(i, step > 1 || s == 0, answer) : run.response},
          {"tokens", 12},
          {"finished", s != 2},
          {"score", good ? 1 : 0},
          {"reward", good ? 1 : 0},
          {"verdict", good ? "equal" : "unequal"},
          {"answer", str(answer)},
          {"reason", ""},
          {"advantage_mean", good ? 0.8 : -0.6}};
      rows += row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
    }
  }
  make_directories(path_join(directory, "rollouts"));
  std::string digits = str(step);
  write_file(path_join(directory, str("rollouts/step-", std::string(7 - digits.size(), '0'), digits, ".jsonl")), rows);
}

// Single tokens of one prompt, right and wrong, and what another method would have made of them. Where model text is
// replaced, so is every name in the files.
void write_signals(const std::string& directory, const SyntheticRun& run, int64_t step) {
  bool replaced = !run.response.empty();
  StepData data;
  data.step = step;
  data.method = run.method;
  data.groups_of_step = 2;
  data.problem = {replaced ? run.response : "synthetic-train/0"};
  data.question = {replaced ? run.response : problem_text(0)};
  data.gold = {{replaced ? run.response : str(gold_of(0))}};
  Batch& b = data.batch;
  b.groups = {{0, 0, 2, {1, 2}}};
  data.trace = {{"A", false, {1, -1}}, {replaced ? run.response : "l_hat", true, {}}};
  for (int64_t i = 0; i < 2; ++i) {
    Response o;
    o.first = b.token_count();
    o.length = 3 + i;
    o.sample = i;
    o.reward = o.score = static_cast<float>(1 - i);
    o.verdict = {i == 0 ? VerdictKind::equal : VerdictKind::unequal, replaced ? run.response : "11", "", -1};
    for (int64_t t = 0; t < o.length; ++t) {
      float depth = static_cast<float>(t + 1) / 8;
      b.token.push_back(static_cast<int32_t>(40 + t));
      data.piece.push_back(replaced ? run.response : str("t", t));
      b.old_logprob.push_back(-depth);
      b.entropy.push_back(depth);
      b.confidence.push_back(10 - depth);
      b.logit.push_back(12 + depth);
      data.trace[1].values.push_back(static_cast<float>(t) / static_cast<float>(o.length - 1));
      data.advantage.push_back((i == 0 ? 1.0f : -1.0f) * (1 - depth));
    }
    b.responses.push_back(o);
  }
  b.rollout_logprob = b.old_logprob;
  make_directories(path_join(directory, "signals"));
  write_file(path_join(directory, str("signals/", step_name(step), ".jsonl")), step_data_lines(data));
}

}  // namespace

std::string write_synthetic_run(const std::string& path, const SyntheticRun& run) {
  make_directories(path);
  Rng rng(static_cast<uint64_t>(run.seed), run.method.size() * 1000 + run.label.size());
  OrderedJson env = {{"version", "0.0.0-synthetic"},
                     {"torch", "2.0.0-synthetic"},
                     {"isa", "avx512"},
                     {"isa_reason", "best of this CPU"},
                     {"device", "cpu"},
                     {"threads", 2},
                     {"started", "2026-01-02T03:04:05Z"},
                     {"model", "synthetic tiny model"},
                     {"data", "synthetic problems"},
                     {"parameters", 262144}};
  if (!run.label.empty()) env["label"] = run.label;
  write_file(path_join(path, "env.json"), env.dump(1) + "\n");
  if (!run.method.empty()) {
    write_file(path_join(path, "config.toml"),
               str("label = \"", run.label, "\"\nmodel = \"/synthetic/base\"\nseed = ", run.seed,
                   "\n[rollout]\nn = 16\ntemperature = 1.0\n"
                   "[method]\nname = \"",
                   run.method, "\"\n", run.method == "ucas" ? "alpha = 0.25\nbeta = 0.01\n" : "",
                   "[objective]\nclip_low = 0.2\nclip_high = 0.28\n[train]\nsteps = ", run.steps, "\n"));
    std::string steps;
    for (int64_t step = 1; step <= run.steps; ++step) steps += step_row(run, step, rng).dump() + "\n";
    write_file(path_join(path, "steps.jsonl"), steps);
    write_rollouts(path, run, 1);
    write_rollouts(path, run, run.steps);
    write_signals(path, run, 1);
    write_signals(path, run, run.steps);
  }
  write_evaluation(path, run, rng);
  return path;
}

std::vector<std::string> write_synthetic_demo(const std::string& root, int64_t seeds) {
  std::vector<std::string> paths;
  for (int64_t seed = 0; seed < seeds; ++seed) {
    double shift = 0.002 * static_cast<double>(seed);
    SyntheticRun base, dapo, ucas;
    base.label = "base";
    dapo.method = "dapo";
    ucas.method = "ucas";
    base.seed = dapo.seed = ucas.seed = seed;
    dapo.final_accuracy = 0.985 + shift;
    ucas.final_accuracy = 0.98 + shift;
    paths.push_back(write_synthetic_run(path_join(root, str("base-seed", seed)), base));
    paths.push_back(write_synthetic_run(path_join(root, str("dapo-seed", seed)), dapo));
    paths.push_back(write_synthetic_run(path_join(root, str("ucas-seed", seed)), ucas));
  }
  return paths;
}

}  // namespace ucas
