#include "study/protocol.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "study/table.h"

namespace ucas {
namespace {

double figure(const std::string& row, const std::string& quantity) {
  if (row == "base" && quantity == "mean@16:macro") return 0.2;
  if (row == "base" && quantity == "pass@64") return 0.6;
  if (row == "ucas-paper-1.5b" && quantity == "entropy") return 0.3;
  if (row == "base" && quantity == "entropy") return 1.2;
  return kUnknown;
}

GateResult one(const std::string& text) { return check_gates({parse_gate(text)}, figure).at(0); }

TEST(gates, compare_a_figure_a_difference_or_a_quotient_with_a_bound) {
  EXPECT_TRUE(one("base.mean@16:macro >= 0.15").held);
  EXPECT_FALSE(one("base.mean@16:macro <= 0.15").held);
  EXPECT_NEAR(one("base.pass@64 - base.mean@16:macro >= 0.25").value, 0.4, 1e-12);
  EXPECT_NEAR(one("ucas-paper-1.5b.entropy / base.entropy <= 0.5").value, 0.25, 1e-12);
  EXPECT_TRUE(one("ucas-paper-1.5b.entropy / base.entropy <= 0.5").held);
  EXPECT_EQ(gate_text(one("base.mean@16:macro >= 0.15")), "base.mean@16:macro >= 0.15: 0.200");
}

TEST(gates, of_what_is_not_known_does_not_hold) {
  EXPECT_FALSE(one("dapo.greedy >= 0").held);
  EXPECT_FALSE(one("dapo.greedy <= 1").held);
  EXPECT_EQ(gate_text(one("dapo.greedy <= 1")), "dapo.greedy <= 1: not known");
}

TEST(gates, say_before_training_only_what_is_of_the_base) {
  EXPECT_TRUE(parse_gate("base.pass@64 - base.mean@16 >= 0.25").of_base());
  EXPECT_FALSE(parse_gate("dapo.pass@64 - base.pass@64 <= 0").of_base());
}

TEST(gates, of_another_form_are_refused) {
  for (const char* text : {"", "base.greedy", "base.greedy > 0.5", "base greedy >= 0.5", "base.greedy >= half",
                           "base.greedy * base.greedy >= 1", "base.graedy >= 0.5", "base.greedy - >= 1"}) {
    EXPECT_THROW(parse_gate(text), Error) << text;
  }
}

// A table with one row against the reference in two columns.
std::string decided(Contrast first, Contrast second) {
  StudyTable table;
  table.compare = {"mean@16", "pass@64"};
  for (Contrast* c : {&first, &second}) c->p = c->p_holm = 0.01;
  table.rows.push_back({"UCAS", true, {}, {}, {first, second}});
  return decide(table, "UCAS", {"ucas", 0.01, 0.033, {}});
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

TEST(decision, is_help_only_where_every_placebo_is_beaten_in_one_outcome_at_least) {
  const Contrast none = change(0, -0.02, 0.02, false), above = change(0.03, 0.01, 0.05, true);
  const auto verdict = [&](const std::vector<PlaceboContrasts>& placebos) {
    StudyTable table;
    table.compare = {"mean@16", "pass@64"};
    table.rows.push_back({"UCAS", true, {}, {}, {above, none}});
    table.placebos = placebos;
    return decide(table, "UCAS", {"ucas", 0.01, 0.033, {}});
  };
  EXPECT_TRUE(verdict({{"permuted", {none, above}}, {"matched", {above, none}}}).starts_with("helps: "));
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

}  // namespace
}  // namespace ucas
