#include "explain/sources.h"

#include <gtest/gtest.h>

#include "base/files/embedded.h"
#include "base/str.h"

namespace ucas {
namespace {

TEST(explain_sources, comments_of_a_config_become_sources_of_its_values) {
  const ConfigRemarks remarks = remarks_of(
      "# A config.\n# Why it is so.\n\n[data]\ntemplate = \"a # b\"   # script\nsize = 3\n"
      "[method]\nprm.beta = 0.05 # article\n# a line of its own = nothing\n");
  EXPECT_EQ(remarks.about, "A config. Why it is so.");
  ASSERT_EQ(remarks.values.size(), 2u);
  EXPECT_EQ(remarks.values[0].key, "data.template");
  EXPECT_EQ(remarks.values[0].value, "a # b");
  EXPECT_EQ(remarks.values[0].source, "script");
  EXPECT_EQ(remarks.values[1].key, "method.prm.beta");
}

TEST(explain_sources, the_paper_s_configs_say_why_of_overlong_shaping_and_of_the_clip) {
  for (const char* size : {"7b", "1.5b"}) {
    for (const char* method : {"dapo", "ucas"}) {
      const std::string text(*embedded(str("configs/", method, "-paper-", size, ".toml")));
      EXPECT_NE(remarks_of(text).about.find("Overlong shaping: the text counts it"), std::string::npos) << method;
      EXPECT_NE(text.find("overlong_factor = 0.5"), std::string::npos) << method;
    }
    EXPECT_NE(remarks_of(std::string(*embedded(str("configs/grpo-paper-", size, ".toml")))).about.find("Clip: "),
              std::string::npos);
  }
}

}  // namespace
}  // namespace ucas
