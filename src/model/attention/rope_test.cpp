// Rotary frequencies against those of transformers at the settings of published models (tools/make_model_goldens.py).
#include "model/attention/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

size_t got_half(const ModelConfig& config) { return static_cast<size_t>(config.head_dim / 2); }

TEST(rope, frequencies_are_those_of_transformers_but_for_the_last_bit) {
  testing::TemporaryDirectory folder;
  int64_t compared = 0, unequal = 0;
  for (const Json& row : read_json(std::string(UCAS_SOURCE_DIR) + "/tests/goldens/model/configs.json", 1 << 20)) {
    std::ofstream(folder.path() + "/config.json") << row["config"].dump();
    ModelConfig config = read_model_config(folder.path());
    for (const auto& [key, rope] :
         {std::pair("rope_frequencies", config.rope), {"local_rope_frequencies", config.local_rope}}) {
      if (!row["expected"].contains(key)) continue;
      std::vector<float> got = rope_frequencies(config, rope);
      const Json& want = row["expected"][key];
      ASSERT_EQ(got.size(), want.size()) << row["name"];
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i] / want[i].get<float>(), 1, 2.5e-7) << row["name"] << ", pair " << i;
        unequal += got[i] != want[i].get<float>();
        ++compared;
      }
    }
    if (row["expected"].contains("no_rope_layers")) {
      std::vector<int> rotates;
      for (size_t l = 0; l < row["expected"]["no_rope_layers"].size(); ++l)
        rotates.push_back(!config.rotates_locally(l));
      EXPECT_EQ(Json(rotates), row["expected"]["no_rope_layers"]) << row["name"];
      EXPECT_EQ(rope_frequencies(config, config.local_rope), std::vector<float>(got_half(config), 0.0f));
    }
    EXPECT_EQ(rope_attention_factor(config.rope), row["expected"]["rope_attention_factor"].get<float>()) << row["name"];
  }
  EXPECT_GT(compared, 800);
  EXPECT_LT(unequal, compared / 50) << "of powers that the library rounds another way";
}

TEST(rope, a_table_has_the_cosines_and_sines_of_position_times_frequency) {
  ModelConfig config;
  config.rope = {.kind = RopeKind::yarn, .factor = 4, .original_max_position_embeddings = 64, .attention_factor = 1.5};
  RopeTable table(config, config.rope);
  std::vector<float> frequency = rope_frequencies(config, config.rope);
  ASSERT_EQ(static_cast<int64_t>(frequency.size()), table.half());
  for (int64_t position : {0, 1, 7, 300, 4095}) {
    table.reach(position);
    for (size_t i = 0; i < frequency.size(); ++i) {
      EXPECT_NEAR(table.cosines(position)[i], 1.5 * std::cos(static_cast<float>(position) * frequency[i]), 3e-7);
      EXPECT_NEAR(table.sines(position)[i], 1.5 * std::sin(static_cast<float>(position) * frequency[i]), 3e-7);
    }
  }
}

}  // namespace
}  // namespace ucas
