#include "report/figures/figure_section.h"

#include <gtest/gtest.h>

#include "records/run_record.h"

namespace ucas {
namespace {

TEST(figure_section, runs_without_evaluations_have_no_figures) { EXPECT_EQ(figures_html(group_runs({})), ""); }

}  // namespace
}  // namespace ucas
