// Cases of advantages: rewards and signals in, A_it out, with every step on the way that the method records.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "methods/registry.h"
#include "support/case_kinds.h"

namespace ucas::testing {

namespace {

// Figures that a method records under another name than the case's.
const std::map<std::string, std::vector<std::string>> kTraceNames = {
    {"conf", {"C"}},       {"conf_sum", {"C"}}, {"scale", {"f"}}, {"token_rewards", {"r_prm"}},
    {"reward_sum", {"r"}}, {"returns", {"R"}},
};

const Recording::Row* trace_row(const Recording& recording, const std::string& figure) {
  std::vector<std::string> names = {figure};
  if (auto other = kTraceNames.find(figure); other != kTraceNames.end()) {
    names.insert(names.end(), other->second.begin(), other->second.end());
  }
  for (const std::string& name : names) {
    for (const Recording::Row& row : recording.rows) {
      if (row.name == name) return &row;
    }
  }
  return nullptr;
}

// What belongs to responses in the case may be recorded per token, and the other way round.
void compare_row(CaseRun& run, const CaseBatch& made, const std::string& figure, const Recording::Row& row) {
  if (row.per_token) {
    run.tokens_are(figure, made.packed(row.values));
  } else {
    run.each_token_is(figure, made.by_row(row.values));
  }
}

void compare_advantages(CaseRun& run, const CaseBatch& made, std::span<const float> advantage) {
  if (!run.wants("advantages")) return;
  const Json& expected = run.expected("advantages");
  if (!expected.empty() && expected.front().is_array()) return run.tokens_are("advantages", made.packed(advantage));
  std::vector<double> by_row;  // one number per response: all its tokens must have it
  for (size_t at : made.response_of_row) {
    const Response& o = made.batch.responses[at];
    auto A = advantage.subspan(static_cast<size_t>(o.first), static_cast<size_t>(o.length));
    for (float a : A) {
      if (a != A.front()) run.report().fail("advantages differ between the tokens of a response");
    }
    by_row.push_back(A.empty() ? 0 : A.front());
  }
  run.responses_are("advantages", by_row);
}

void check_row(CaseRun& run, const std::string& row) {
  std::unique_ptr<Method> method = open_method(row, run.variant());
  CaseBatch made = case_batch(run);
  apply_options(run, *method);
  std::vector<float> advantage(made.batch.token.size(), std::nanf(""));
  Recording recording;
  method->advantages(made.batch, advantage, recording);
  compare_advantages(run, made, advantage);
  for (const std::string& figure : run.uncompared()) {
    if (const Recording::Row* found = trace_row(recording, figure)) compare_row(run, made, figure, *found);
  }
  if (run.wants("returns")) {
    if (method->needs().critic) {
      std::vector<float> returns(advantage.size(), std::nanf(""));
      method->returns(made.batch, returns);
      run.tokens_are("returns", made.packed(returns));
    }
  }
}

}  // namespace

void check_advantages(CaseRun& run) { check_row(run, registry_name(run.method())); }

}  // namespace ucas::testing
