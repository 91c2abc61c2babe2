#include "support/shaping.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>

#include "methods/apply.h"

namespace ucas::testing {

namespace {

// A response with all that the methods of this library may read, and who it is.
struct Drawn {
  Row row;
  std::vector<float> old_logprob, entropy, reward_kl;
  float kl_penalty = 0, tail_confidence = 0;
  int tag = 0;
};
using Groups = std::vector<std::vector<Drawn>>;

float draw(int low, int high) { return static_cast<float>(*rc::gen::inRange(low, high)) / 8; }

// A value that now and then is huge. Doubles add a few floats of one size without any rounding, so only sums in which
// huge values cancel show in what order they were taken.
float draw_wild() { return draw(-80, 81) / 7 * (*rc::gen::inRange(0, 3) == 0 ? 0x1p40f : 1.0f); }

void negate(std::vector<float>& values) {
  for (float& v : values) v = -v;
}

Groups draw_groups() {
  auto limit = *rc::gen::inRange(1, 7);
  Groups groups;
  for (int g = *rc::gen::inRange(1, 4); g > 0; --g) {
    std::vector<Drawn> group;
    for (int i = *rc::gen::inRange(1, 9); i > 0; --i) {
      if (!group.empty() && *rc::gen::inRange(0, 2) == 0) {  // a response that cancels the last one
        Drawn o = group.back();
        o.tag = i;
        o.row.reward = -o.row.reward;
        o.tail_confidence = -o.tail_confidence;
        negate(o.row.confidence);
        negate(o.reward_kl);
        o.kl_penalty = -o.kl_penalty;
        group.push_back(o);
        continue;
      }
      Drawn o;
      o.row.group = static_cast<int64_t>(groups.size());
      o.row.reward = draw_wild();
      o.tail_confidence = draw_wild();
      o.tag = i;
      for (int t = *rc::gen::inRange(0, limit + 1); t > 0; --t) {
        o.row.confidence.push_back(draw_wild());
        o.row.logit.push_back(draw(80, 240) / 3);
        o.old_logprob.push_back(-draw(0, 40) / 3);
        o.entropy.push_back(draw(0, 40) / 3);
        o.reward_kl.push_back(draw(-8, 9) / 80);
        o.kl_penalty += o.reward_kl.back();
      }
      group.push_back(o);
    }
    groups.push_back(group);
  }
  return groups;
}

// Advantages by (group, tag).
std::map<std::pair<int64_t, int>, std::vector<float>> run(const Groups& groups, const std::string& method,
                                                          const std::string& preset,
                                                          const std::vector<Setting>& settings) {
  std::vector<Row> rows;
  std::vector<const Drawn*> drawn;
  for (const auto& group : groups) {
    for (const Drawn& o : group) {
      rows.push_back(o.row);
      drawn.push_back(&o);
    }
  }
  Batch batch = make_batch(rows);
  for (size_t i = 0; i < drawn.size(); ++i) {
    Response& o = batch.responses[i];
    o.reward -= drawn[i]->kl_penalty;
    o.kl_penalty = drawn[i]->kl_penalty;
    o.tail_confidence = drawn[i]->tail_confidence;
    auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(batch.old_logprob, drawn[i]->old_logprob);
    append(batch.entropy, drawn[i]->entropy);
    append(batch.reward_kl, drawn[i]->reward_kl);
  }
  Advantages shaped = compute_advantages(batch, method, preset, settings);
  std::map<std::pair<int64_t, int>, std::vector<float>> keyed;
  for (size_t i = 0; i < drawn.size(); ++i) {
    auto of_i = Batch::tokens(shaped.advantage, batch.responses[i]);
    keyed[{rows[i].group, drawn[i]->tag}] = std::vector<float>(of_i.begin(), of_i.end());
  }
  return keyed;
}

}  // namespace

Advantages compute_advantages(const Batch& batch, const std::string& method_name, const std::string& preset,
                              const std::vector<Setting>& settings) {
  auto [advantage, recording] = ucas::compute_advantages(method_name, batch, preset, settings);
  Advantages shaped{std::move(advantage), {}, {}};
  for (Recording::Row& row : recording.rows) {
    EXPECT_EQ(row.values.size(), row.per_token ? batch.token.size() : batch.responses.size()) << row.name;
    shaped.rows[row.name] = row.values;
  }
  shaped.metrics.insert(recording.metrics.begin(), recording.metrics.end());
  return shaped;
}

Batch group_of(const std::vector<float>& rewards, const std::vector<size_t>& lengths) {
  std::vector<Row> rows;
  for (size_t i = 0; i < rewards.size(); ++i) {
    Row row{0, rewards[i], {}, {}};
    for (size_t t = 0; t < lengths[i]; ++t) {
      row.confidence.push_back(static_cast<float>(12 + 2 * i + t));
      row.logit.push_back(static_cast<float>(20 + i - 3 * t));
    }
    rows.push_back(row);
  }
  return make_batch(rows);
}

std::vector<float> per_response(const Batch& batch, const Advantages& shaped) {
  std::vector<float> values;
  for (const Response& o : batch.responses) {
    if (o.length == 0) continue;
    auto of_i = Batch::tokens(shaped.advantage, o);
    for (float a : of_i) EXPECT_EQ(a, of_i[0]);
    values.push_back(of_i[0]);
  }
  return values;
}

bool order_never_matters(const std::string& method, const std::string& preset, const std::vector<Setting>& settings) {
  return rc::check(method + " " + preset + ": permuting groups and rows permutes the advantages", [&] {
    Groups groups = draw_groups();
    auto before = run(groups, method, preset, settings);
    std::reverse(groups.begin(), groups.end());
    for (auto& group : groups) {
      auto by = *rc::gen::inRange<size_t>(0, group.size());
      std::rotate(group.begin(), group.begin() + static_cast<std::ptrdiff_t>(by), group.end());
    }
    RC_ASSERT(run(groups, method, preset, settings) == before);
  });
}

}  // namespace ucas::testing
