// Cases of KTAE's tables, of GAE and of the value loss.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "methods/registry.h"
#include "objective/advantage/key_tokens.h"
#include "objective/loss/value_loss.h"
#include "support/case_kinds.h"

namespace ucas::testing {

namespace {

void compare_key_token(CaseReport& report, const std::string& where, const KeyToken& got, const Json& expected) {
  const std::map<std::string, std::vector<double>> figures = {
      {"abcd",
       {static_cast<double>(got.table.a), static_cast<double>(got.table.b), static_cast<double>(got.table.c),
        static_cast<double>(got.table.d)}},
      {"p", {got.p}},
      {"F", {got.F}},
      {"IG", {got.IG}},
      {"TF", {got.TF_right, got.TF_wrong}},
      {"cohen", {got.arcsine}},
      {"D", {got.D}},
      {"K", {got.K}}};
  for (const auto& [key, want] : expected.items()) {
    auto figure = figures.find(key);
    if (figure == figures.end()) {
      report.fail(str("nothing compares ", where, ".", key));
    } else {
      report.close(str(where, ".", key), figure->second, want);
    }
  }
}

// expected.table: by the group's uid, or its number, then by token id.
void compare_tables(CaseRun& run, const KeyTokenConfig& config, const CaseBatch& made) {
  for (const auto& [name, table] : run.expected("table").items()) {
    size_t number = 0;
    while (number < made.uid_of_group.size()) {
      const Json& uid = made.uid_of_group[number];
      if ((uid.is_string() ? uid.get<std::string>() : uid.dump()) == name) break;
      ++number;
    }
    if (number == made.uid_of_group.size() && name.size() < 9 &&
        name.find_first_not_of("0123456789") == std::string::npos) {
      number = std::stoul(name);
    }
    if (number >= made.uid_of_group.size())
      throw Error(ErrorKind::schema, str("expected.table has no group ", printable(name)));
    auto keys = key_tokens(config, made.batch, made.batch.groups[number]);
    if (keys.size() != table.size() && !table.empty()) {
      run.report().fail(str("table of group ", name, ": got ", keys.size(), " ids, expected ", table.size()));
    }
    for (const auto& [id, expected] : table.items()) {
      auto found = keys.find(std::stoi(id));
      std::string where = str("table.", name, ".", id);
      if (found == keys.end()) {
        run.report().fail(str(where, ": no such id in the responses"));
      } else {
        compare_key_token(run.report(), where, found->second, expected);
      }
    }
  }
}

}  // namespace

void check_ktae(CaseRun& run) {
  check_advantages(run);
  if (!run.wants("table")) return;
  std::unique_ptr<Method> ktae = open_method(registry_name(run.method()), run.variant());
  CaseBatch made = case_batch(run);
  run.forget_options();
  apply_options(run, *ktae);
  Fielder list = [](Fields& f, void* m) { static_cast<Method*>(m)->fields(f); };
  KeyTokenConfig config;
  ucas::apply(config, parse_toml(dump_toml(list, ktae.get()), "ktae"), false);
  compare_tables(run, config, made);
}

void check_gae(CaseRun& run) {
  CaseBatch made = case_batch(run);
  for (auto [preset, figure] : {std::pair{"orz", "normalized_orz"}, {"verl", "whitened_verl"}}) {
    std::unique_ptr<Method> method = open_method(registry_name("ppo-gae"), preset);
    run.forget_options();
    apply_options(run, *method);
    std::vector<float> advantage(made.batch.token.size(), std::nanf("")), returns = advantage;
    Recording recording;
    method->advantages(made.batch, advantage, recording);
    method->returns(made.batch, returns);
    run.tokens_are(figure, made.packed(advantage));
    run.tokens_are("returns", made.packed(returns));
    for (const Recording::Row& row : recording.rows) {
      if (row.name == "A_gae") run.tokens_are("raw", made.packed(row.values));
    }
  }
}

void check_value_loss(CaseRun& run) {
  auto narrow = [](const std::vector<double>& values) { return std::vector<float>(values.begin(), values.end()); };
  std::vector<float> V = narrow(run.packed("vpred")), V_old = narrow(run.packed("old_values")),
                     R = narrow(run.packed("returns")), gradient(V.size());
  double n = static_cast<double>(V.size()), clip = run.number("clip");
  ValueLossMetrics whole;
  value_loss(V, V_old, R, clip, n, gradient, whole);
  run.number_is("loss", whole.vf_loss);
  run.number_is("clipfrac", whole.vf_clipfrac);
  run.tokens_are("grad", gradient);
  ValueLossMetrics cut;  // token by token
  for (size_t t = 0; t < V.size(); ++t) {
    value_loss({&V[t], 1}, {&V_old[t], 1}, {&R[t], 1}, clip, n, {&gradient[t], 1}, cut);
  }
  run.number_is("loss", cut.vf_loss);
}

}  // namespace ucas::testing
