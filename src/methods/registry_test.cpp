#include "methods/registry.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/str.h"
#include "methods/apply.h"
#include "support/random_batches.h"
#include "support/shaping.h"

namespace ucas {
namespace {

TEST(methods, an_unknown_name_is_refused_with_the_nearest_one) {
  try {
    make_method("ucsa");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "config");
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

std::string refusal(const std::function<void()>& asked, const std::string& kind) {
  try {
    asked();
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), kind);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(methods, an_unknown_preset_is_refused_with_those_that_there_are) {
  std::string said = refusal([] { make_method("ktae", "papr"); }, "config");
  EXPECT_NE(said.find("method.preset = \"papr\": ktae has released, paper"), std::string::npos) << said;
  EXPECT_TRUE(find_method("ktae").has_preset("paper"));
  EXPECT_EQ(make_method("ktae", "paper")->row().name, "ktae");
}

TEST(compute_advantages, gives_the_advantages_under_a_preset_and_settings) {
  Rng rng(1, 8);
  Batch batch = testing::pack(testing::random_groups(rng, {}));
  std::unique_ptr<Method> method = make_method("ucas", "released");
  apply(*method, {{"beta", 0.5, "test", false}});
  std::vector<float> advantage(batch.token.size());
  Recording recording;
  method->advantages(batch, advantage, recording);
  ucas::Advantages computed = ucas::compute_advantages("ucas", batch, "released", {{"beta", 0.5, "test", false}});
  EXPECT_EQ(computed.advantage, advantage);
  EXPECT_NE(computed.advantage, ucas::compute_advantages("ucas", batch).advantage);
  EXPECT_EQ(computed.recording.rows.size(), recording.rows.size());
}

TEST(compute_advantages, says_in_one_line_what_the_batch_lacks) {
  Rng rng(2, 8);
  Batch batch = testing::pack(testing::random_groups(rng, {}));
  batch.signal("value").clear();
  batch.signal("prm_logratio").clear();
  batch.logit.clear();
  for (auto [method, array] : {std::pair{"ppo", "\"value\""}, {"prime", "\"prm_logratio\""}, {"ucas", "\"logit\""}}) {
    std::string said = refusal([&] { ucas::compute_advantages(method, batch); }, "unsupported");
    EXPECT_NE(said.find(str(find_method(method).title, " needs ")), std::string::npos) << said;
    EXPECT_NE(said.find(array), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
  const Setting margin = testing::text("response_confidence", "margin");
  std::string said = refusal(
      [&] { ucas::compute_advantages("ucas", testing::make_batch({{0, 1, {1}, {1}}}), "", {margin}); }, "unsupported");
  EXPECT_NE(said.find("\"margin\""), std::string::npos) << said;
  EXPECT_EQ(missing(make_method("intuitor")->needs().signals, batch), "");  // reads the confidence alone
}

}  // namespace
}  // namespace ucas
