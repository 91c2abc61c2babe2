#include "config/explain/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/str.h"

namespace ucas {

namespace {

TrainConfig config_of(const std::vector<std::pair<std::string, std::string>>& options) {
  std::vector<Setting> settings;
  for (const auto& [key, value] : options) settings.push_back({key, value, "--" + key, true});
  return make_train_config(settings);
}

// All lines of a section, joined.
std::string section(const TrainConfig& config, const std::string& title) {
  std::string text;
  for (const ExplainedSection& s : explain_sections(config)) {
    if (s.title != title) continue;
    for (const ExplainedLine& line : s.lines) text += str(line.where, " | ", line.formula, " | ", line.words, "\n");
  }
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(explain, every_embedded_config_loads_and_can_be_explained) {
  for (const std::string& name : config_names()) {
    SCOPED_TRACE(name);
    TrainConfig config = make_train_config(read_config_file(name));
    config.validate_settings();
    for (const ExplainedSection& s : explain_sections(config)) {
      EXPECT_FALSE(s.lines.empty()) << s.title;
      for (const ExplainedLine& line : s.lines) EXPECT_FALSE(line.formula.empty() && line.words.empty()) << s.title;
    }
    EXPECT_FALSE(explain_comparisons(config, name).empty());
  }
}

TEST(explain, every_method_and_preset_says_what_it_does) {
  for (const MethodRow& row : method_rows()) {
    for (const std::string& preset : row.presets) {
      SCOPED_TRACE(str(row.name, " ", preset));
      TrainConfig config = config_of({{"method.name", row.name}, {"method.preset", preset}});
      EXPECT_FALSE(section(config, "The method").empty());
      std::vector<Departures> all = explain_comparisons(config, "");
      auto own = std::ranges::find_if(all, [](const Departures& c) { return c.note == "in use"; });
      ASSERT_NE(own, all.end());
      EXPECT_TRUE(own->rows.empty()) << "a preset departs from itself in " << own->rows[0].key;
    }
  }
}

TEST(explain, reward_and_shaping_carry_their_values) {
  TrainConfig config = config_of({{"reward.correct", "1"},
                                  {"reward.wrong", "-1"},
                                  {"rollout.response_length", "3072"},
                                  {"reward.overlong_buffer", "512"},
                                  {"reward.overlong_factor", "0.5"}});
  std::string text = section(config, "Reward");
  EXPECT_TRUE(has(text, "R_i = 1 if the answer is right, -1 if not")) << text;
  EXPECT_TRUE(has(text, "R_i += min(0, -(L_i - 2560) / 512 * 0.5)")) << text;
}

TEST(explain, updates_are_counted_as_the_trainer_makes_them) {
  TrainConfig config = config_of({{"data.train_batch_size", "512"}, {"update.mini_batch_size", "32"}});
  EXPECT_TRUE(has(section(config, "Update"), "16 updates a step, of 32 prompts or 512 responses each"));
  EXPECT_TRUE(has(section(config, "Update"), "8,192 responses, 8,388,608 response tokens at most"));
  config = config_of({{"data.train_batch_size", "8"}, {"update.mini_batch_size", "8"}});
  EXPECT_TRUE(has(section(config, "Update"), "fully on-policy"));
}

TEST(explain, a_kl_term_brings_the_reference_and_a_second_pass) {
  TrainConfig config = config_of({{"objective.kl_coeff", "0.04"}});
  EXPECT_TRUE(has(section(config, "Needs"), "2 held, 1 of them trained"));
  EXPECT_TRUE(has(section(config, "Needs"), "2 forward passes"));
  EXPECT_TRUE(has(section(config, "Loss"), "L += 0.04 mean KL_it"));
  EXPECT_FALSE(has(section(config_of({}), "Needs"), "pi_ref"));
}

// A method whose loss is its own.
class Own final : public Method {
 public:
  void advantages(const Batch&, std::span<float>, Recording&) const override {}
  void token_loss(const LossInput& in, LossOutput& out) const override {
    for (size_t t = 0; t < in.logprob.size(); ++t) out.d_logprob[t] = -in.advantage[t];
  }
};

TEST(explain, a_loss_of_its_own_is_not_called_clipped) {
  TrainConfig config = config_of({});
  EXPECT_TRUE(uses_clipped_ratio(config));
  config.method = std::make_shared<Own>();
  EXPECT_FALSE(uses_clipped_ratio(config));
  EXPECT_FALSE(has(section(config, "Loss"), "rho_it"));
}

TEST(explain, departures_name_what_changes_results_only) {
  TrainConfig a = config_of({{"label", "x"}, {"threads", "3"}, {"train.save_freq", "7"}, {"optimizer.lr", "1e-5"}});
  std::vector<Departure> rows = departures(a, config_of({}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key, "optimizer.lr");
  EXPECT_EQ(rows[0].there, "1e-06");
  EXPECT_FALSE(rows[0].size);
}

TEST(explain, options_of_either_method_are_compared) {
  std::vector<Departure> rows = departures(config_of({{"method.name", "ucas"}}), config_of({{"method.name", "dapo"}}));
  auto beta = std::ranges::find(rows, "method.beta", &Departure::key);
  ASSERT_NE(beta, rows.end());
  EXPECT_EQ(beta->there, "-");
  rows = departures(config_of({{"method.name", "dapo"}}), config_of({{"method.name", "ucas"}}));
  beta = std::ranges::find(rows, "method.beta", &Departure::key);
  ASSERT_NE(beta, rows.end());
  EXPECT_EQ(beta->here, "-");
}

TEST(explain, text_breaks_at_spaces_and_keeps_every_word) {
  EXPECT_EQ(wrap_text("aa bb cc", 5, 0, 0), "aa bb\ncc");
  EXPECT_EQ(wrap_text("aa bb cc", 9, 4, 4), "aa bb\n    cc");
  EXPECT_EQ(wrap_text("aaaaaaaaaa b", 5, 2, 2), "aaaaaaaaaa\n  b");
}

}  // namespace

}  // namespace ucas
