#include "train/state/fingerprint.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

TrainConfig config_of(std::vector<std::pair<std::string, std::string>> settings) {
  std::vector<Setting> all;
  for (auto& [key, value] : settings) all.push_back({key, value, key, true});
  return make_train_config(all);
}

struct Scene {
  testing::TemporaryDirectory folder;
  std::string form = path_join(folder.path(), "form.toml");
  Scene() {
    write_file(path_join(folder.path(), "tokenizer.json"), "{}");
    write("{problem}");
  }
  void write(const std::string& text) const { write_file(form, str("name = \"form\"\ntext = \"", text, "\"\n")); }
  std::string fingerprint(TrainConfig config, const std::string& data = "1") const {
    config.data.prompt_template = form;
    return make_fingerprint({config, data, "2", folder.path()});
  }
};

TEST(fingerprint, names_what_has_changed_and_nothing_else) {
  Scene scene;
  const TrainConfig config = config_of({{"rollout.n", "8"}});
  const std::string before = scene.fingerprint(config);
  EXPECT_TRUE(compare_fingerprints(before, scene.fingerprint(config)).empty());
  EXPECT_EQ(compare_fingerprints(before, scene.fingerprint(config, "3")),
            std::vector<std::string>{"data = 1, now data = 3"});
  EXPECT_EQ(compare_fingerprints(before, scene.fingerprint(config_of({{"rollout.n", "16"}, {"train.keep", "7"}}))),
            std::vector<std::string>{"rollout.n = 8, now rollout.n = 16"});
}

TEST(fingerprint, the_text_of_a_template_counts_and_not_its_name_alone) {
  Scene scene;
  const std::string before = scene.fingerprint(config_of({}));
  scene.write("Solve: {problem}");
  const std::vector<std::string> changed = compare_fingerprints(before, scene.fingerprint(config_of({})));
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_TRUE(changed[0].starts_with("text of the template " + scene.form)) << changed[0];
}

TEST(fingerprint, the_number_of_ranks_counts_where_their_gradients_are_summed) {
  Scene scene;
  const auto of = [&](const char* reduce, int64_t ranks) {
    TrainConfig config = config_of({{"update.reduce", reduce}});
    config.data.prompt_template = scene.form;
    return make_fingerprint({config, "1", "2", scene.folder.path(), ranks});
  };
  EXPECT_EQ(compare_fingerprints(of("sum", 2), of("sum", 3)),
            std::vector<std::string>{"ranks of a sum = 2, now ranks of a sum = 3"});
  EXPECT_EQ(compare_fingerprints(of("sum", 1), of("sum", 2)),
            std::vector<std::string>{"no ranks of a sum, now ranks of a sum = 2"});
  EXPECT_EQ(compare_fingerprints(of("sum", 2), of("sum", 1)).size(), 1u);
  EXPECT_TRUE(compare_fingerprints(of("micro", 2), of("micro", 3)).empty());
}

TEST(fingerprint, another_version_of_the_program_is_named) {
  Scene scene;
  const std::string now = scene.fingerprint(config_of({}));
  std::string before = now;
  const size_t at = before.find("\nucas = ") + 8;
  before.replace(at, before.find('\n', at) - at, "0.0.9");
  const std::vector<std::string> changed = compare_fingerprints(before, now);
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_TRUE(changed[0].starts_with("ucas = 0.0.9, now ucas = ")) << changed[0];
}

TEST(fingerprint, a_name_that_only_one_of_them_has_is_a_change) {
  EXPECT_EQ(compare_fingerprints("ucas = 1\n", "new = 2\nucas = 1\n"), std::vector<std::string>{"no new, now new = 2"});
  EXPECT_EQ(compare_fingerprints("gone = 2\nucas = 1\n", "ucas = 1\n"),
            std::vector<std::string>{"gone = 2, now there is no gone"});
}

}  // namespace
}  // namespace ucas
