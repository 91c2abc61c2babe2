// The released form of UCAS next to the article's, one departure at a time, and the variants. Numbers of the whole are
// in the algorithm cases.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "methods/registry.h"
#include "support/shaping.h"

namespace ucas {
namespace {

using testing::Advantages;
using testing::compute_advantages;
using testing::make_batch;
using testing::number;
using testing::Row;
using testing::text;

// Two prompts; the second is answered alike by all. One long response of middling confidence, short ones around it.
Batch two_prompts() {
  Batch batch = make_batch({{0, 1, {14, 15, 16, 15}, {20, 22, 21, 25}},
                            {0, 0, {20}, {19}},
                            {0, 0, {12, 13}, {24, 24}},
                            {1, 1, {15, 15}, {18, 26}},
                            {1, 1, {17}, {21}}});
  batch.old_logprob = {-1, -2, -0.5f, -0.25f, -3, -0.125f, -0.75f, -1.5f, -0.0625f, -2.5f};
  batch.entropy = {1, 2, 0.5f, 3, 0.25f, 1.5f, 0.75f, 2.5f, 1.25f, 0.125f};
  batch.signal("margin") = {0, -1, 0, -0.25f, -2, 0, -0.5f, 0, -0.75f, -1.5f};
  return batch;
}

TEST(ucas_released, a_response_that_is_long_passes_for_confident) {
  Batch batch = two_prompts();
  Advantages paper = compute_advantages(batch, "ucas"), released = compute_advantages(batch, "ucas", "released");
  EXPECT_LT(paper.rows["C_hat"][0], 0);     // mean 15 of 15, 20, 12.5
  EXPECT_GT(released.rows["C_hat"][0], 1);  // sum 60 of 60, 20, 25
  EXPECT_LT(released.rows["W"][0], 1);      // so the long right answer loses
}

TEST(ucas_released, the_slot_after_the_last_token_counts_in_the_sum) {
  Batch batch = two_prompts();
  float before = compute_advantages(batch, "ucas", "released").rows["C_hat"][1];
  batch.responses[1].tail_confidence = 40;  // 20 + 40 = 60: as much as the long one
  Advantages s = compute_advantages(batch, "ucas", "released");
  EXPECT_GT(s.rows["C_hat"][1], before);
  EXPECT_EQ(s.rows["C_hat"][1], s.rows["C_hat"][0]);
  EXPECT_EQ(compute_advantages(batch, "ucas", "released", {{"tail", false, "tail", false}}).rows["C_hat"][1], before);
}

TEST(ucas_released, certainty_is_measured_against_the_whole_step) {
  Advantages s = compute_advantages(two_prompts(), "ucas", "released");  // logits 18 .. 26
  EXPECT_NEAR(s.rows["l_hat"][0], 2.0 / 8, 1e-6);
  EXPECT_NEAR(s.rows["l_hat"][4], 1.0 / 8, 1e-6);
  EXPECT_NEAR(s.rows["l_hat"][8], 1, 1e-6);
}

TEST(ucas_released, an_all_right_group_is_pushed_down) {
  Batch batch = two_prompts();
  Advantages paper = compute_advantages(batch, "ucas"), released = compute_advantages(batch, "ucas", "released");
  for (size_t t = 7; t < 10; ++t) {
    EXPECT_EQ(paper.advantage[t], 0.0f);
    EXPECT_NEAR(released.advantage[t], -0.05 * released.rows["l_hat"][t], 1e-7);
  }
  EXPECT_LT(released.advantage[8], -0.04f);
}

TEST(ucas_released, equal_logits_stand_in_the_middle) {
  Batch batch = two_prompts();
  batch.logit.assign(batch.logit.size(), 21.0f);
  Advantages released = compute_advantages(batch, "ucas", "released"), paper = compute_advantages(batch, "ucas");
  for (float l : released.rows["l_hat"]) EXPECT_EQ(l, 0.5f);
  for (float l : paper.rows["l_hat"]) EXPECT_EQ(l, 0.0f);
}

TEST(ucas_released, a_lone_response_keeps_its_raw_confidence_and_stays_finite) {
  Batch batch = make_batch({{0, 1, {15, 15}, {20, 21}}});
  EXPECT_EQ(compute_advantages(batch, "ucas").rows["W"][0], 1.0f);
  EXPECT_NEAR(compute_advantages(batch, "ucas", "released").rows["W"][0], std::exp(-0.25 * 30 / (1 + 1e-6)), 1e-9);
  batch.responses[0].reward = -1;
  batch.responses[0].tail_confidence = 1e6;
  for (float a : compute_advantages(batch, "ucas", "released").advantage) EXPECT_TRUE(std::isfinite(a));
}

TEST(ucas_released, without_deviations_reward_and_confidence_are_only_centred) {
  Advantages s = compute_advantages(two_prompts(), "ucas", "", {{"norm_by_std", false, "norm_by_std", false}});
  EXPECT_NEAR(s.rows["A"][0], 2.0 / 3, 1e-6);
  EXPECT_NEAR(s.rows["C_hat"][0], 15 - 47.5 / 3, 1e-5);
}

TEST(ucas_released, each_departure_is_an_option_of_its_own) {
  Batch batch = two_prompts();
  std::vector<Setting> all = {
      number("alpha_pos", 0.25),       number("alpha_neg", 0.35),       number("beta", 0.05),
      text("pooling", "sum"),          {"tail", true, "tail", false},   text("scope", "batch"),
      text("equal_certainty", "half"), text("zero_advantage", "wrong"), text("alone_confidence", "value")};
  EXPECT_EQ(compute_advantages(batch, "ucas", "", all).advantage,
            compute_advantages(batch, "ucas", "released").advantage);
}

TEST(ucas_released, asks_for_the_tail_and_refuses_it_where_it_has_no_meaning) {
  EXPECT_FALSE(make_method("ucas")->needs().reads("tail_confidence"));
  auto method = make_method("ucas", "released");
  EXPECT_TRUE(method->needs().reads("tail_confidence"));
  EXPECT_FALSE(method->objective_defaults().keep_mixed_groups);
  for (const Setting& bad : {text("pooling", "mean"), text("response_confidence", "logprob")}) {
    try {
      compute_advantages(two_prompts(), "ucas", "released", {bad});
      FAIL() << bad.key;
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "config");
      EXPECT_NE(std::string(error.what()).find("method.tail"), std::string::npos);
    }
  }
}

TEST(ucas_variants, the_linear_weight_is_the_first_order_of_the_exponential_and_never_negative) {
  Batch batch = two_prompts();
  Advantages e = compute_advantages(batch, "ucas"),
             l = compute_advantages(batch, "ucas", "", {text("weight", "linear")});
  for (size_t i = 0; i < 3; ++i) {
    double x = (i == 0 ? -0.25 : 0.25) * e.rows["C_hat"][i];
    EXPECT_NEAR(l.rows["W"][i], 1 + x, 1e-6);
    EXPECT_NEAR(e.rows["W"][i], 1 + x, x * x);
    EXPECT_LE(l.rows["W"][i], e.rows["W"][i]);
  }
  Advantages floored = compute_advantages(batch, "ucas", "", {text("weight", "linear"), number("alpha", 10)});
  for (float W : floored.rows["W"]) EXPECT_GE(W, 0);
  EXPECT_EQ(floored.rows["W"][2], 0.0f);
  EXPECT_EQ(floored.advantage[5], 0.0f);
}

TEST(ucas_variants, confidence_may_be_the_log_prob_minus_the_entropy_or_the_margin) {
  Batch batch = two_prompts();
  for (auto [name, signal, sign] :
       {std::tuple{"logprob", &batch.old_logprob, 1.0f}, std::tuple{"neg_entropy", &batch.entropy, -1.0f},
        std::tuple{"margin", &batch.signal("margin"), 1.0f}}) {
    Batch moved = batch;  // the same numbers where the article looks for C
    for (size_t t = 0; t < signal->size(); ++t) moved.confidence[t] = sign * (*signal)[t];
    EXPECT_EQ(compute_advantages(batch, "ucas", "", {text("response_confidence", name)}).rows["C_hat"],
              compute_advantages(moved, "ucas").rows["C_hat"]);
  }
}

// Two branches of the same style: what the model thinks of its vocabulary is alike in all, the tokens taken are not.
TEST(ucas_logprob, a_rare_branch_is_told_from_a_common_one_where_the_confidence_of_the_state_is_the_same) {
  Batch batch = make_batch({{0, 1, {15, 15}, {20, 21}}, {0, 1, {15, 15}, {20, 21}}, {0, 0, {15, 15}, {20, 21}}});
  batch.old_logprob = {-0.5f, -0.5f, -2.5f, -0.5f, -0.5f, -0.5f};  // right and common, right and rare, wrong and common
  Advantages paper = compute_advantages(batch, "ucas"), ours = compute_advantages(batch, "ucas", "logprob");
  EXPECT_EQ(paper.rows["W"], (std::vector<float>{1, 1, 1}));
  EXPECT_LT(ours.rows["W"][0], 1);
  EXPECT_GT(ours.rows["W"][1], 1);
  EXPECT_GT(ours.rows["W"][2], 1);
  // C = -0.5, -1.5, -0.5: mean -5/6, deviation over 2 sqrt(1/3)
  EXPECT_NEAR(ours.rows["C_hat"][1], -2.0 / 3 / (std::sqrt(1.0 / 3) + 1e-6), 1e-5);
  EXPECT_NEAR(ours.rows["W"][1], std::exp(0.25 * 2.0 / 3 / std::sqrt(1.0 / 3)), 1e-5);
}

TEST(ucas_logprob, is_one_option_away_from_the_paper) {
  Batch batch = two_prompts();
  EXPECT_EQ(compute_advantages(batch, "ucas", "", {text("response_confidence", "logprob")}).advantage,
            compute_advantages(batch, "ucas", "logprob").advantage);
  ObjectiveConfig paper = make_method("ucas")->objective_defaults(),
                  ours = make_method("ucas", "logprob")->objective_defaults();
  std::vector<FieldValue> a = fields_of(paper), b = fields_of(ours);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].value, b[i].value) << a[i].key;
}

