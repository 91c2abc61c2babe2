#include "records/run/step_methods.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files/file.h"
#include "support/batches.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class step_methods : public ::testing::Test {
 protected:
  step_methods() {
    data_.step = 3;
    data_.batch = testing::make_batch({{0, 1, {1, 2, 3}, {1, 1, 1}}, {0, 0, {}, {}}, {1, 0, {4, 5}, {1, 1}}});
  }
  std::vector<MethodAdvantages> read(const std::string& text, const std::string& source = "abc") {
    std::string path = path_join(folder_.path(), "m.json");
    write_file(path, text);
    return read_step_methods(path, data_, source);
  }
  std::string refusal(const std::string& text, const std::string& source = "abc") {
    try {
      read(text, source);
    } catch (const Error& error) {
      return error.what();
    }
    return "read without complaint";
  }
  StepData data_;
  std::vector<MethodAdvantages> two_ = {
      {"a", "", "A", {{"alpha", "0.5"}}, {0.1f, 0.1f, 0.1f, -1.0f / 3, 2e-30f}},
      {"b", "paper", "B </script>", {}, {0, 1, 2, 3, std::numeric_limits<float>::quiet_NaN()}}};
  testing::TemporaryDirectory folder_;
};

TEST_F(step_methods, every_float_reads_back) {
  std::vector<MethodAdvantages> again = read(step_methods_json(data_, "abc", two_));
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].advantage, two_[0].advantage);
  EXPECT_EQ(again[0].settings, two_[0].settings);
  EXPECT_EQ(again[1].preset, "paper");
  EXPECT_EQ(again[1].title, "B </script>");
  EXPECT_EQ(again[1].advantage[3], 3);
  EXPECT_TRUE(std::isnan(again[1].advantage[4]));
}

TEST_F(step_methods, stand_beside_their_step) {
  EXPECT_EQ(step_methods_file("run/signals/step-0000012.jsonl"), "run/signals/step-0000012.methods.json");
}

TEST_F(step_methods, of_other_data_are_refused) {
  std::string text = step_methods_json(data_, "abc", two_);
  EXPECT_NE(refusal(text, "abd").find("made from other step data"), std::string::npos);
  data_.batch.responses[0].length = 2;
  EXPECT_NE(refusal(step_methods_json(data_, "abc", {})), refusal(text));
  EXPECT_NE(refusal(text).find("values for 2 tokens"), std::string::npos) << refusal(text);
}

TEST_F(step_methods, of_a_wrong_form_are_refused) {
  for (const char* text : {"{}", "[]", R"({"format": "ucas-methods-1"})",
                           R"({"format": "ucas-methods-1", "source": "abc", "methods": {}})",
                           R"({"format": "ucas-methods-1", "source": "abc", "methods": [1]})"}) {
    EXPECT_NE(refusal(text).find("ucas advantages --save"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace ucas
