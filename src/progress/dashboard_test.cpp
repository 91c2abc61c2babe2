#include "progress/dashboard.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/str.h"

namespace ucas {
namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

Metrics metrics_of(int64_t step) {
  auto s = static_cast<double>(step);
  Metrics m = {{"training/global_step", s},
               {"critic/score/mean", 0.1 * s},
               {"actor/entropy", 2.0 / (1 + s)},
               {"response_length/mean", 20 + s},
               {"rollout/logprob_diff_max", 1.5e-6},
               {"actor/grad_norm", 0.5},
               {"train/dead_groups", 0.25},
               {"timing_s/step", 2.0},
               {"timing_s/gen", 1.0},
               {"timing_s/update_actor", 0.6},
               {"perf/throughput", 12345}};
  if (step % 2 == 0) m.insert(m.end(), {{"val-core/a/acc/mean@1", 0.25}, {"val-core/b/acc/mean@1", 0.75}});
  return m;
}

TrainSample sample_of(int64_t step) { return {step, "What is 1 + 1?\n", "Two.\nSo 2", "equal", "2", 1, 9, true}; }

// Eight of sixteen steps, one every two seconds.
DashboardState after_eight() {
  DashboardState state;
  state.begin({"UCAS", "runs/ucas-tiny", 0, 16}, 100);
  for (int64_t step = 1; step <= 8; ++step) {
    TrainSample sample = sample_of(step);
    state.add(step, metrics_of(step), &sample, 100 + 2.0 * static_cast<double>(step));
  }
  state.phase = "generating";
  return state;
}

std::vector<std::string> shown(const DashboardState& state, TerminalSize size, double now, bool utf8 = false) {
  std::vector<std::string> texts;
  for (const InkedLine& line : state.lines(size, utf8, now)) {
    std::string text = plain_text(line);
    texts.push_back(text.substr(0, text.find_last_not_of(' ') + 1));
  }
  return texts;
}

TEST(dashboard, shows_where_a_run_stands) {
  std::vector<std::string> expected = {
      " UCAS  runs/ucas-tiny",
      " step 8/16  ###########............  50 %   2.0 s/step   elapsed 16s   ETA 16s   generating",
      " reward     _.-~=+*#                     0.800   entropy    #=-..___                     0.222",
      " length     _.-~=+*#                     28.00   mismatch   ________                   1.5e-06",
      " validation ____                         0.500   gradient   ________                     0.500",
      " time       generate 50 %   update 30 %   other 20 %   12,345 tokens/s",
      " sample     step 7: right, read as 2, 9 tokens, reward 1.00",
      "   prompt   What is 1 + 1?",
      "   response Two.\\nSo 2",
      " alarms     none",
  };
  EXPECT_EQ(shown(after_eight(), {100, 40}, 116), expected);
}

TEST(dashboard, shows_where_fine_tuning_stands_by_its_own_numbers) {
  DashboardState state;
  state.begin({"sft", "out", 2, 8, 0, 0, true}, 100);
  for (int64_t update = 3; update <= 6; ++update) {
    const double u = static_cast<double>(update);
    state.add(update, Metrics{{"loss", 6 - u / 2}, {"lr", 1e-5 * u}, {"grad_norm", 0.5}, {"tokens", 480}}, nullptr,
              100 + 4 * (u - 2));
  }
  const std::vector<std::string> expected = {
      " sft  out",
      " update 6/8  #################......  75 %   4.0 s/update   elapsed 16s   ETA 8.0s",
      " loss       #+-_                          3.00   gradient   ____                         0.500",
      " rate       _-+#                       6.0e-05   tokens     ____                         480.0",
      " alarms     none",
  };
  EXPECT_EQ(shown(state, {100, 40}, 116), expected);
}

TEST(dashboard, no_line_is_as_wide_as_the_window_and_no_block_as_high) {
  DashboardState state = after_eight();
  TrainSample sample = sample_of(9);
  sample.response = std::string(5000, '\xe4') + "\xe4\xb8\xad\xe4\xb8\xad" + std::string(5000, 'x') + "\033[2J";
  state.add(9, metrics_of(9), &sample, 130);
  for (bool utf8 : {false, true}) {
    for (size_t columns = 1; columns < 220; ++columns) {
      for (size_t rows : {2, 5, 9, 12, 40}) {
        std::vector<std::string> lines = shown(state, {columns, rows}, 131, utf8);
        EXPECT_LT(lines.size(), rows);
        EXPECT_LE(lines.size(), 12u);
        for (const std::string& line : lines) {
          EXPECT_LE(cells(line) + 1, std::max<size_t>(2, columns)) << line;
          EXPECT_EQ(line.find('\033'), std::string::npos);
        }
      }
    }
  }
}

TEST(dashboard, a_low_window_does_without_the_sample) {
  std::vector<std::string> lines = shown(after_eight(), {100, 9}, 116);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines.back(), " alarms     none");
}

