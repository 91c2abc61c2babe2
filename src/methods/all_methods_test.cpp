// What holds for every method of the registry, under each of its presets: order changes nothing, nothing is ever NaN,
// the cut into micro-batches changes no gradient, and each is documented, configured and checked on numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "config/config_file.h"
#include "methods/apply.h"
#include "methods/registry.h"
#include "support/random_batches.h"

namespace ucas {
namespace {

using testing::advantages_of;
using testing::Extent;
using testing::FullGroup;
using testing::FullRow;
using testing::Keyed;
using testing::LossCase;

// use(method, "ucas under released") for each row and preset.
void for_each_method(const std::function<void(const Method&, const std::string&)>& use) {
  for (const MethodRow& row : method_rows()) {
    for (const std::string& preset : row.presets) {
      use(*row.make(preset), str(row.name, " under ", preset));
    }
  }
}

TEST(all_methods, the_order_of_prompts_and_of_their_responses_changes_no_bit_of_an_advantage) {
  for_each_method([](const Method& method, const std::string& name) {
    for (uint64_t seed = 0; seed < 25; ++seed) {
      Rng rng(seed, 1);
      Extent extent;
      extent.groups = 1 + rng.below(5);
      extent.reward_kl = seed % 3 == 1;
      std::vector<FullGroup> groups = testing::random_groups(rng, extent);
      Keyed before = advantages_of(method, groups);
      for (size_t g = groups.size(); g > 1; --g) std::swap(groups[g - 1], groups[rng.below(static_cast<uint32_t>(g))]);
      for (FullGroup& group : groups) {
        for (size_t i = group.size(); i > 1; --i) {
          std::swap(group[i - 1], group[rng.below(static_cast<uint32_t>(i))]);
        }
      }
      ASSERT_EQ(advantages_of(method, groups), before) << name << ", seed " << seed;
    }
  });
}

TEST(all_methods, groups_of_one_empty_and_truncated_responses_and_extreme_values_give_finite_numbers) {
  for_each_method([](const Method& method, const std::string& name) {
    for (uint64_t seed = 0; seed < 25; ++seed) {
      SCOPED_TRACE(str(name, ", seed ", seed));
      Rng rng(seed, 2);
      Extent extent;
      extent.extreme = seed % 2 == 1;
      extent.most_rows = seed % 3 == 0 ? 1 : 5;
      extent.most_tokens = seed % 5 == 0 ? 1 : 6;
      advantages_of(method, testing::random_groups(rng, extent));
      if (::testing::Test::HasFatalFailure()) return;
    }
    Extent nothing;
    nothing.most_tokens = 0;
    Rng rng(7, 2);
    advantages_of(method, testing::random_groups(rng, nothing));
  });
}

// Not zero where all responses to a prompt earn the same: the baseline is a critic, the whole batch or none, or the
// authors' code does it so (UCAS: every token of such a prompt is pushed down).
const std::set<std::string> kNotByGroup = {
    "ppo",     "prime",   "reinforce_pp",    "reinforce_pp_baseline", "nsr",
    "ds_grpo", "distill", "gdpo under verl", "ucas under released",   "entropy_adv under ppo"};

TEST(all_methods, a_prompt_whose_responses_all_earn_the_same_has_advantage_exactly_zero) {
  int checked = 0;
  for_each_method([&](const Method& method, const std::string& name) {
    std::string row = name.substr(0, name.find(' '));
    if (kNotByGroup.contains(row) || kNotByGroup.contains(name)) return;
    ++checked;
    for (float reward : {0.7f, 0.9f, -0.3f, 1.0f, 0.0f}) {
      Rng rng(3, 3);
      std::vector<FullGroup> groups = testing::random_groups(rng, {});
      FullGroup& equal = groups.front();
      for (FullRow& o : equal) {
        o.response.score = o.response.reward = reward;
        o.response.verdict = equal.front().response.verdict;
        std::ranges::fill(o.confidence, 15.0f);  // where the reward is made of it
        if (o.response.length == 0) o = equal.front();
      }
      for (size_t i = 0; i < equal.size(); ++i) equal[i].tag = static_cast<int>(i);
      if (equal.front().response.length == 0) continue;
      Keyed A = advantages_of(method, groups);
      for (const FullRow& o : equal) {
        for (float a : A[{0, o.tag}]) ASSERT_EQ(a, 0.0f) << name << ", reward " << reward;
      }
    }
  });
  EXPECT_GT(checked, 10);
}

TEST(all_methods, each_number_that_a_method_records_is_declared_in_its_row_and_each_declared_one_is_recorded) {
  for (const MethodRow& row : method_rows()) {
    std::set<std::string> recorded, declared;
    for (const std::string& preset : row.presets) {
      const std::unique_ptr<Method> method = row.make(preset);
      Rng rng(11, 3);
      const Batch batch = testing::pack(testing::random_groups(rng, {}));
      for (const auto& [name, value] : compute_advantages(*method, batch).recording.metrics) recorded.insert(name);
    }
    for (const Metric* metric : row.metrics) {
      EXPECT_TRUE(declared.insert(metric->key).second) << metric->key;
      EXPECT_EQ(find_metric(metric->key), nullptr) << metric->key << " is a number of every step already";
    }
    EXPECT_EQ(recorded, declared) << row.name;
    const bool explained = row.metrics.empty() || std::string(row.metrics[0]->help) != "";
    EXPECT_TRUE(explained) << row.name;
  }
}

LossCase reversed(const LossCase& mini) {
  LossCase turned;
  for (size_t i = mini.sequences.size(); i-- > 0;) {
    LossCase one = mini.slice(i, 1);
    turned.add(one.logprob, one.old_logprob, one.advantage, one.entropy, one.ref_logprob);
    turned.sequences.back().response = mini.sequences[i].response;
    turned.sequences.back().group = mini.sequences[i].group;
  }
  return turned;
}

TEST(all_methods, neither_the_cut_into_micro_batches_nor_the_order_of_responses_changes_a_gradient) {
  for_each_method([](const Method& method, const std::string& name) {
    ObjectiveConfig objective = method.objective_defaults();
    objective.entropy_coeff = 0.01;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      Rng rng(seed, 4);
      LossCase mini = testing::random_mini_batch(rng, 17);
      auto whole = run_objective(method, objective, mini, 0, 12);
      for (size_t size : {1, 2, 7}) {
        auto cut = run_objective(method, objective, mini, size, 12);
        ASSERT_EQ(cut.d_logprob, whole.d_logprob) << name;
        ASSERT_EQ(cut.d_entropy, whole.d_entropy) << name;
        ASSERT_EQ(cut.d_likely, whole.d_likely) << name;
        EXPECT_NEAR(cut.metrics.pg_loss, whole.metrics.pg_loss, 1e-9 * (1 + std::fabs(whole.metrics.pg_loss))) << name;
      }
      LossCase turned = reversed(mini);
      auto other = run_objective(method, objective, turned, 3, 12);
      for (size_t i = 0; i < mini.sequences.size(); ++i) {
        const Sequence &a = mini.sequences[i], &b = turned.sequences[mini.sequences.size() - 1 - i];
        for (int64_t t = 0; t < a.length; ++t) {
          ASSERT_EQ(whole.d_logprob[static_cast<size_t>(a.first + t)],
                    other.d_logprob[static_cast<size_t>(b.first + t)])
              << name;
        }
      }
    }
  });
}

TEST(all_methods, losses_and_gradients_of_extreme_log_probs_are_finite) {
  for_each_method([](const Method& method, const std::string& name) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      Rng rng(seed, 5);
      LossCase mini = testing::random_mini_batch(rng, 9, true);
      auto result = run_objective(method, method.objective_defaults(), mini, 0, 12);
      EXPECT_TRUE(std::isfinite(result.loss)) << name;
      for (float g : result.d_logprob) ASSERT_TRUE(std::isfinite(g)) << name;
      for (float e : result.d_entropy) ASSERT_TRUE(std::isfinite(e)) << name;
      for (float t : result.d_likely) ASSERT_TRUE(std::isfinite(t)) << name;
    }
  });
}

