#include "results/compare/diagnosis.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/str.h"

namespace ucas {
namespace {

constexpr double kNear = 2e-6;  // eps of the z-score moves the sixth digit

SignalledResponse sampled(const char* opening, bool right, double confidence, double logprob) {
  SignalledResponse o;
  o.opening = opening;
  o.right = right;
  o.signal = {confidence, logprob, 7, kUnknown, 3};
  return o;
}

// Confidences 10, 12, 11, 15: mean 12, deviation sqrt(14 / 3) = 2.160247. The last one is the only one of its strategy.
SignalledGroup worked(const std::string& problem) {
  return {problem,
          {sampled("r0", false, 10, -1), sampled("r0", false, 12, -1), sampled("r0", true, 11, -1),
           sampled("r1", true, 15, -2)}};
}

std::vector<SignalledGroup> worked_groups(int64_t count) {
  std::vector<SignalledGroup> groups;
  for (int64_t i = 0; i < count; ++i) groups.push_back(worked(str("p", i)));
  return groups;
}

const SignalDiagnosis& of(const Diagnosis& found, Signal signal) {
  for (const SignalDiagnosis& s : found.signals) {
    if (s.signal == signal) return s;
  }
  throw std::runtime_error("not diagnosed");
}

TEST(diagnosis, one_group_gives_the_numbers_of_a_calculation_by_hand) {
  const Diagnosis found = diagnose(worked_groups(1), {});
  EXPECT_EQ(found.rare, 1);
  EXPECT_EQ(found.responses, 4);
  const SignalDiagnosis& C = of(found, Signal::kl_uniform);
  EXPECT_DOUBLE_EQ(C.auroc, 0.75);  // 11 > 10, 15 > 10, 15 > 12; not 11 > 12
  EXPECT_NEAR(C.z_right, (-0.462910 + 1.388730) / 2, kNear);
  EXPECT_NEAR(C.z_rare.value, 1.388730, kNear);
  EXPECT_EQ(C.rare_over, 1);
  EXPECT_EQ(C.right, 2);
  EXPECT_EQ(C.right_over, 1);
  // -1 -1 -1 -2: mean -1.25, deviation 0.5.
  const SignalDiagnosis& logprob = of(found, Signal::logprob);
  EXPECT_NEAR(logprob.z_rare.value, -1.5, kNear * 2);
  EXPECT_DOUBLE_EQ(logprob.auroc, 0.25);  // two ties, two losses
  EXPECT_EQ(logprob.rare_over, 0);
}

TEST(diagnosis, a_signal_low_where_right_is_rare_protects_and_a_high_one_shrinks) {
  const Diagnosis found = diagnose(worked_groups(20), {});
  EXPECT_TRUE(found.enough());
  EXPECT_EQ(of(found, Signal::kl_uniform).effect, RareEffect::shrinks);
  EXPECT_EQ(of(found, Signal::logprob).effect, RareEffect::protects);
  EXPECT_EQ(of(found, Signal::neg_entropy).effect, RareEffect::unclear);  // the same for all: z = 0
  EXPECT_EQ(of(found, Signal::neg_entropy).rare_over, 0);                 // W = 1
}

TEST(diagnosis, a_signal_whose_sign_changes_between_problems_is_not_told) {
  std::vector<SignalledGroup> groups = worked_groups(20);
  for (size_t g = 0; g < groups.size(); g += 2) groups[g].responses[3].signal[0] = 7;
  const SignalDiagnosis C = of(diagnose(groups, {}), Signal::kl_uniform);
  EXPECT_LT(C.z_rare.low, 0);
  EXPECT_GT(C.z_rare.high, 0);
  EXPECT_EQ(C.effect, RareEffect::unclear);
  EXPECT_EQ(C.rare_over, 10);
}

TEST(diagnosis, few_rare_right_responses_or_few_problems_conclude_nothing) {
  const Diagnosis few = diagnose(worked_groups(19), {});
  EXPECT_FALSE(few.enough());
  EXPECT_EQ(of(few, Signal::kl_uniform).effect, RareEffect::unclear);
  std::vector<SignalledGroup> one_problem = worked_groups(40);
  for (SignalledGroup& group : one_problem) group.problem = "p0";  // forty steps of a training
  const Diagnosis same = diagnose(one_problem, {});
  EXPECT_EQ(same.rare, 40);
  EXPECT_EQ(same.rare_problems, 1);
  EXPECT_EQ(of(same, Signal::kl_uniform).effect, RareEffect::unclear);
}

TEST(diagnosis, groups_without_a_difference_do_not_count) {
  std::vector<SignalledGroup> groups = worked_groups(1);
  groups.push_back({"all right", {sampled("r0", true, 1, -1), sampled("r5", true, 1, -1)}});
  const Diagnosis found = diagnose(groups, {});
  EXPECT_EQ(found.groups, 2);
  EXPECT_EQ(found.mixed, 1);
  EXPECT_DOUBLE_EQ(of(found, Signal::kl_uniform).auroc, 0.75);
}

TEST(diagnosis, what_is_rare_is_a_share_of_the_group_its_bound_included) {
  DiagnosisOptions options;
  options.rare = 0.24;
  EXPECT_EQ(diagnose(worked_groups(3), options).rare, 0);
  options.rare = 0.25;
  EXPECT_EQ(diagnose(worked_groups(3), options).rare, 3);
  options.rare = 0.75;
  EXPECT_EQ(diagnose(worked_groups(3), options).rare, 6);
}

// Prose: every response begins alike, and strategies differ by nothing but their results.
TEST(diagnosis, rare_responses_are_found_by_accuracy_or_logprob_where_all_begin_alike) {
  std::vector<SignalledGroup> groups;
  for (int g = 0; g < 20; ++g) {  // of eight responses two are right
    SignalledGroup group{str("p", g), {}};
    for (int i = 0; i < 8; ++i) {
      group.responses.push_back(sampled("To", i < 2, i == 0 ? 20 : 10 + i % 3, i == 0 ? -3 : -1 - 0.01 * i));
      group.responses.back().signal[static_cast<size_t>(Signal::self_consistency)] = i < 2 ? 0.25 : 0.75;
    }
    groups.push_back(group);
  }
  const auto by = [&](RareBy kind, double rare) {
    DiagnosisOptions options;
    options.rare = rare;
    options.rare_by = kind;
    return diagnose(groups, options);
  };
  EXPECT_EQ(by(RareBy::opening, 0.25).rare, 0);
  const Diagnosis accuracy = by(RareBy::accuracy, 0.25);
  EXPECT_EQ(accuracy.rare, 40);
  EXPECT_EQ(by(RareBy::accuracy, 0.2).rare, 0);
  EXPECT_EQ(of(accuracy, Signal::kl_uniform).effect, RareEffect::shrinks);
  EXPECT_EQ(of(accuracy, Signal::logprob).effect, RareEffect::protects);
  const Diagnosis logprob = by(RareBy::logprob, 0.5);
  EXPECT_EQ(logprob.rare, 20);  // the less likely of the two
  EXPECT_EQ(of(logprob, Signal::kl_uniform).effect, RareEffect::shrinks);
  EXPECT_EQ(by(RareBy::logprob, 0.25).rare, 0);  // a quarter of two is none
}

TEST(diagnosis, of_the_signal_that_chooses_rare_responses_nothing_is_concluded) {
  DiagnosisOptions options;
  options.rare_by = RareBy::logprob;
  options.rare = 0.5;
  const Diagnosis found = diagnose(worked_groups(20), options);
  EXPECT_EQ(found.rare, 20);
  EXPECT_TRUE(of(found, Signal::logprob).selects);
  EXPECT_EQ(of(found, Signal::logprob).effect, RareEffect::unclear);
  EXPECT_FALSE(of(found, Signal::kl_uniform).selects);
  EXPECT_EQ(of(found, Signal::kl_uniform).effect, RareEffect::shrinks);
}

TEST(diagnosis, a_signal_that_is_not_finite_leaves_its_group_out) {
  std::vector<SignalledGroup> groups = worked_groups(2);
  groups[0].responses[1].signal[1] = -INFINITY;
  const Diagnosis found = diagnose(groups, {});
  EXPECT_EQ(of(found, Signal::logprob).groups, 1);
  EXPECT_EQ(of(found, Signal::kl_uniform).groups, 2);
  EXPECT_THROW(of(found, Signal::self_consistency), std::runtime_error);  // unknown everywhere
}

}  // namespace
}  // namespace ucas
