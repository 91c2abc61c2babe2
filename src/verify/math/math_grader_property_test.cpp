// What must hold for any two texts, and for any value however it is written.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

#include "base/str.h"
#include "support/math_texts.h"
#include "support/verdicts.h"
#include "verify/registry.h"

namespace ucas::math {

namespace {

using namespace math_texts;

RC_GTEST_PROP(verifier_property, any_bytes_are_a_verdict_and_never_unequal_to_themselves, ()) {
  std::string text = coin() ? draw_bytes() : draw_soup();
  for (Extract extract : {Extract::strict, Extract::lenient}) grade_one({text}, text, extract);
  RC_ASSERT(grade_one({text}, text).kind != VerdictKind::unequal);
  grade_one({draw_soup()}, text);
}

RC_GTEST_PROP(verifier_property, a_verdict_says_why, ()) {
  std::string text = coin() ? draw_bytes() : draw_soup();
  RC_ASSERT(!grade_one({"7"}, text, pick<Extract>({Extract::strict, Extract::lenient, Extract::bare})).reason.empty());
}

RC_GTEST_PROP(verifier_property, verdicts_do_not_depend_on_threads_or_company, ()) {
  std::vector<std::vector<std::string>> gold;
  std::vector<std::string> responses;
  for (int i = 0; i < 40; ++i) {
    Fraction value = draw_fraction();
    gold.push_back({write(value), draw_soup()});
    responses.push_back(coin() ? str("\\boxed{", write(value), "}") : coin() ? draw_soup() : draw_bytes());
  }
  std::vector<Answer> answers;
  for (size_t i = 0; i < gold.size(); ++i) answers.push_back({responses[i], &gold[i]});
  std::unique_ptr<Grader> grader = make_grader(GraderKind::math, Extract::lenient);
  std::vector<Verdict> together = grader->grade(answers);
  std::vector<Verdict> apart(answers.size());
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = t; i < answers.size(); i += 4) apart[i] = grader->grade({&answers[i], 1}).front();
      });
    }
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    RC_ASSERT(together[i].kind == apart[i].kind);
    RC_ASSERT(together[i].answer == apart[i].answer);
    RC_ASSERT(together[i].reason == apart[i].reason);
  }
}

RC_GTEST_PROP(verifier_property, a_number_is_itself_in_any_spelling, ()) {
  Fraction value = draw_fraction();
  expect_equal(dress(write(value)), dress(write(value)));
}

RC_GTEST_PROP(verifier_property, another_number_is_not_paid_in_any_spelling, ()) {
  Fraction value = draw_fraction();
  expect_unequal(dress(write(value)), dress(write(change(value))));
  expect_unequal(dress(write(value, true)), dress(write(change(value, true), true)));
}

RC_GTEST_PROP(verifier_property, any_gold_alternative_counts_and_the_others_do_no_harm, ()) {
  Fraction value = draw_fraction();
  std::vector<std::string> gold = {write(change(value)), draw_soup(), write(value)};
  shuffle(gold);
  RC_ASSERT(grade_one(gold, write(value)).kind == VerdictKind::equal);
}

RC_GTEST_PROP(verifier_property, only_the_last_box_counts, ()) {
  Fraction value = draw_fraction();
  std::string right = write(value), wrong = write(change(value));
  auto graded = [&](const std::string& response) { return grade_one({right}, response, Extract::strict).kind; };
  RC_ASSERT(graded(str("\\boxed{", wrong, "}, no: $\\boxed{", right, "}$.")) == VerdictKind::equal);
  RC_ASSERT(graded(str("\\boxed{", right, "}, no: $\\boxed{", wrong, "}$.")) != VerdictKind::equal);
  RC_ASSERT(graded(str("\\boxed{", right, "} and \\boxed{", right)) != VerdictKind::equal);
  RC_ASSERT(graded(right) == VerdictKind::unparseable);
}

RC_GTEST_PROP(verifier_property, a_number_is_not_paid_for_several_candidates, ()) {
  Fraction value = draw_fraction();
  std::string right = write(value, true), wrong = write(change(value, true), true),
              other = write(change(value, true), true);
  for (const std::string& hedge :
       {str(right, " \\text{ or } ", wrong), str(wrong, " or ", right), str("\\{", right, ", ", wrong, "\\}"),
        str("(", right, ", ", wrong, ")"), str(right, "; ", wrong, "; ", other), str("[", wrong, ", ", right, "]"),
        str(right, " = ", wrong), str(wrong, " = ", right), str("\\pm ", value.above == 0 ? wrong : right),
        str("x \\ge ", right), std::string("x"), std::string("NaN"), std::string("\\infty"), std::string("{}")}) {
    if (is_rewarded(right, hedge)) RC_FAIL(str(hedge, "  is rewarded where the gold is  ", right));
  }
}

}  // namespace

}  // namespace ucas::math