// A signal of one token, or the reward of one response, of a random batch.
constexpr std::string_view kSignals[] = {"reward",     "old_logprob", "value",  "prm_logratio",   "entropy",
                                         "confidence", "logit",       "margin", "teacher_logprob"};

std::vector<float> with_signal(const Method& method, Batch batch, std::string_view signal, size_t at, float value) {
  if (signal == "reward") {
    for (Response& o : batch.responses) {
      if (at >= static_cast<size_t>(o.first) && at < static_cast<size_t>(o.first + o.length)) o.reward = value;
    }
  } else {
    batch.signal(signal)[at] = value;
  }
  std::vector<float> advantage(batch.token.size());
  Recording recording;
  method.advantages(batch, advantage, recording);
  return advantage;
}

TEST(all_methods, one_nan_in_a_signal_leaves_every_advantage_as_it_was_or_makes_it_nan) {
  for_each_method([](const Method& plain, const std::string& name) {
    std::unique_ptr<Method> variant;
    for (int form = 0; form < 3; ++form) {  // as it is, and with options that bring in more signals
      const Method* method = &plain;
      if (form > 0) {
        variant = make_method(name.substr(0, name.find(' ')));
        const char* text[] = {"mc", "shannon"};
        for (const Setting& option :
             {Setting{"estimator", std::string(text[form - 1]), "test", false},
              {"f", std::string(form == 1 ? "linear" : "focal"), "test", false},
              {"weight", std::string("linear"), "test", false},
              {"response_confidence", std::string(form == 1 ? "logprob" : "margin"), "test", false},
              {"token_certainty", std::string("neg_entropy"), "test", false}}) {
          ucas::apply(*variant, {option}, false);
        }
        method = variant.get();
      }
      for (uint64_t seed = 0; seed < 6; ++seed) {
        Rng rng(seed, 6);
        Batch batch = testing::pack(testing::random_groups(rng, {}));
        if (batch.token.empty()) continue;
        size_t at = rng.below(static_cast<uint32_t>(batch.token.size()));
        for (std::string_view signal : kSignals) {
          SCOPED_TRACE(str(name, " form ", form, ", seed ", seed, ", ", signal));
          std::vector<float> before(batch.token.size());
          Recording recording;
          method->advantages(batch, before, recording);
          std::vector<float> after = with_signal(*method, batch, signal, at, std::nanf(""));
          bool any = false;
          for (size_t t = 0; t < after.size(); ++t) {
            any = any || std::isnan(after[t]);
            ASSERT_TRUE(std::isnan(after[t]) || after[t] == before[t]) << before[t] << " became " << after[t];
          }
          float other = signal == "reward" ? 0.25f : batch.signal(signal)[at] + 0.5f;
          ASSERT_TRUE(any || with_signal(*method, batch, signal, at, other) == before) << "the NaN vanished";
        }
      }
    }
  });
}

