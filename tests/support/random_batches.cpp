#include "support/random_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ucas::testing {

namespace {

constexpr float kEdges[] = {0.0f, -1e6f, 1e6f, 1e-30f, -1e-30f, 0.7f, 0.1f, 1e-6f};

float pick(Rng& rng, bool extreme, double ordinary) {
  if (extreme && rng.below(3) == 0) return kEdges[rng.below(std::size(kEdges))];
  return static_cast<float>(ordinary);
}

float log_prob(Rng& rng, bool extreme) {
  if (extreme && rng.below(3) == 0) return rng.below(2) == 0 ? 0.0f : -1e4f;
  return static_cast<float>(-3 * rng.uniform());
}

Verdict random_verdict(Rng& rng, bool right) {
  Verdict verdict;
  if (right) {
    verdict.kind = VerdictKind::equal;
    verdict.answer_class = 0;
  } else if (rng.below(4) == 0) {
    return verdict;  // unparseable
  } else {
    verdict.kind = VerdictKind::unequal;
    verdict.answer_class = static_cast<int32_t>(1 + rng.below(3));
  }
  verdict.answer = std::string(1, static_cast<char>('a' + verdict.answer_class));
  return verdict;
}

FullRow random_row(Rng& rng, const Extent& extent, int tag) {
  FullRow row;
  row.tag = tag;
  Response& o = row.response;
  o.sample = tag;
  o.length = rng.below(static_cast<uint32_t>(extent.most_tokens + 1));
  o.finished = rng.below(4) != 0;
  bool right = rng.below(2) == 0;
  o.verdict = random_verdict(rng, right);
  o.score = pick(rng, extent.extreme, right ? 1.0 : rng.below(3) == 0 ? -0.3 : -1.0);
  o.tail_confidence = o.finished ? static_cast<float>(12 + 4 * rng.uniform()) : 0;
  double penalty = 0;
  for (int64_t t = 0; t < o.length; ++t) {
    row.token.push_back(static_cast<int32_t>(rng.below(7)));
    row.old.push_back(log_prob(rng, extent.extreme));
    row.rollout.push_back(log_prob(rng, extent.extreme));
    row.ref.push_back(log_prob(rng, extent.extreme));
    row.reward_kl.push_back(extent.reward_kl ? static_cast<float>(0.01 * rng.normal()) : 0.0f);
    penalty += row.reward_kl.back();
    row.value.push_back(pick(rng, extent.extreme, rng.normal()));
    row.q.push_back(pick(rng, extent.extreme, rng.normal()));
    row.entropy.push_back(std::fabs(pick(rng, extent.extreme, 2 * rng.uniform())));
    row.confidence.push_back(std::fabs(pick(rng, extent.extreme, 12 + 8 * rng.uniform())));
    row.logit.push_back(pick(rng, extent.extreme, 10 + 20 * rng.uniform()));
    row.margin.push_back(0.5f * row.old.back());
    row.teacher.push_back(0.75f * row.ref.back());
  }
  o.kl_penalty = static_cast<float>(penalty);
  o.reward = o.score - o.kl_penalty;
  return row;
}

void expect_finite(std::span<const float> values, const std::string& what) {
  for (float x : values) ASSERT_TRUE(std::isfinite(x)) << what << " has " << x;
}

}  // namespace

std::vector<FullGroup> random_groups(Rng& rng, const Extent& extent) {
  std::vector<FullGroup> groups;
  for (int64_t g = 0; g < extent.groups; ++g) {
    FullGroup group;
    int64_t rows = g == 0 ? extent.most_rows : 1 + rng.below(static_cast<uint32_t>(extent.most_rows));
    for (int64_t i = 0; i < rows; ++i) group.push_back(random_row(rng, extent, static_cast<int>(i)));
    for (FullRow& row : group) row.response.group = g;  // its problem, until packed
    groups.push_back(std::move(group));
  }
  return groups;
}

Batch pack(const std::vector<FullGroup>& groups) {
  Batch batch;
  batch.stop_ids = {0};
  bool kl = false;
  for (const FullGroup& rows : groups) {
    Group group;
    group.problem = rows.front().response.group;
    group.first = static_cast<int64_t>(batch.responses.size());
    group.count = static_cast<int64_t>(rows.size());
    for (const FullRow& row : rows) {
      Response o = row.response;
      o.first = batch.token_count();
      o.group = static_cast<int64_t>(batch.groups.size());
      batch.responses.push_back(o);
      auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
      append(batch.token, row.token);
      append(batch.rollout_logprob, row.rollout);
      append(batch.old_logprob, row.old);
      append(batch.signal("ref_logprob"), row.ref);
      for (float old : row.old) batch.signal("min_p_logprob").push_back(std::min(0.0f, old + 0.1f));
      append(batch.signal("teacher_logprob"), row.teacher);
      append(batch.reward_kl, row.reward_kl);
      append(batch.signal("value"), row.value);
      append(batch.signal("prm_logratio"), row.q);
      append(batch.entropy, row.entropy);
      append(batch.confidence, row.confidence);
      append(batch.logit, row.logit);
      append(batch.signal("margin"), row.margin);
      for (float x : row.reward_kl) kl = kl || x != 0;
    }
    batch.groups.push_back(std::move(group));
  }
  if (!kl) batch.reward_kl.clear();
  return batch;
}

Keyed advantages_of(const Method& method, const std::vector<FullGroup>& groups) {
  Batch batch = pack(groups);
  std::vector<float> advantage(batch.token.size(), std::nanf(""));
  Recording recording;
  method.advantages(batch, advantage, recording);
  expect_finite(advantage, method.title() + ": advantages");
  for (const Recording::Row& row : recording.rows) {
    EXPECT_EQ(row.values.size(), row.per_token ? batch.token.size() : batch.responses.size()) << row.name;
    expect_finite(row.values, method.title() + ": recording " + row.name);
  }
  if (method.needs().critic) {
    std::vector<float> returns(batch.token.size(), std::nanf(""));
    method.returns(batch, returns);
    expect_finite(returns, method.title() + ": returns");
  }
  Keyed keyed;
  size_t at = 0;
  for (const FullGroup& group : groups) {
    for (const FullRow& row : group) {
      auto A = Batch::tokens(advantage, batch.responses[at++]);
      keyed[{row.response.group, row.tag}] = {A.begin(), A.end()};
    }
  }
  return keyed;
}

LossCase random_mini_batch(Rng& rng, size_t sequences, bool extreme) {
  LossCase mini;
  for (size_t i = 0; i < sequences; ++i) {
    std::vector<float> lp, old, A, H, ref;
    float advantage = pick(rng, extreme, rng.normal());
    for (int64_t t = rng.below(13); t > 0; --t) {
      old.push_back(log_prob(rng, extreme));
      lp.push_back(extreme ? log_prob(rng, extreme) : old.back() + static_cast<float>(0.3 * rng.normal()));
      A.push_back(advantage);
      H.push_back(static_cast<float>(2 * rng.uniform()));
      ref.push_back(log_prob(rng, extreme));
    }
    mini.add(lp, old, A, H, ref);
  }
  return mini;
}

}  // namespace ucas::testing
