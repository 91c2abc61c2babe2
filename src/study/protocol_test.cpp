#include "study/protocol.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "study/table.h"

namespace ucas {
namespace {

double figure(const std::string& row, const Quantity& quantity) {
  const std::string text = quantity.text();
  if (row == "base" && text == "mean@16:macro") return 0.2;
  if (row == "base" && text == "pass@64") return 0.6;
  if (row == "ucas-paper-1.5b" && text == "entropy") return 0.3;
  if (row == "base" && text == "entropy") return 1.2;
  return kUnknown;
}

StudyGate gate(const std::string& row, const Quantity& quantity, double at_least, double at_most = kUnknown) {
  StudyGate one{row, "", "c", "", false, at_least, at_most, quantity, quantity};
  return one;
}

TEST(gates, compare_a_figure_a_difference_or_a_quotient_with_a_bound) {
  const Quantity mean{"mean", "16", 16, "macro"}, pass = parse_quantity("pass@64"), entropy = parse_quantity("entropy");
  StudyGate headroom = gate("base", pass, 0.25), collapse = gate("ucas-paper-1.5b", entropy, kUnknown, 0.5);
  headroom.than_column = "mean";
  headroom.than_quantity = mean;
  collapse.than_row = "base";
  collapse.ratio = true;
  const auto results = check_gates({gate("base", mean, 0.15, 0.15), headroom, collapse}, figure);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(results[0].held);
  EXPECT_FALSE(results[1].held);
  EXPECT_NEAR(results[2].value, 0.4, 1e-12);
  EXPECT_NEAR(results[3].value, 0.25, 1e-12);
  EXPECT_TRUE(results[3].held);
  EXPECT_EQ(results[0].text, "base.mean@16:macro >= 0.15: 0.200");
  EXPECT_EQ(results[2].text, "base.pass@64 - base.mean@16:macro >= 0.25: 0.400");
  EXPECT_EQ(results[3].text, "ucas-paper-1.5b.entropy / base.entropy <= 0.5: 0.250");
}

TEST(gates, of_what_is_not_known_does_not_hold) {
  for (const GateResult& result : check_gates({gate("dapo", parse_quantity("greedy"), 0, 1)}, figure)) {
    EXPECT_FALSE(result.held);
    EXPECT_TRUE(result.text.ends_with(": not known")) << result.text;
  }
}

TEST(gates, say_before_training_only_what_is_of_the_base) {
  StudyGate one = gate("base", parse_quantity("pass@64"), 0);
  EXPECT_TRUE(one.of_base());
  one.than_row = "dapo";
  EXPECT_FALSE(one.of_base());
}

// A table with one row against the reference in two columns.
std::string decided(Contrast first, Contrast second) {
  StudyTable table;
  table.compare = {parse_quantity("mean@16"), parse_quantity("pass@64")};
  for (Contrast* c : {&first, &second}) c->p = c->p_holm = 0.01;
  table.options.decide = {"ucas", 0.01, 0.033, {}};
  table.rows.push_back({"ucas", "UCAS", true, {}, {}, {first, second}});
  return decide(table);
}

Contrast change(double value, double low, double high, bool significant) {
  Contrast c;
  c.change = {value, low, high};
  c.significant = significant;
  return c;
}

TEST(decision, is_help_where_one_outcome_is_significantly_and_enough_above) {
  const Contrast none = change(0, -0.02, 0.02, false);
  EXPECT_TRUE(decided(change(0.03, 0.01, 0.05, true), none).starts_with("helps"));
  EXPECT_FALSE(decided(change(0.03, 0.01, 0.05, false), none).starts_with("helps"));    // not after the correction
  EXPECT_FALSE(decided(change(0.005, 0.001, 0.01, true), none).starts_with("helps"));   // too little
  EXPECT_FALSE(decided(change(-0.03, -0.05, -0.01, true), none).starts_with("helps"));  // the other way
}

TEST(decision, is_no_effect_where_the_first_outcome_lies_within_it_and_entropy_decides_nothing) {
  StudyTable table;
  table.compare = {parse_quantity("mean@16"), parse_quantity("pass@64"), parse_quantity("entropy")};
  table.options.decide = {.row = "ucas", .helps_from = 0.01, .effect = 0.01};
  const auto verdict = [&](Contrast mean, Contrast pass, Contrast entropy) {
    table.rows = {{"ucas", "UCAS", true, {}, {}, {mean, pass, entropy}}};
    return decide(table);
  };
  const Contrast narrow = change(0.001, -0.007, 0.009, false), wide = change(0, -0.05, 0.05, false);
  EXPECT_TRUE(verdict(narrow, wide, wide).starts_with("no effect of 1.0 points in mean@16: "));
  EXPECT_TRUE(verdict(wide, narrow, wide).starts_with("undecided: "));
  EXPECT_TRUE(verdict(change(0, -0.011, 0.009, false), wide, wide).starts_with("undecided: "));
  EXPECT_TRUE(verdict(wide, wide, change(0.06, 0.05, 0.07, true)).starts_with("undecided, entropy higher: "));
  EXPECT_TRUE(verdict(wide, wide, change(-0.06, -0.07, -0.05, true)).starts_with("undecided, entropy lower: "));
}

TEST(decision, is_worse_where_an_outcome_is_significantly_below_and_never_help_with_harm) {
  const Contrast none = change(0, -0.02, 0.02, false), below = change(-0.03, -0.045, -0.015, true);
  EXPECT_TRUE(decided(below, none).starts_with("worse: "));
  EXPECT_TRUE(decided(none, below).starts_with("worse: "));
  EXPECT_FALSE(decided(change(-0.03, -0.045, -0.015, false), none).starts_with("worse"));
  EXPECT_TRUE(decided(change(0.02, 0.01, 0.03, true), change(-0.08, -0.1, -0.06, true))
                  .starts_with("undecided, as it is better in mean@16 and worse in pass@64: "));
}

TEST(decision, is_help_only_where_every_placebo_is_beaten_in_the_outcome_that_helps) {
  const Contrast none = change(0, -0.02, 0.02, false), above = change(0.03, 0.01, 0.05, true);
  const auto verdict = [&](const std::vector<PlaceboContrasts>& placebos) {
    StudyTable table;
    table.compare = {parse_quantity("mean@16"), parse_quantity("pass@64")};
    table.options.decide = {"ucas", 0.01, 0.033, {}};
    table.rows.push_back({"ucas", "UCAS", true, {}, {}, {above, none}});
    table.placebos = placebos;
    return decide(table);
  };
  EXPECT_TRUE(verdict({{"permuted", {above, none}}, {"matched", {above, none}}}).starts_with("helps: "));
  EXPECT_TRUE(verdict({{"permuted", {none, above}}}).starts_with("undecided, as it does not beat permuted: "));
  EXPECT_TRUE(verdict({{"permuted", {none, none}}, {"matched", {above, none}}})
                  .starts_with("undecided, as it does not beat permuted: "));
  const Contrast beneath = change(-0.03, -0.05, -0.01, true);
  EXPECT_TRUE(verdict({{"permuted", {beneath, none}}}).starts_with("undecided, as it does not beat permuted: "));
}

TEST(decision, is_no_help_by_so_much_where_all_outcomes_exclude_it_and_else_undecided) {
  EXPECT_TRUE(decided(change(0, -0.02, 0.02, false), change(0.01, -0.01, 0.03, false))
                  .starts_with("does not help by 3.3 points"));
  EXPECT_TRUE(decided(change(0, -0.02, 0.02, false), change(0.01, -0.01, 0.04, false)).starts_with("undecided"));
  EXPECT_TRUE(decided(change(0, kUnknown, kUnknown, false), change(0, -0.01, 0.01, false)).starts_with("undecided"));
}

// A seed is a dot.
TEST(decision, figure_has_a_row_for_each_other_row_and_a_dot_for_each_pair_of_seeds) {
  StudyTable table;
  table.options.decide = {.row = "ucas", .helps_from = 0.01, .effect = 0.01};
  table.reference = "DAPO";
  table.columns = table.compare = {parse_quantity("mean@16")};
  const auto row = [](const std::string& name, const std::string& title, std::vector<double> values) {
    StudyRow out{.name = name, .title = title, .trained = true};
    for (size_t i = 0; i < values.size(); ++i) out.runs.push_back({.seed = static_cast<int64_t>(i)});
    out.cells = {{.values = std::move(values), .censored = {}}};
    return out;
  };
  table.rows = {row("dapo", "DAPO", {0.50, 0.52, 0.54}), row("ucas", "UCAS", {0.51, 0.50}), row("null", "Null", {0.4})};
  table.rows[1].against = {change(-0.005, -0.02, 0.01, false)};
  table.placebos = {{"Null", {change(0.11, kUnknown, kUnknown, false)}}};
  EXPECT_EQ(decision_figure(table).csv,
            "outcome,against,difference,low,high,runs\nmean@16,DAPO,-0.005,-0.02,0.01,2\nmean@16,Null,0.11,,,1\n");
  EXPECT_NE(decision_figure(table).svg.find("right of 0 ucas is better"), std::string::npos);
  table.options.decide = {};
  EXPECT_EQ(decision_figure(table).svg, "");
}

}  // namespace
}  // namespace ucas
