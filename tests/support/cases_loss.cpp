// Cases of losses: log-probs and advantages in; per-token losses, their derivatives, and what becomes of them out.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "methods/registry.h"
#include "objective/aggregate.h"
#include "objective/loss/kl.h"
#include "objective/loss/selection.h"
#include "results/stats/samples.h"
#include "support/case_kinds.h"
#include "support/loss_methods.h"

namespace ucas::testing {

namespace {

// A method's own token losses, unscaled, over a whole mini-batch.
struct TokenLosses {
  LossBuffer buffer;
  LossOutput out;
  TokenLosses(const Method& method, const ObjectiveConfig& objective, const LossCase& mini) {
    out = buffer.view(mini.tokens(), method.needs().current);
    for (auto values : out.numbers()) std::ranges::fill(values, 0.0f);
    std::ranges::fill(out.clipped, uint8_t{0});
    LossInput in = mini.input();
    in.objective = &objective;
    method.token_loss(in, out);
  }
};

void compare_per_token(CaseRun& run, const Method& method, const ObjectiveConfig& objective, const LossCase& mini) {
  TokenLosses losses(method, objective, mini);
  run.tokens_are("per_token", losses.out.loss);
  run.tokens_are("grad_per_token", losses.out.d_logprob);
  for (const auto& [key, d] : losses.out.d_signals) run.tokens_are(str("grad_", key), d);
}

// What the method marks among the tokens, [N].
std::vector<uint8_t> marks_of(const Method& method, const ObjectiveConfig& objective, const LossCase& mini) {
  std::vector<uint8_t> mark(mini.logprob.size());
  select_tokens(method, objective, mini.input(), mark);
  return mark;
}

// How many tokens Clip-Cov would take if all were candidates.
size_t clip_number(CaseRun& run, const ObjectiveConfig& objective, const LossCase& mini) {
  std::unique_ptr<Method> method = open_method(registry_name(run.method()), run.variant());
  ucas::apply(*method,
              {{"ratio", run.number("ratio"), "case", false}, {"lb", -1e6, "case", false}, {"ub", 1e6, "case", false}});
  ObjectiveConfig open = objective;
  open.clip_low = 1;
  open.clip_high = 1e30;
  std::vector<uint8_t> mark = marks_of(*method, open, mini);
  return static_cast<size_t>(std::count(mark.begin(), mark.end(), 1));
}

void compare_selection(CaseRun& run, const Method& method, const ObjectiveConfig& objective, const LossCase& mini) {
  std::vector<double> selected(mini.mark.begin(), mini.mark.end()), H;
  run.tokens_are("selected", selected);
  run.number_is("k", static_cast<double>(std::count(mini.mark.begin(), mini.mark.end(), 1)));
  LossInput in = mini.input();
  in.objective = &objective;
  std::vector<TokenAt> tokens = valid_tokens(in);
  if (run.wants("cov")) run.tokens_are("cov", covariances(in, tokens));
  if (run.wants("clip_num")) run.number_is("clip_num", static_cast<double>(clip_number(run, objective, mini)));
  if (!run.wants("threshold")) return;
  if (run.variant() == "trl") {
    std::vector<double> all(mini.entropy.begin(), mini.entropy.end());
    run.number_is("threshold", quantile(all, 1 - run.number("rho")));
  } else {
    for (size_t t = 0; t < mini.mark.size(); ++t) {
      if (mini.mark[t] != 0) H.push_back(mini.entropy[t]);
    }
    run.number_is("threshold", H.empty() ? 0 : *std::min_element(H.begin(), H.end()));
  }
}

// The same choice of tokens under both denominators.
void compare_denominators(CaseRun& run, const LossCase& mini) {
  for (auto [figure, divide_by] : {std::pair{"loss_div_selected", "selected"}, {"loss_div_all", "all"}}) {
    if (!run.wants(figure)) continue;
    std::unique_ptr<Method> method = open_method(registry_name(run.method()), run.variant());
    run.forget_options();
    ObjectiveConfig objective = case_objective(run, *method);
    apply_options(run, *method);
    ucas::apply(*method, {{"divide_by", std::string(divide_by), "case", true}});
    for (size_t micro : {0, 1, 3}) run.number_is(figure, run_objective(*method, objective, mini, micro).loss);
  }
}

// A method that shapes the advantage at update time, read off its loss at ratio 1, which is -A'.
void compare_shaping(CaseRun& run, const Method& method, const ObjectiveConfig& objective, const LossCase& mini) {
  if (!run.wants("psi") && !run.wants("advantages")) return;
  LossCase on_policy = mini;
  on_policy.logprob = on_policy.old_logprob;
  TokenLosses losses(method, objective, on_policy);
  std::vector<double> A, psi;
  for (size_t t = 0; t < mini.advantage.size(); ++t) {
    A.push_back(-losses.out.loss[t]);
    psi.push_back(A.back() - mini.advantage[t]);
  }
  run.tokens_are("advantages", A);
  run.tokens_are("psi", psi);
}

// Figures on the way to the loss, read off the loss itself for advantages of +1 and -1: with A = -1 and no clip the
// clipped ratio's loss is the ratio, CISPO's derivative its weight, SAPO's loss its gate.
void compare_ratios(CaseRun& run, const Method& method, const ObjectiveConfig& objective, const LossCase& mini) {
  LossCase probe = mini;
  for (float& A : probe.advantage) A = -1;
  ObjectiveConfig open = objective;
  open.clip_low = 1;
  open.clip_high = 1e30;
  open.dual_clip = 0;
  if (run.wants("ratio")) run.tokens_are("ratio", TokenLosses(method, open, probe).out.loss);
  if (run.wants("seq_ratio")) {
    TokenLosses losses(method, open, probe);
    std::vector<double> ratios;
    for (const Sequence& s : mini.sequences) {
      ratios.push_back(s.length == 0 ? 1 : losses.out.loss[static_cast<size_t>(s.first)]);
    }
    run.responses_are("seq_ratio", ratios);
  }
  if (run.wants("weight")) run.tokens_are("weight", TokenLosses(method, objective, probe).out.d_logprob);
  if (run.wants("gate")) {
    for (size_t t = 0; t < probe.advantage.size(); ++t) probe.advantage[t] = mini.advantage[t] > 0 ? 1 : -1;
    TokenLosses losses(method, objective, probe);
    std::vector<double> gate;
    for (size_t t = 0; t < probe.advantage.size(); ++t) gate.push_back(-losses.out.loss[t] * probe.advantage[t]);
    run.tokens_are("gate", gate);
  }
}

// The mini-batch's loss, whole and cut into micro-batches.
void compare_loss(CaseRun& run, const Method& method, const ObjectiveConfig& objective, const LossCase& mini,
                  const std::string& name, double expected) {
  for (size_t micro : {0, 1, 3}) {
    ObjectiveResult result = run_objective(method, objective, mini, micro);
    run.report().close(name, result.loss, expected);
    run.report().close(name + " (metric)", result.metrics.pg_loss, expected);
    run.number_is("clipfrac", result.metrics.clipfrac);
    run.number_is("clipfrac_lower", result.metrics.clipfrac_lower);
    run.number_is("ppo_kl", result.metrics.ppo_kl);
  }
}

// expected.loss may be one number, under the method's own aggregation, or one by name of the aggregation.
void compare_losses(CaseRun& run, const Method& method, ObjectiveConfig objective, const LossCase& mini) {
  for (const char* name : {"oat", "verl"}) {
    if (!run.wants(name)) continue;
    set_aggregation(objective, name);
    compare_loss(run, method, objective, mini, name, run.expected(name).get<double>());
  }
  if (!run.wants("loss")) return;
  const Json& expected = run.expected("loss");
  if (expected.is_number()) return compare_loss(run, method, objective, mini, "loss", expected.get<double>());
  for (const auto& [name, value] : expected.items()) {
    ObjectiveConfig named = objective;
    set_aggregation(named, name);
    compare_loss(run, method, named, mini, name, value.get<double>());
  }
}

}  // namespace

void check_policy_loss(CaseRun& run) {
  std::unique_ptr<Method> method = open_method(registry_name(run.method()), run.variant());
  LossCase mini = case_mini_batch(run);
  ObjectiveConfig objective = case_objective(run, *method);
  apply_options(run, *method);
  if (method->needs().selection) {
    mini.mark = marks_of(*method, objective, mini);
    compare_selection(run, *method, objective, mini);
    compare_denominators(run, mini);
  }
  compare_shaping(run, *method, objective, mini);
  compare_per_token(run, *method, objective, mini);
  compare_ratios(run, *method, objective, mini);
  compare_losses(run, *method, objective, mini);
}

// Loss and gradients of the whole objective (entropy bonus and KL loss included) from automatic differentiation.
void check_objective(CaseRun& run) {
  std::unique_ptr<Method> method = make_method("dapo");
  LossCase mini = case_mini_batch(run);
  ObjectiveConfig objective = case_objective(run, *method);
  CaseReport& report = run.report();
  for (const std::string& name : run.uncompared()) {
    const Json& want = run.expected(name);
    set_aggregation(objective, name);
    for (size_t micro : {0, 1, 2}) {
      ObjectiveResult result = run_objective(*method, objective, mini, micro);
      report.close(name, result.loss, want.at("loss").get<double>());
      for (auto [key, got] : {std::pair{"d_logp", &result.d_logprob}, {"d_entropy", &result.d_entropy}}) {
        report.close(str(name, " ", key), *got, Json(run.valid(want.at(key), key)));
      }
      for (auto [key, got] : {std::pair{"entropy", result.metrics.entropy},
                              {"kl", result.metrics.kl_loss},
                              {"clipfrac", result.metrics.clipfrac},
                              {"clipfrac_lower", result.metrics.clipfrac_lower},
                              {"ppo_kl", result.metrics.ppo_kl}}) {
        report.close(str(name, " ", key), got, want.at(key).get<double>());
      }
    }
  }
}

namespace {

// Token losses given: only how they are averaged. The loss of each token is found by its number, which travels as its
// advantage.
struct GivenLosses {
  LossCase mini;
  std::unique_ptr<Method> method;
  GivenLosses(CaseRun& run, const char* key) {
    std::vector<float> losses;
    for (size_t i = 0; i < run.rows(); ++i) {
      std::vector<float> numbers;
      for (float loss : run.tokens(key, i)) {
        numbers.push_back(static_cast<float>(losses.size()));
        losses.push_back(loss);
      }
      std::vector<float> zeros(numbers.size());
      mini.add(zeros, zeros, numbers);
    }
    method = make_fixed_loss(losses);
  }
};

}  // namespace

void check_aggregation(CaseRun& run) {
  GivenLosses given(run, "loss");
  ObjectiveConfig objective = case_objective(run, *given.method);
  for (const std::string& name : run.uncompared()) {
    ObjectiveConfig named = objective;
    set_aggregation(named, name);
    for (size_t micro : {0, 1, 2}) {
      run.number_is(name, run_objective(*given.method, named, given.mini, micro).loss);
    }
  }
}

void check_accumulation(CaseRun& run) {
  GivenLosses given(run, "per_token");
  ObjectiveConfig objective;
  for (size_t micro : {0, 1, 2, 3}) {
    run.number_is("exact", run_objective(*given.method, objective, given.mini, micro).loss);
  }
  if (!run.wants("legacy_verl")) return;  // verl's former sum of micro-batch means, which is not implemented
  run.ignore("micro_batches");
  run.expected("legacy_verl");
}

KlEstimator kl_estimator_of(const std::string& name) {
  static const std::map<std::string, KlEstimator> by_name = {
      {"k1", KlEstimator::k1},         {"kl", KlEstimator::k1},       {"abs", KlEstimator::abs},
      {"k2", KlEstimator::k2},         {"mse", KlEstimator::k2},      {"k3", KlEstimator::k3},
      {"low_var_kl", KlEstimator::k3}, {"k3+", KlEstimator::k3_plus}, {"low_var_kl+", KlEstimator::k3_plus}};
  auto found = by_name.find(name);
  if (found == by_name.end()) throw NotCovered{str("no estimator ", name)};
  return found->second;
}

void check_kl_estimator(CaseRun& run) {
  KlEstimator estimator = kl_estimator_of(run.variant());
  std::vector<double> lp = flat(run.in("logp"), "inputs.logp"), ref = flat(run.in("ref_logp"), "inputs.ref_logp");
  if (lp.size() != ref.size()) throw Error(ErrorKind::schema, "logp and ref_logp differ in length");
  std::vector<double> value, gradient;
  for (size_t i = 0; i < lp.size(); ++i) {
    KlTerm kl = kl_term(estimator, lp[i], ref[i]);
    value.push_back(kl.value);
    gradient.push_back(kl.d_logprob);
  }
  run.numbers_are("value", value);
  run.numbers_are("grad_logp", gradient);
}

void check_pass_at_k(CaseRun& run) {
  std::vector<double> values;
  for (double right : flat(run.in("c"), "inputs.c")) {
    for (double k : flat(run.in("k"), "inputs.k")) {
      values.push_back(
          pass_at_k({static_cast<int64_t>(run.number("n")), static_cast<int64_t>(right)}, static_cast<int64_t>(k)));
    }
  }
  run.numbers_are("value", values);
}

}  // namespace ucas::testing
