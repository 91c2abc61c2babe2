// Inputs of a case as the program's own structures.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "support/case_kinds.h"

namespace ucas::testing {

namespace {

// One row of the case, before groups are put together.
struct CaseRow {
  size_t number = 0;  // in the case
  size_t group = 0;
};

void append(std::vector<float>& to, const std::vector<float>& from) { to.insert(to.end(), from.begin(), from.end()); }

std::vector<CaseRow> rows_by_group(CaseRun& run, std::vector<Json>& uids) {
  std::vector<CaseRow> rows;
  for (size_t i = 0; i < run.rows(); ++i) {
    Json uid = run.has("uid") ? run.in("uid").at(i) : Json(0);
    auto seen = std::ranges::find(uids, uid);
    rows.push_back({i, static_cast<size_t>(seen - uids.begin())});
    if (seen == uids.end()) uids.push_back(uid);
  }
  std::ranges::stable_sort(rows, {}, &CaseRow::group);
  return rows;
}

// Token rewards: the last token's is the response's reward, the others come as negative penalties.
void set_token_rewards(CaseRun& run, size_t row, Response& o, Batch& batch) {
  std::vector<float> r = run.tokens("token_rewards", row);
  double penalty = 0;
  for (size_t t = 0; t < r.size(); ++t) {
    batch.reward_kl.push_back(t + 1 < r.size() ? -r[t] : 0);
    penalty += batch.reward_kl.back();
  }
  o.score = r.empty() ? 0 : r.back();
  o.kl_penalty = static_cast<float>(penalty);
  o.reward = static_cast<float>(o.score - penalty);
}

// Parts of the reward, by name, and their weights.
void set_terms(CaseRun& run, size_t row, Response& o, Batch& batch) {
  batch.reward_terms.clear();
  for (const auto& [name, values] : run.in("terms").items()) {
    batch.reward_terms.push_back({name, run.in("term_weights").at(name).get<double>()});
    o.terms.push_back(values.at(row).get<float>());
  }
}

// Answers that are the same text share a class; null and "" were not readable.
void set_answer(CaseRun& run, size_t row, std::vector<std::string>& classes, Verdict& verdict) {
  const Json& answer = run.in("answers").at(row);
  if (answer.is_null() || answer == "") {
    verdict.kind = VerdictKind::unparseable;
    return;
  }
  verdict.kind = VerdictKind::unequal;
  verdict.answer = answer.is_string() ? answer.get<std::string>() : answer.dump();
  auto seen = std::ranges::find(classes, verdict.answer);
  verdict.answer_class = static_cast<int32_t>(seen - classes.begin());
  if (seen == classes.end()) classes.push_back(verdict.answer);
}

void set_signals(CaseRun& run, size_t row, Response& o, Batch& batch) {
  auto n = static_cast<size_t>(o.length);
  auto signal = [&](std::vector<float>& to, const char* key) {
    if (run.has(key)) {
      append(to, run.tokens(key, row));
    } else {
      to.resize(to.size() + n);
    }
  };
  signal(batch.confidence, "confidence");
  signal(batch.logit, "chosen_logit");
  signal(batch.entropy, "entropy");
  signal(batch.signal("value"), "values");
  signal(batch.signal("prm_logratio"), "q");
  signal(batch.signal("ref_logprob"), "ref_logp");
  signal(batch.signal("teacher_logprob"), "teacher_logp");
  signal(batch.rollout_logprob, "rollout_logp");
  if (run.has("seq_logp")) {  // mean log-prob of the response's tokens
    batch.old_logprob.insert(batch.old_logprob.end(), n, run.in("seq_logp").at(row).get<float>());
  } else {
    signal(batch.old_logprob, "old_logp");
  }
  // The slots behind the tokens hold what the release's unmasked sum picks up there.
  if (run.has("confidence") && run.has("mask")) o.tail_confidence = static_cast<float>(run.outside("confidence", row));
  if (run.has("responses")) {
    const Json& ids = run.in("responses").at(row);
    for (size_t slot : run.slots(row)) batch.token.push_back(ids.at(slot).get<int32_t>());
  } else {
    batch.token.resize(batch.token.size() + n);
  }
}

}  // namespace

CaseBatch case_batch(CaseRun& run) {
  CaseBatch made;
  Batch& batch = made.batch;
  made.response_of_row.resize(run.rows());
  std::vector<std::string> classes;
  for (const CaseRow& row : rows_by_group(run, made.uid_of_group)) {
    if (batch.groups.size() == row.group) {
      Group group;
      group.problem = static_cast<int64_t>(row.group);
      group.first = static_cast<int64_t>(batch.responses.size());
      batch.groups.push_back(group);
      classes.clear();
    }
    Response o;
    o.first = batch.token_count();
    o.length = run.length(row.number);
    o.group = static_cast<int64_t>(row.group);
    o.sample = batch.groups.back().count++;
    if (run.has("token_rewards")) {
      set_token_rewards(run, row.number, o, batch);
    } else {
      const char* key = run.has("rewards") ? "rewards" : "acc";
      o.score = o.reward = run.has(key) ? run.in(key).at(row.number).get<float>() : 0;
    }
    if (run.has("acc")) o.verdict.kind = o.reward > 0 ? VerdictKind::equal : VerdictKind::unequal;
    if (run.has("terms")) set_terms(run, row.number, o, batch);
    if (run.has("answers")) set_answer(run, row.number, classes, o.verdict);
    set_signals(run, row.number, o, batch);
    made.response_of_row[row.number] = batch.responses.size();
    batch.responses.push_back(o);
  }
  return made;
}

LossCase case_mini_batch(CaseRun& run) {
  LossCase mini;
  for (size_t i = 0; i < run.rows(); ++i) {
    auto n = static_cast<size_t>(run.length(i));
    auto row = [&](const char* key) { return run.has(key) ? run.tokens(key, i) : std::vector<float>(n); };
    mini.add(row("logp"), row("old_logp"), row("advantages"), row("entropy"), row("ref_logp"));
    if (run.has("uid")) mini.sequences.back().group = run.in("uid").at(i).get<int64_t>();
    if (run.has("rollout_logp")) {
      std::vector<float> rollout = run.tokens("rollout_logp", i);
      std::copy(rollout.begin(), rollout.end(), mini.rollout_logprob.end() - static_cast<std::ptrdiff_t>(n));
    }
    for (auto [key, to] : {std::pair{"margin", &mini.margin}, {"minp_logp", &mini.min_p_logprob}}) {
      if (!run.has(key)) continue;
      const std::vector<float> given = run.tokens(key, i);
      std::ranges::copy(given, to->end() - static_cast<std::ptrdiff_t>(n));
    }
  }
  return mini;
}

}  // namespace ucas::testing
