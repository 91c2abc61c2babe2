#include "report/figures/figure_section.h"

#include <gtest/gtest.h>

#include "records/run_record.h"

namespace ucas {
namespace {

RunRecord run(const std::string& method, std::vector<std::pair<std::string, std::string>> config) {
  RunRecord r;
  r.method = method;
  r.steps.step = {1};
  r.config = std::move(config);
  return r;
}

std::vector<std::string> varied(const std::vector<RunRecord>& runs) { return varied_settings(group_runs(runs)); }

TEST(figure_section, one_or_two_numbers_that_differ_among_three_groups_make_a_map) {
  EXPECT_EQ(varied({run("ucas", {{"method.alpha", "0.1"}, {"seed", "0"}}), run("ucas", {{"method.alpha", "0.2"}}),
                    run("ucas", {{"method.alpha", "0.3"}})}),
            std::vector<std::string>{"method.alpha"});
  EXPECT_EQ(varied({run("ucas", {{"method.alpha", "0.1"}, {"method.beta", "1"}}),
                    run("ucas", {{"method.alpha", "0.2"}, {"method.beta", "1"}}),
                    run("ucas", {{"method.alpha", "0.2"}, {"method.beta", "2"}}), run("dapo", {})}),
            (std::vector<std::string>{"method.alpha", "method.beta"}));
}

TEST(figure_section, groups_that_differ_in_words_or_in_many_settings_make_none) {
  EXPECT_TRUE(varied({run("ucas", {{"method.alpha", "0.1"}}), run("ucas", {{"method.alpha", "0.2"}})}).empty());
  EXPECT_TRUE(varied({run("ucas", {{"method.weight", "linear"}}), run("ucas", {{"method.weight", "exp"}}),
                      run("ucas", {{"method.weight", "none"}})})
                  .empty());
  EXPECT_TRUE(varied({run("a", {{"x", "1"}, {"y", "1"}, {"z", "1"}}), run("a", {{"x", "2"}, {"y", "2"}, {"z", "2"}}),
                      run("a", {{"x", "3"}, {"y", "3"}, {"z", "3"}})})
                  .empty());
}

TEST(figure_section, runs_without_evaluations_have_no_figures) { EXPECT_EQ(figures_html(group_runs({})), ""); }

}  // namespace
}  // namespace ucas
