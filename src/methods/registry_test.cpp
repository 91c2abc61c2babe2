#include "methods/registry.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ucas {
namespace {

TEST(methods, an_unknown_name_is_refused_with_the_nearest_one) {
  try {
    make_method("ucsa");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "config");
    EXPECT_NE(std::string(error.what()).find("did you mean ucas?"), std::string::npos) << error.what();
    for (const MethodRow& row : method_rows()) {
      EXPECT_NE(std::string(error.what()).find(row.name), std::string::npos) << error.what();
    }
  }
}

TEST(methods, each_says_who_it_is_and_has_usable_defaults) {
  for (const MethodRow& row : method_rows()) {
    std::unique_ptr<Method> method = make_method(row.name);
    EXPECT_FALSE(method->title().empty()) << row.name;
    EXPECT_NE(row.paper.find("arXiv"), std::string::npos) << row.name;
    ObjectiveConfig objective = method->objective_defaults();
    EXPECT_TRUE(objective.dual_clip == 0 || objective.dual_clip > 1) << row.name;
    EXPECT_GT(objective.clip_high, 0) << row.name;
    method->validate();
    for (const FieldValue& field : fields_of(objective)) EXPECT_FALSE(field.help.empty()) << field.key;
  }
}

TEST(methods, the_defaults_are_those_of_the_papers) {
  ObjectiveConfig grpo = make_method("grpo")->objective_defaults(), dapo = make_method("dapo")->objective_defaults(),
                  ucas = make_method("ucas")->objective_defaults();
  EXPECT_EQ(grpo.aggregation, Aggregation::seq_mean_token_mean);
  EXPECT_EQ(grpo.clip_high, 0.2);
  EXPECT_FALSE(grpo.keep_mixed_groups);
  for (const ObjectiveConfig& objective : {dapo, ucas}) {
    EXPECT_EQ(objective.aggregation, Aggregation::group_token_mean);
    EXPECT_EQ(objective.clip_low, 0.2);
    EXPECT_EQ(objective.clip_high, 0.28);
    EXPECT_EQ(objective.dual_clip, 10);
    EXPECT_TRUE(objective.keep_mixed_groups);
  }
}

}  // namespace
}  // namespace ucas
