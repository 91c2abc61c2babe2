// What holds for every method of the registry, under each of its presets: order changes nothing, nothing is ever NaN,
// the cut into micro-batches changes no gradient, and each is documented, configured and checked on numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
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
    for (const std::string& preset : make_method(row.name)->presets()) {
      std::unique_ptr<Method> method = make_method(row.name);
      method->use_preset(preset);
      use(*method, str(row.name, " under ", preset));
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

// Not zero where all responses to a prompt earn the same: the baseline is a critic or the whole batch, or the authors'
// code does it so (UCAS: every token of such a prompt is pushed down).
const std::set<std::string> kNotByGroup = {
    "ppo", "prime", "reinforce_pp", "reinforce_pp_baseline", "ucas under released", "entropy_adv under ppo"};

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

LossCase reversed(const LossCase& mini) {
  LossCase turned;
  for (size_t i = mini.sequences.size(); i-- > 0;) {
    LossCase one = mini.slice(i, 1);
    turned.add(one.logprob, one.old_logprob, one.advantage, one.entropy, one.ref_logprob);
    turned.sequences.back().response = mini.sequences[i].response;
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
    }
  });
}

TEST(all_methods, each_has_a_tiny_config_and_a_row_in_the_documentation) {
  std::string paper = read_file(UCAS_SOURCE_DIR "/docs/paper.md");
  std::set<std::string> configured;
  for (const std::string& file : list_directory(UCAS_SOURCE_DIR "/configs")) {
    if (file.find("-tiny.toml") == std::string::npos) continue;
    for (const Setting& setting : read_toml(str(UCAS_SOURCE_DIR "/configs/", file))) {
      if (setting.key == "method.name") configured.insert(std::get<std::string>(setting.value));
    }
  }
  for (const MethodRow& row : method_rows()) {
    EXPECT_TRUE(configured.contains(row.name)) << "no configs/*-tiny.toml has method.name = \"" << row.name << "\"";
    EXPECT_NE(paper.find(str("methods/", row.name, ".cpp")), std::string::npos)
        << row.name << " is not in docs/paper.md";
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