TEST(dashboard, text_of_the_model_is_escaped) {
  DashboardState state;
  state.begin({"UCAS", "runs/x", 0, 4}, 0);
  TrainSample sample = {1, "q\033]0;title\007", "\033[31m\xc2\x9bK\r\b", "unequal", "\033c", 0, 3, false};
  state.add(1, metrics_of(1), &sample, 1);
  std::string all = join(shown(state, {100, 40}, 1, true), "\n");
  for (char c : all) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  EXPECT_NE(all.find("\\x1b[31m\\xc2\\x9bK"), std::string::npos) << all;
  EXPECT_NE(all.find("wrong, read as \\x1bc, 3 tokens, cut at the limit, reward 0"), std::string::npos) << all;
}

TEST(dashboard, a_sample_stays_long_enough_to_be_read) {
  DashboardState state;
  state.begin({"UCAS", "runs/x", 0, 100}, 0);
  for (int64_t step = 1; step <= 20; ++step) {
    TrainSample sample = sample_of(step);
    state.add(step, metrics_of(step), &sample, 0.5 * static_cast<double>(step));
  }
  std::string all = join(shown(state, {100, 40}, 10), "\n");
  EXPECT_NE(all.find("sample     step 11:"), std::string::npos) << all;  // taken at 0.5 s, then at 5.5 s
}

TEST(dashboard, the_last_frame_shows_the_last_step) {
  DashboardState state;
  state.begin({"UCAS", "runs/x", 0, 3}, 0);
  for (int64_t step = 1; step <= 3; ++step) {  // a fast run
    TrainSample sample = sample_of(step);
    state.add(step, metrics_of(step), &sample, 0.1 * static_cast<double>(step));
  }
  EXPECT_EQ(shown(state, {100, 40}, 1)[6], " sample     step 1: right, read as 2, 9 tokens, reward 1.00");
  state.ended = true;
  EXPECT_EQ(shown(state, {100, 40}, 1)[6], " sample     step 3: right, read as 2, 9 tokens, reward 1.00");
}

TEST(dashboard, where_the_passes_decide_the_prompts_say_how_far_the_run_is) {
  DashboardState state;
  TrainStart start{"UCAS", "runs/x", 0, 50};
  start.total_prompts = 400;
  state.begin(start, 0);
  for (int64_t step = 1; step <= 4; ++step) {  // 25 prompts a step, not the 8 that would do
    Metrics m = metrics_of(step);
    m.emplace_back("training/prompts", 25.0 * static_cast<double>(step));
    state.add(step, m, nullptr, 2.0 * static_cast<double>(step));
  }
  std::string line = shown(state, {100, 40}, 8)[1];
  EXPECT_NE(line.find(" step 4  "), std::string::npos) << line;
  EXPECT_NE(line.find("25 %   2.0 s/step   elapsed 8.0s   ETA 24s"), std::string::npos) << line;
}

TEST(dashboard, alarms_are_those_of_the_report) {
  DashboardState state = after_eight();
  Metrics m = metrics_of(9);
  for (auto& [name, value] : m) value = name == "rollout/logprob_diff_max" ? 0.02 : value;
  state.add(9, m, nullptr, 118);
  std::vector<std::string> lines = shown(state, {200, 40}, 118);
  EXPECT_EQ(
      lines.back(),
      " alarms     Sampler/trainer mismatch: log-probs of one token differ by up to 0.020 (step 9); beyond 0.001 in 1 "
      "of 9 steps");
  m.emplace_back("actor/pg_loss", std::nan(""));
  state.add(10, m, nullptr, 120);
  EXPECT_NE(shown(state, {200, 40}, 118).back().find(" alarms     (+1)  "), std::string::npos);
}

TEST(dashboard, the_pace_is_that_of_the_latest_steps) {
  DashboardState state;
  state.begin({"UCAS", "runs/x", 50, 100}, 0);
  double now = 0;
  for (int64_t step = 51; step <= 60; ++step) state.add(step, metrics_of(step), nullptr, now += 100);
  for (int64_t step = 61; step <= 75; ++step) state.add(step, metrics_of(step), nullptr, now += 1);
  EXPECT_NE(shown(state, {100, 40}, now)[1].find("1.0 s/step   elapsed 16m55s   ETA 25s"), std::string::npos)
      << shown(state, {100, 40}, now)[1];
  state.ended = true;
  EXPECT_EQ(shown(state, {100, 40}, now)[1].find("ETA"), std::string::npos);
}

TEST(dashboard, before_the_first_step_there_is_nothing_to_say_and_nothing_wrong) {
  DashboardState state;
  state.begin({"UCAS", "runs/x", 0, 16}, 0);
  std::vector<std::string> lines = shown(state, {100, 40}, 3);
  EXPECT_EQ(lines[1], " step 0/16  .......................  0 %   elapsed 3.0s");
  EXPECT_EQ(lines[6], " sample     -");
}

}  // namespace
}  // namespace ucas
