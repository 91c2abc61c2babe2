#include "support/algorithm_cases.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/str.h"
#include "methods/aggregate.h"
#include "methods/clipped_ratio.h"
#include "methods/kl.h"
#include "methods/registry.h"
#include "stats/samples.h"
#include "support/batches.h"
#include "support/loss_methods.h"

namespace ucas::testing {

namespace {

void flatten(const Json& value, std::vector<double>& out) {
  if (value.is_array()) {
    for (const Json& item : value) flatten(item, out);
  } else {
    out.push_back(value.get<double>());
  }
}

// The valid slots of a padded [B, T] array, row after row; `rows` are lengths.
std::vector<int64_t> lengths_of(const Json& mask) {
  std::vector<int64_t> lengths;
  for (const Json& row : mask) {
    int64_t length = 0;
    for (const Json& m : row) length += m.get<int64_t>();
    lengths.push_back(length);
  }
  return lengths;
}

std::vector<float> row_of(const Json& padded, size_t row, int64_t length) {
  std::vector<float> values;
  for (int64_t t = 0; t < length; ++t) values.push_back(padded.at(row).at(static_cast<size_t>(t)).get<float>());
  return values;
}

Json packed(const Json& padded, const Json& mask) {
  Json flat = Json::array();
  std::vector<int64_t> lengths = lengths_of(mask);
  for (size_t row = 0; row < lengths.size(); ++row) {
    for (int64_t t = 0; t < lengths[row]; ++t) flat.push_back(padded.at(row).at(static_cast<size_t>(t)));
  }
  return flat;
}

Batch batch_of(const Json& in) {
  std::vector<int64_t> lengths = lengths_of(in.at("mask"));
  std::vector<Row> rows;
  std::vector<Json> uids;
  for (size_t i = 0; i < lengths.size(); ++i) {
    Json uid = in.at("uid").at(i);
    auto seen = std::find(uids.begin(), uids.end(), uid);
    Row row;
    row.group = seen - uids.begin();
    if (seen == uids.end()) uids.push_back(uid);
    row.reward = in.at("rewards").at(i).get<float>();
    row.logit.resize(static_cast<size_t>(lengths[i]));
    row.confidence = row.logit;
    if (in.contains("confidence")) row.confidence = row_of(in.at("confidence"), i, lengths[i]);
    if (in.contains("chosen_logit")) row.logit = row_of(in.at("chosen_logit"), i, lengths[i]);
    rows.push_back(row);
  }
  return make_batch(rows);
}

LossCase loss_case_of(const Json& in) {
  LossCase loss;
  std::vector<int64_t> lengths = lengths_of(in.at("mask"));
  for (size_t i = 0; i < lengths.size(); ++i) {
    auto row = [&](const char* key) {
      return in.contains(key) ? row_of(in.at(key), i, lengths[i]) : std::vector<float>();
    };
    loss.add(row("logp"), row("old_logp"), row("advantages"), row("entropy"), row("ref_logp"));
  }
  return loss;
}

Setting setting(const char* key, const Json& value) {
  return {key, value.is_string() ? value.get<std::string>() : value.dump(), "case", true};
}

void check_advantages(const Json& c, CaseReport& report, const std::string& method_name) {
  const Json &in = c.at("inputs"), &expected = c.at("expected");
  std::vector<Setting> settings;
  for (const char* key : {"eps", "ddof", "alpha", "alpha_pos", "alpha_neg", "beta", "group_of_one"}) {
    if (in.contains(key)) settings.push_back(setting(key, in.at(key)));
  }
  std::unique_ptr<Method> method = make_method(method_name);
  ucas::apply(*method, settings);
  Batch batch = batch_of(in);
  std::vector<float> advantage(batch.token.size());
  Trace trace;
  method->advantages(batch, advantage, trace);
  report.close("advantages", advantage, packed(expected.at("advantages"), in.at("mask")));
  for (const Trace::Row& row : trace.rows) {
    if (!expected.contains(row.name)) continue;
    const Json& want = expected.at(row.name);
    report.close(row.name, row.values, row.per_token ? packed(want, in.at("mask")) : want);
  }
}

void check_kl(const Json& c, CaseReport& report) {
  const std::map<std::string, KlEstimator> by_name = {{"k1", KlEstimator::k1},
                                                      {"abs", KlEstimator::abs},
                                                      {"k2", KlEstimator::k2},
                                                      {"k3", KlEstimator::k3},
                                                      {"k3+", KlEstimator::k3_plus}};
  const Json& in = c.at("inputs");
  for (size_t i = 0; i < in.at("logp").size(); ++i) {
    KlTerm kl = kl_term(by_name.at(c.at("variant")), in.at("logp")[i], in.at("ref_logp")[i]);
    report.close("value", kl.value, c.at("expected").at("value")[i].get<double>());
    report.close("gradient", kl.d_logprob, c.at("expected").at("grad_logp")[i].get<double>());
  }
}

// "token-mean", "seq-mean-token-sum-norm(const=3)", "drgrpo-oat" ...
std::optional<Aggregation> aggregation_of(const std::string& name) {
  std::string mode = name.substr(0, name.find('('));
  if (mode == "token-mean") return Aggregation::token_mean;
  if (mode == "seq-mean-token-mean") return Aggregation::seq_mean_token_mean;
  if (mode == "seq-mean-token-sum") return Aggregation::seq_mean_token_sum;
  if (mode == "seq-mean-token-sum-norm" || mode == "verl") return Aggregation::seq_mean_token_sum_norm;
  if (mode == "drgrpo-oat" || mode == "oat") return Aggregation::row_mean_token_sum_norm;
  return std::nullopt;
}

ObjectiveConfig objective_of(const Json& in) {
  ObjectiveConfig objective;
  objective.dual_clip = in.value("clip_c", 0.0);
  objective.clip_low = in.value("clip_low", in.value("clip", 0.2));
  objective.clip_high = in.value("clip_high", in.value("clip", 0.2));
  objective.norm_length = in.value("const", 3.0);
  objective.entropy_coeff = in.value("entropy_coeff", 0.0);
  objective.kl_coeff = in.value("kl_coeff", 0.0);
  return objective;
}

// The per-token loss and its derivative, unscaled, then every aggregate of it, in one piece and token by token.
void check_loss(const Json& c, CaseReport& report, const Method& method, const Json& aggregates) {
  const Json &in = c.at("inputs"), &expected = c.at("expected");
  LossCase mini = loss_case_of(in);
  ObjectiveConfig objective = objective_of(in);
  LossBuffer buffer;
  LossOutput out = buffer.view(mini.tokens());
  LossInput input = mini.input();
  input.objective = &objective;
  method.token_loss(input, out);
  auto compare = [&](const char* key, std::span<const float> got) {
    if (expected.contains(key)) {
      report.close(key, std::vector<float>(got.begin(), got.end()), packed(expected.at(key), in.at("mask")));
    }
  };
  compare("per_token", out.loss);
  compare("grad_per_token", out.d_logprob);
  for (const auto& [name, value] : aggregates.items()) {
    objective.aggregation = aggregation_of(name).value();
    for (size_t micro : {0, 1, 3}) {
      ObjectiveResult result = run_objective(method, objective, mini, micro);
      report.close(name, result.loss, value.get<double>());
      report.close(name + " (metric)", result.metrics.pg_loss, value.get<double>());
      for (auto [key, got] : {std::pair{"clipfrac", result.metrics.clipfrac},
                              {"clipfrac_lower", result.metrics.clipfrac_lower},
                              {"ppo_kl", result.metrics.ppo_kl}}) {
        if (expected.contains(key)) report.close(key, got, expected.at(key).get<double>());
      }
    }
  }
}

// Loss and gradients of the whole objective (entropy bonus and KL loss included) from automatic differentiation.
void check_objective(const Json& c, CaseReport& report) {
  const Json &in = c.at("inputs"), &expected = c.at("expected");
  LossCase mini = loss_case_of(in);
  ObjectiveConfig objective = objective_of(in);
  std::unique_ptr<Method> method = make_method("dapo");
  for (const auto& [name, want] : expected.items()) {
    objective.aggregation = aggregation_of(name).value();
    for (size_t micro : {0, 1, 2}) {
      ObjectiveResult result = run_objective(*method, objective, mini, micro);
      report.close(name, result.loss, want.at("loss").get<double>());
      report.close(name + " d logprob", result.d_logprob, packed(want.at("d_logp"), in.at("mask")));
      report.close(name + " d entropy", result.d_entropy, packed(want.at("d_entropy"), in.at("mask")));
      report.close(name + " entropy", result.metrics.entropy, want.at("entropy").get<double>());
      report.close(name + " KL", result.metrics.kl_loss, want.at("kl").get<double>());
      report.close(name + " clipfrac", result.metrics.clipfrac, want.at("clipfrac").get<double>());
      report.close(name + " clipfrac_lower", result.metrics.clipfrac_lower, want.at("clipfrac_lower").get<double>());
      report.close(name + " ppo_kl", result.metrics.ppo_kl, want.at("ppo_kl").get<double>());
    }
  }
}

// Token losses given: only how they are averaged.
void check_aggregation(const Json& in, const char* losses, CaseReport& report, const Json& expected, size_t micro) {
  Json numbered = in.at(losses);  // each token's number, carried as its advantage
  std::vector<float> values;
  for (Json& row : numbered) {
    for (Json& x : row) {
      values.push_back(x.get<float>());
      x = values.size() - 1;
    }
  }
  Json inputs = {{"mask", in.at("mask")}, {"advantages", numbered}, {"logp", numbered}, {"old_logp", numbered}};
  std::unique_ptr<Method> method = make_fixed_loss(values);
  ObjectiveConfig objective;
  objective.norm_length = in.value("const", 1.0);
  for (const auto& [name, value] : expected.items()) {
    objective.aggregation = aggregation_of(name).value();
    report.close(name, run_objective(*method, objective, loss_case_of(inputs), micro).loss, value.get<double>());
  }
}

void check_forking_tokens(const Json& c, CaseReport& report) {
  const Json &in = c.at("inputs"), &expected = c.at("expected");
  ObjectiveConfig objective = objective_of(in);
  bool released = c.at("variant") == "released";
  std::unique_ptr<Method> method = make_forking_tokens(in.at("rho"), released);
  LossCase mini = loss_case_of(in);
  ObjectiveResult result = run_objective(*method, objective, mini, 0);
  report.close("loss", result.loss, expected.at(released ? "loss_div_selected" : "loss_div_all").get<double>());
}

void check_pass_at_k(const Json& c, CaseReport& report) {
  std::vector<double> values;
  for (int64_t right : c.at("inputs").at("c")) {
    for (int64_t k : c.at("inputs").at("k")) values.push_back(pass_at_k({c.at("inputs").at("n"), right}, k));
  }
  report.close("value", values, c.at("expected").at("value"));
}

// Runs the check for one case; false where its formula is not in this library.
bool check(const Json& c, CaseReport& report) {
  std::string id = c.at("id"), method = c.at("method"), variant = c.at("variant");
  const Json &in = c.at("inputs"), &expected = c.at("expected");
  if (method == "objective") {
    check_objective(c, report);
  } else if ((method == "grpo" || method == "dapo") && variant == "dual-clip") {
    check_loss(c, report, *make_method(method), expected.at("loss"));
  } else if (method == "grpo") {
    check_advantages(c, report, "grpo");
    check_advantages(c, report, "dapo");
  } else if (method == "ucas" && variant == "paper") {
    check_advantages(c, report, "ucas");
  } else if (method == "kl") {
    check_kl(c, report);
  } else if (id == "drgrpo-loss") {
    Json aggregates = {{"oat", expected.at("oat")}, {"verl", expected.at("verl")}};
    check_loss(c, report, *make_method("grpo"), aggregates);
  } else if (method == "agg_loss") {
    for (size_t micro : {0, 1, 2}) check_aggregation(in, "loss", report, expected, micro);
  } else if (method == "accumulation") {
    for (size_t micro : {0, 1, 2, 3}) {
      check_aggregation(in, "per_token", report, {{"token-mean", expected.at("exact")}}, micro);
    }
  } else if (method == "gspo") {
    check_loss(c, report, *make_gspo(), {{"seq-mean-token-mean", expected.at("loss")}});
  } else if (method == "high-entropy-20") {
    check_forking_tokens(c, report);
  } else if (method == "pass@k") {
    check_pass_at_k(c, report);
  } else {
    return false;
  }
  return true;
}

}  // namespace

void CaseReport::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}