TEST(ucas_variants, confidence_may_be_how_many_of_the_group_agree) {
  const Setting agree = text("response_confidence", "self_consistency");
  Batch batch = make_batch({{0, 1, {15}, {20}},
                            {0, 0, {15}, {20}},
                            {0, 1, {15}, {20}},
                            {0, 0, {15}, {20}},
                            {0, 0, {15}, {20}},
                            {1, 1, {15}, {20}}});
  const int32_t classes[] = {0, 1, 0, -1, -1, 0};  // two unreadable ones; 0 of the second prompt is another answer
  for (size_t i = 0; i < 6; ++i) batch.responses[i].verdict.answer_class = classes[i];
  Advantages s = compute_advantages(batch, "ucas", "", {agree});
  EXPECT_EQ(s.rows["C"], (std::vector<float>{0.4f, 0.2f, 0.4f, 0.2f, 0.2f, 1}));
  EXPECT_LT(s.rows["W"][0], 1);  // right and agreed on: counts less
  EXPECT_LT(s.rows["W"][1], 1);  // wrong and alone: pushed down less
  auto method = make_method("ucas");
  EXPECT_FALSE(method->needs().answer_classes);
  ucas::apply(*method, {agree});
  EXPECT_TRUE(method->needs().answer_classes);
  try {
    compute_advantages(batch, "ucas", "released", {agree});
    FAIL() << "a sum over tokens of what belongs to the response";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("method.pooling = \"mean\""), std::string::npos) << error.what();
  }
}