TEST(all_methods, a_nan_log_prob_or_advantage_of_a_token_makes_its_gradient_nan) {
  for_each_method([](const Method& method, const std::string& name) {
    for (auto field : {&LossCase::logprob, &LossCase::old_logprob, &LossCase::advantage, &LossCase::ref_logprob}) {
      ObjectiveConfig objective = method.objective_defaults();
      objective.kl_coeff = field == &LossCase::ref_logprob ? 0.1 : 0;
      LossCase mini;
      mini.add({-1, -1, -2}, {-1, -1.1f, -2}, {1, 1, 1}, {0.5f, 0.9f, 0.1f}, {-1, -1, -2});
      mini.add({-1, -2}, {-1, -2.1f}, {-1, -1}, {0.3f, 0.2f}, {-1, -2});
      mini.mark.assign(5, 1);
      if (name.starts_with("clip_cov")) mini.mark.assign(5, 0);  // a mark leaves the token out
      (mini.*field)[1] = std::nanf("");
      for (KlEstimator estimator : {KlEstimator::k1, KlEstimator::abs, KlEstimator::k2, KlEstimator::k3}) {
        objective.kl_estimator = estimator;
        EXPECT_TRUE(std::isnan(run_objective(method, objective, mini, 0, 12).d_logprob[1])) << name;
      }
    }
  });
}

TEST(all_methods, a_token_of_advantage_zero_is_silent_where_the_method_says_so) {
  int with_gradient = 0;
  for_each_method([&](const Method& method, const std::string& name) {
    Rng rng(9, 7);
    LossCase mini = testing::random_mini_batch(rng, 12);
    std::ranges::fill(mini.advantage, 0.0f);
    for (uint8_t mark : {0, 1}) {
      mini.mark.assign(mini.logprob.size(), mark);
      ObjectiveConfig objective = method.objective_defaults();
      objective.kl_coeff = objective.entropy_coeff = 0;
      LossBuffer buffer;
      LossOutput out = buffer.view(mini.tokens(), method.needs().current);
      LossMetrics metrics;
      Denominators total = denominators(objective, mini.input(), 12);
      objective_gradients(method, objective, mini.input(), total, out, metrics);
      bool zero_gradient = true;
      for (auto values : out.numbers()) {
        for (float v : values) zero_gradient = zero_gradient && v == 0;
      }
      EXPECT_TRUE(zero_gradient || method.needs().zero_advantages) << name;
      with_gradient += !zero_gradient;
    }
  });
  EXPECT_EQ(with_gradient, 2);  // KL-Cov under both presets: its penalty looks at no advantage
}

using Outputs = std::vector<std::vector<float>>;  // loss, and its derivatives
Outputs outputs_of(const LossOutput& out) {
  Outputs all;
  for (auto values : out.numbers()) all.emplace_back(values.begin(), values.end());
  return all;
}