void CaseReport::close(const std::string& what, double got, double expected) {
  ++compared_;
  double difference = std::fabs(got - expected);
  worst_ = std::max(worst_, difference);
  if (!(difference <= tolerance_ * (1 + std::fabs(expected)))) fail(str(what, ": got ", got, ", expected ", expected));
}

void CaseReport::close(const std::string& what, const std::vector<double>& got, const Json& expected) {
  std::vector<double> want;
  flatten(expected, want);
  if (want.size() != got.size()) return fail(str(what, ": got ", got.size(), " numbers, expected ", want.size()));
  for (size_t i = 0; i < got.size(); ++i) close(str(what, "[", i, "]"), got[i], want[i]);
}

void CaseReport::close(const std::string& what, const std::vector<float>& got, const Json& expected) {
  close(what, std::vector<double>(got.begin(), got.end()), expected);
}

std::vector<CaseResult> run_algorithm_cases(const std::string& path, const std::map<std::string, CaseCheck>& more) {
  Json file = read_json(path, int64_t{64} << 20);
  std::vector<CaseResult> results;
  for (const Json& c : file.at("cases")) {
    CaseResult result{c.at("id"), c.at("method"), c.at("variant"), "", CaseOutcome::not_covered, 0};
    CaseReport report;
    bool covered = true;
    try {
      auto own = more.find(result.id);
      if (own == more.end()) own = more.find(result.method);
      if (own != more.end()) {
        own->second(c, report);
      } else {
        covered = check(c, report);
      }
    } catch (const std::exception& error) {
      report.fail(error.what());
    }
    if (covered && report.compared() == 0) report.fail("nothing was compared");
    if (covered) result.outcome = report.failure().empty() ? CaseOutcome::passed : CaseOutcome::failed;
    result.detail = report.failure();
    result.worst = report.worst();
    results.push_back(result);
  }
  return results;
}

std::string shared_algorithm_cases() {
  const char* data = std::getenv("UCAS_SHARED_DATA");
  std::string path = path_join(data != nullptr ? data : path_join(UCAS_SOURCE_DIR, "../shared/data"),
                               "../design/algorithm-cases.json");
  return exists(path) ? path : "";
}

}  // namespace ucas::testing