TEST(ucas_variants, certainty_may_be_the_probability_or_minus_the_entropy) {
  Batch batch = two_prompts();
  Advantages p = compute_advantages(batch, "ucas", "", {text("token_certainty", "probability")});
  double low = std::exp(-2.0), high = std::exp(-0.25);  // of the first response
  EXPECT_NEAR(p.rows["l_hat"][0], (std::exp(-1.0) - low) / (high - low), 1e-5);
  EXPECT_EQ(p.rows["l_hat"][1], 0.0f);
  Advantages h = compute_advantages(batch, "ucas", "", {text("token_certainty", "neg_entropy")});
  EXPECT_NEAR(h.rows["l_hat"][0], (3 - 1.0) / (3 - 0.5), 1e-5);
  EXPECT_EQ(h.rows["l_hat"][3], 0.0f);
}

TEST(ucas_variants, say_what_they_compute) {
  auto method = make_method("ucas");
  ucas::apply(*method, {text("weight", "linear"), number("alpha_neg", 0.5)});
  std::string all;
  for (const Equation& e : method->equations()) all += e.where + ": " + e.formula + " | " + e.words + "\n";
  EXPECT_NE(all.find("max(0, 1 - 0.25 C_hat) if A > 0, max(0, 1 + 0.5 C_hat) if A < 0"), std::string::npos) << all;
  EXPECT_NE(all.find("max(0, A_mod - 0.01 l_hat)"), std::string::npos) << all;
  method = make_method("ucas", "released");
  all.clear();
  for (const Equation& e : method->equations()) all += e.formula + "\n";
  EXPECT_NE(all.find("sum_t C_it + C after the last token"), std::string::npos) << all;
  EXPECT_NE(all.find("exp(-0.25 C_hat) if A > 0, exp(0.35 C_hat) otherwise"), std::string::npos) << all;
  method = make_method("ucas", "logprob");
  EXPECT_NE(method->equations()[1].formula.find("C_it = ln pi(o_it)"), std::string::npos);
  EXPECT_NE(method->equations()[1].words.find("which branch was taken"), std::string::npos);
}

}  // namespace
}  // namespace ucas