// Of a mini-batch whose responses come in parts where they may.
Outputs outputs_in_parts(const Method& method, const ObjectiveConfig& objective, const LossInput& whole) {
  const TokenShares shares = token_shares(objective, whole, denominators(objective, whole, 12));
  Outputs all;
  for (const Sequence& s : whole.sequences) {
    const int64_t step = method.whole_responses() ? std::max<int64_t>(s.length, 1) : 3, end = s.first + s.length;
    for (int64_t first = s.first; first < end; first += step) {
      const Sequence piece{0, std::min(step, end - first), s.response, s.group};
      LossInput part = whole;
      part.sequences = {&piece, 1};
      for (auto* values :
           {&part.logprob, &part.entropy, &part.confidence, &part.old_logprob, &part.rollout_logprob, &part.advantage})
        if (!values->empty()) *values = values->subspan(first, piece.length);
      for (auto& [key, values] : part.signals) values = values.subspan(first, piece.length);
      part.mark = whole.mark.subspan(first, piece.length);
      LossBuffer buffer;
      LossOutput out = buffer.view(piece.length, method.needs().current);
      LossMetrics metrics;
      objective_gradients(method, objective, part, shares, first, out, metrics);
      const Outputs some = outputs_of(out);
      all.resize(some.size(), std::vector<float>(whole.logprob.size()));
      for (size_t k = 0; k < some.size(); ++k) std::ranges::copy(some[k], all[k].begin() + first);
    }
  }
  return all;
}

TEST(all_methods, a_response_in_parts_has_the_bits_of_the_whole_unless_the_method_says_that_it_must_be_whole) {
  int whole = 0;
  for_each_method([&](const Method& method, const std::string& name) {
    whole += method.whole_responses();
    Rng rng(3, 8);
    LossCase mini = testing::random_mini_batch(rng, 12);
    for (size_t t = 0; t < mini.logprob.size(); ++t) {
      mini.mark.push_back(t % 2);
      mini.rollout_logprob[t] += 0.1f * static_cast<float>(t % 3) - 0.15f;
    }
    for (Aggregation aggregation : {Aggregation::token_mean, Aggregation::seq_mean_token_mean}) {
      for (Tis tis : {Tis::off, Tis::sequence}) {
        ObjectiveConfig objective = method.objective_defaults();
        objective.aggregation = aggregation;
        objective.tis = tis;
        LossBuffer buffer;
        LossOutput out = buffer.view(mini.tokens(), method.needs().current);
        LossMetrics metrics;
        objective_gradients(method, objective, mini.input(), denominators(objective, mini.input(), 12), out, metrics);
        EXPECT_EQ(outputs_in_parts(method, objective, mini.input()), outputs_of(out)) << name;
      }
    }
  });
  EXPECT_EQ(whole, 4);  // GSPO, LUSPO, GMPO: their ratio is of the sequence; SimKO: a quantile of its entropies
}

TEST(all_methods, each_has_a_tiny_config_and_a_row_in_the_documentation) {
  std::string paper = read_file(UCAS_SOURCE_DIR "/docs/paper.md");
  std::set<std::string> configured;
  for (const std::string& name : config_names()) {
    if (!name.ends_with("-tiny")) continue;
    for (const Setting& setting : read_config_file(name)) {
      if (setting.key == "method.name") configured.insert(std::get<std::string>(setting.value));
    }
  }
  for (const MethodRow& row : method_rows()) {
    EXPECT_TRUE(configured.contains(row.name)) << "no config NAME-tiny has method.name = \"" << row.name << "\"";
    EXPECT_NE(paper.find(str("/", row.name, ".cpp")), std::string::npos) << row.name << " is not in docs/paper.md";
  }
}

TEST(all_methods, each_has_a_worked_case_and_equations_in_words) {
  std::set<std::string> worked;
  Json goldens = read_json(UCAS_SOURCE_DIR "/tests/goldens/method_cases.json", 64 << 20);
  for (const Json& c : goldens.at("cases")) worked.insert(c.at("method").get<std::string>());
  for (const MethodRow& row : method_rows()) {
    EXPECT_TRUE(worked.contains(row.name)) << row.name << " has no case in tools/make_method_goldens.py";
  }
  for_each_method([](const Method& method, const std::string& name) {
    EXPECT_FALSE(method.equations().empty()) << name;
    for (const Equation& e : method.equations()) {
      EXPECT_FALSE(e.formula.empty() || e.words.empty()) << name << ": " << e.where;
    }
  });
}

}  // namespace
}  // namespace ucas
