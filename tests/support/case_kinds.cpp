#include "support/case_kinds.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "methods/registry.h"

namespace ucas::testing {

namespace {

// One option of a method may be called differently in articles and cases.
const std::map<std::string, std::string> kOtherNames = {{"lam", "lambda"},
                                                        {"zero_token", "zero_tokens"},
                                                        {"norm_adv_by_std_in_grpo", "norm_by_std"},
                                                        {"norm_adv_by_std", "norm_by_std"},
                                                        {"b_prime", "b"}};

std::string setting_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {  // 2.0 for an option that counts
    double x = value.get<double>();
    if (x == static_cast<double>(static_cast<int64_t>(x))) return str(static_cast<int64_t>(x));
  }
  return value.dump();
}

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

std::vector<std::string> option_names(Method& method) {
  std::vector<std::string> keys;
  Fielder list = [](Fields& f, void* m) { static_cast<Method*>(m)->fields(f); };
  for (const FieldValue& field : list_fields(list, &method)) keys.push_back(field.key);
  return keys;
}

std::string option_for(const std::string& key, const std::vector<std::string>& options) {
  auto other = kOtherNames.find(key);
  std::string name = other == kOtherNames.end() ? key : other->second;
  for (const std::string& option : options) {
    if (last_part(option) == name) return option;
  }
  return "";
}

bool is_method_row(const std::string& name) {
  return std::ranges::any_of(method_rows(), [&](const MethodRow& row) { return row.name == name; });
}

void check_row(CaseRun& run) {
  if (run.has("advantages")) return check_policy_loss(run);
  check_advantages(run);
}

const std::map<std::string, CaseKind> kPlainKinds = {
    {"objective", check_objective},
    {"agg_loss", check_aggregation},
    {"accumulation", check_accumulation},
    {"kl", check_kl_estimator},
    {"ktae", check_ktae},
    {"ppo-gae", check_gae},
    {"ppo", check_gae},
    {"value-loss", check_value_loss},
    {"tis", check_mismatch},
    {"pass@k", check_pass_at_k},
};

}  // namespace

bool has_engine_cases() { return case_kinds().contains("lm-head"); }

// A method's cases may be of several kinds; their inputs say which.
static std::string kind_of(const CaseRun& run) {
  static const std::pair<const char*, const char*> by_input[] = {
      {"gen_batches", "dynamic-sampling"}, {"max_len", "overlong"}, {"vpred", "value-loss"},
      {"token_scores", "kl-in-reward"},    {"rollout_logp", "tis"}, {"q", "prime"},
  };
  for (auto [input, kind] : by_input) {
    if (run.has(input)) return kind;
  }
  return run.method();
}

void check_case(CaseRun& run) {
  std::string kind = kind_of(run);
  const std::map<std::string, CaseKind>* tables[] = {&case_kinds(), &kPlainKinds};
  for (const auto* kinds : tables) {
    if (auto own = kinds->find(kind); own != kinds->end()) return own->second(run);
  }
  if (kind != run.method()) throw NotCovered{str("no check for ", kind)};
  registry_name(run.method());
  check_row(run);
}

std::string registry_name(const std::string& method) {
  static const std::map<std::string, std::string> other = {{"ppo-gae", "ppo"},
                                                           {"high-entropy-20", "forking_tokens"},
                                                           {"80/20", "forking_tokens"},
                                                           {"reinforce++", "reinforce_pp"},
                                                           {"reinforce++-baseline", "reinforce_pp_baseline"},
                                                           {"dr-grpo", "drgrpo"}};
  auto found = other.find(method);
  std::string name = found == other.end() ? method : found->second;
  std::ranges::replace(name, '-', '_');
  if (!is_method_row(name)) throw NotCovered{str("no check for ", method)};
  return name;
}

std::unique_ptr<Method> open_method(const std::string& row, const std::string& variant) {
  std::string best;
  for (const std::string& preset : find_method(row).presets) {
    bool fits = variant == preset || variant.starts_with(preset + "-");
    if (fits && preset.size() > best.size()) best = preset;
  }
  return make_method(row, best);
}

void apply_options(CaseRun& run, Method& method) {
  std::vector<Setting> settings;
  std::vector<std::string> options = option_names(method);
  for (const std::string& key : run.unread()) {
    std::string option = option_for(key, options);
    if (option.empty()) continue;
    if (run.in(key).is_null()) continue;  // left at its default
    settings.push_back({option, setting_text(run.in(key)), str("inputs.", key), true});
  }
  ucas::apply(method, settings);
  method.validate();
}

ObjectiveConfig case_objective(CaseRun& run, const Method& method) {
  ObjectiveConfig objective = method.objective_defaults();
  double clip = run.number("clip", -1);
  objective.clip_low = run.number("clip_low", clip >= 0 ? clip : objective.clip_low);
  objective.clip_high = run.number("clip_high", clip >= 0 ? clip : objective.clip_high);
  objective.dual_clip = run.number("clip_c", 0.0);
  double width = run.has("mask") && !run.in("mask").empty() ? static_cast<double>(run.in("mask").at(0).size()) : 1;
  objective.norm_length = run.number("const", width);
  objective.entropy_coeff = run.number("entropy_coeff", 0);
  objective.kl_coeff = run.number("kl_coeff", 0);
  return objective;
}

void set_aggregation(ObjectiveConfig& objective, const std::string& name) {
  static const std::map<std::string, Aggregation> by_name = {
      {"token-mean", Aggregation::token_mean},
      {"seq-mean-token-mean", Aggregation::seq_mean_token_mean},
      {"seq-mean-token-sum", Aggregation::seq_mean_token_sum},
      {"seq-mean-token-sum-norm", Aggregation::seq_mean_token_sum_norm},
      {"verl", Aggregation::seq_mean_token_sum_norm},
      {"drgrpo-oat", Aggregation::row_mean_token_sum_norm},
      {"oat", Aggregation::row_mean_token_sum_norm},
      {"group-token-mean", Aggregation::group_token_mean},
  };
  size_t bracket = name.find('(');
  auto found = by_name.find(name.substr(0, bracket));
  if (found == by_name.end()) throw Error(ErrorKind::schema, str("unknown aggregation ", printable(name)));
  objective.aggregation = found->second;
  constexpr std::string_view kConstant = "(const=";
  if (bracket == std::string::npos) return;
  if (name.compare(bracket, kConstant.size(), kConstant) != 0)
    throw Error(ErrorKind::schema, str("aggregation ", name));
  objective.norm_length = std::stod(name.substr(bracket + kConstant.size()));
}

std::vector<double> CaseBatch::packed(std::span<const double> values) const {
  std::vector<double> out;
  for (size_t at : response_of_row) {
    const Response& o = batch.responses[at];
    auto of_row = values.subspan(static_cast<size_t>(o.first), static_cast<size_t>(o.length));
    out.insert(out.end(), of_row.begin(), of_row.end());
  }
  return out;
}

std::vector<double> CaseBatch::packed(std::span<const float> values) const {
  return packed(std::vector<double>(values.begin(), values.end()));
}

std::vector<double> CaseBatch::by_row(std::span<const float> values) const {
  std::vector<double> out;
  for (size_t at : response_of_row) out.push_back(values[at]);
  return out;
}

}  // namespace ucas::testing
