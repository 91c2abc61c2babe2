#include "records/run_record.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/synthetic_run.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class run_reader : public ::testing::Test {
 protected:
  std::string at(const std::string& name) { return path_join(root_, name); }
  void put(const std::string& name, const std::string& text) {
    size_t slash = name.rfind('/');
    if (slash != std::string::npos) make_directories(at(name.substr(0, slash)));
    write_file(at(name), text);
  }
  // Kind and message of the error that reading gives.
  std::pair<std::string, std::string> refusal() {
    try {
      read_run(root_);
    } catch (const Error& error) {
      return {error.word(), error.what()};
    }
    return {"none", ""};
  }
  static bool has(const std::vector<std::string>& list, const std::string& part) {
    for (const std::string& item : list) {
      if (item.find(part) != std::string::npos) return true;
    }
    return false;
  }
  const testing::TemporaryDirectory folder_;
  const std::string& root_ = folder_.path();
};

TEST_F(run_reader, a_whole_run_is_read) {
  SyntheticRun made;
  made.method = "ucas";
  made.seed = 3;
  write_synthetic_run(root_, made);
  RunRecord run = read_run(root_);
  EXPECT_EQ(run.method, "ucas");
  EXPECT_EQ(run.seed, 3);
  EXPECT_EQ(run.setting("method.alpha"), "0.25");
  EXPECT_EQ(run.environment("isa"), "avx512");
  EXPECT_EQ(run.environment("threads"), "2");
  ASSERT_EQ(run.steps.step.size(), 24u);
  EXPECT_EQ(run.steps.step.back(), 24);
  EXPECT_EQ(run.steps.last("perf/cpu_memory_used_gb"), 0.41);
  const auto* validation = run.steps.find("val-core/synthetic/acc/mean@1");
  ASSERT_NE(validation, nullptr);
  EXPECT_TRUE(std::isnan((*validation)[0]));  // validated every third step only
  EXPECT_FALSE(std::isnan((*validation)[2]));
  ASSERT_EQ(run.evaluations.size(), 1u);
  EXPECT_EQ(run.evaluations[0].data, "synthetic-test");
  EXPECT_EQ(run.evaluations[0].rows.size(), 64u);
  EXPECT_EQ(run.evaluations[0].pass_at.back().k, 64);
  EXPECT_EQ(run.evaluations[0].rows[0].responses.size(), 3u);
  EXPECT_EQ(run.first_rollouts[0].step, 1);
  EXPECT_EQ(run.last_rollouts[0].step, 24);
  EXPECT_FALSE(run.first_rollouts[2].finished);
  EXPECT_TRUE(run.missing.empty());
}

TEST_F(run_reader, what_is_absent_is_named) {
  put("steps.jsonl", "{\"training/global_step\":1,\"critic/score/mean\":0.5}\n");
  RunRecord run = read_run(root_);
  for (const char* part : {"config.toml", "env.json", "eval/", "rollouts/"})
    EXPECT_TRUE(has(run.missing, part)) << part;
  EXPECT_EQ(run.seed, -1);
}

TEST_F(run_reader, a_list_of_remarks_is_read_as_one_text) {
  put("env.json", R"({"label":"x","remarks":["steps 2 are missing","rollout.n = 8, now 16"],"counts":[1,2]})");
  put("steps.jsonl", "{\"training/global_step\":1}\n");
  RunRecord run = read_run(root_);
  EXPECT_EQ(run.environment("remarks"), "steps 2 are missing; rollout.n = 8, now 16");
  EXPECT_EQ(run.environment("counts"), "[1,2]");
}

TEST_F(run_reader, an_evaluation_alone_is_a_run) {
  put("env.json", R"({"label":"base"})");
  put("eval/final.json",
      R"({"label":"base","data":["a.jsonl","b.jsonl"],"problems":2,"greedy":{"pass@1":{"value":0.5,"low":0.1,"high":0.9}},"seed":7})");
  RunRecord run = read_run(root_);
  EXPECT_EQ(run.label, "base");
  EXPECT_EQ(run.seed, 7);
  EXPECT_EQ(run.evaluations[0].data, "a.jsonl, b.jsonl");
  EXPECT_TRUE(has(run.missing, "eval/final.jsonl"));
  EXPECT_FALSE(has(run.missing, "steps.jsonl"));
}

TEST_F(run_reader, the_seed_of_an_untrained_model_may_stand_in_the_directory_name) {
  put("base-seed12/eval/final.json", R"({"label":"base","seed":0})");
  EXPECT_EQ(read_run(at("base-seed12")).seed, 12);
  put("base-seeds/eval/final.json", R"({"label":"base","seed":3})");
  EXPECT_EQ(read_run(at("base-seeds")).seed, 3);
}

TEST_F(run_reader, numbers_that_were_not_finite_are_gaps) {
  put("steps.jsonl",
      "{\"training/global_step\":1,\"actor/grad_norm\":1.5}\n"
      "{\"training/global_step\":2,\"actor/grad_norm\":null,\"late\":4}\n");
  RunRecord run = read_run(root_);
  EXPECT_EQ((*run.steps.find("actor/grad_norm"))[0], 1.5);
  EXPECT_TRUE(std::isnan((*run.steps.find("actor/grad_norm"))[1]));
  EXPECT_TRUE(std::isnan((*run.steps.find("late"))[0]));
  EXPECT_EQ((*run.steps.find("late"))[1], 4);
  EXPECT_EQ(run.steps.last("actor/grad_norm"), 1.5);
  ASSERT_EQ(run.steps.not_finite.size(), 1u);  // the absent "late" of step 1 is not one
  EXPECT_EQ(run.steps.not_finite[0].first, "actor/grad_norm");
}

TEST_F(run_reader, a_line_cut_short_at_the_end_is_left_out_and_remarked) {
  put("steps.jsonl", "{\"training/global_step\":1}\n{\"training/glob");
  RunRecord run = read_run(root_);
  EXPECT_EQ(run.steps.step.size(), 1u);
  EXPECT_TRUE(has(run.remarks, "steps.jsonl:2: incomplete last line"));
}

TEST_F(run_reader, a_broken_line_elsewhere_is_refused_with_its_place) {
  put("steps.jsonl", "{\"training/global_step\":1}\n{oops}\n{\"training/global_step\":3}\n");
  auto [kind, message] = refusal();
  EXPECT_EQ(kind, "header_json");
  EXPECT_NE(message.find("steps.jsonl:2"), std::string::npos) << message;
}

TEST_F(run_reader, wrong_types_and_orders_name_file_line_and_key) {
  struct Case {
    const char *name, *text, *kind, *part;
  };
  const Case cases[] = {
      {"steps.jsonl", "{\"training/global_step\":1,\"a\":[1]}\n", "data_line",
       "steps.jsonl:1: \"a\": array [1], expected a number or null"},
      {"steps.jsonl", "{\"a\":1}\n", "data_line", "training/global_step is missing"},
      {"steps.jsonl", "{\"training/global_step\":2}\n{\"training/global_step\":2}\n", "data_line",
       "steps.jsonl:2: step 2 after step 2"},
      {"steps.jsonl", "[1]\n", "data_line", "expected an object"},
      {"steps.jsonl", "{\"training/global_step\":1,\"a\":1,\"a\":2}\n", "dup_key", "steps.jsonl:1"},
      {"eval/x.json", "{\"problems\":\"many\"}", "data_line", "\"problems\": string \"many\", expected a whole number"},
      {"eval/x.json", "{\"pass@k\":{}}", "data_line", "pass@k"},
      {"eval/x.json", "{\"problems\":1e300}", "data_line", "problems"},
      {"eval/x.json", "{\"pass@k\":[{\"k\":0,\"value\":1}]}", "data_line",
       "pass@k[0]: \"k\": number 0, expected a whole number from 1"},
      {"steps.jsonl", "{\"training/global_step\":1e300}\n", "data_line", "expected a whole number"},
      {"steps.jsonl", "{\"training/global_step\":1.5}\n", "data_line", "number 1.5, expected a whole number"},
      {"config.toml", "seed = \"one\"\n", "config", "config.toml:1: seed"},
      {"config.toml", "seed = = 1\n", "config", "config.toml:1"},
  };
  for (const Case& c : cases) {
    remove_all(root_);
    make_directories(root_);
    put(c.name, c.text);
    auto [kind, message] = refusal();
    EXPECT_EQ(kind, c.kind) << c.text;
    EXPECT_NE(message.find(c.part), std::string::npos) << message;
  }
}

TEST_F(run_reader, a_directory_without_a_run_is_refused) {
  EXPECT_EQ(refusal().first, "empty");
  EXPECT_THROW(read_run(at("nowhere")), Error);
  put("file", "x");
  EXPECT_THROW(read_run(at("file")), Error);
}

TEST_F(run_reader, a_metric_of_a_new_name_in_every_row_is_refused_before_it_takes_memory) {
  std::string lines;
  for (int step = 1; step <= 2000; ++step) {
    lines += str("{\"training/global_step\": ", step);
    for (int name = 0; name < 40; ++name) lines += str(", \"m", step, "/", name, "\": 1");
    lines += "}\n";
  }
  put("steps.jsonl", lines);
  const auto [kind, message] = refusal();
  EXPECT_EQ(kind, "limit");
  EXPECT_NE(message.find("steps.jsonl:50: 2,001 different metrics by step 50"), std::string::npos) << message;
}

TEST_F(run_reader, rows_with_more_right_than_sampled_are_refused) {
  const auto refused = [&](const std::string& counts) {
    put("eval/test.json", "{\"data\": \"t\", \"problems\": 1}");
    put("eval/test.jsonl", str("{\"id\": \"1\", \"source\": \"a\", \"problem\": \"?\", ", counts, "}\n"));
    return refusal().second;
  };
  EXPECT_EQ(refused("\"samples\": 64, \"correct\": 20"), "");
  EXPECT_NE(refused("\"samples\": 4, \"correct\": 5").find("test.jsonl:1: correct = 5 of samples = 4"),
            std::string::npos);
  EXPECT_NE(refused("\"samples\": -4, \"correct\": 0").find("of samples = -4"), std::string::npos);
  put("eval/test.jsonl", "{\"source\": \"a\", \"samples\": 4, \"correct\": 0}\n");
  EXPECT_NE(refusal().second.find("\"id\" is missing"), std::string::npos);
}

TEST_F(run_reader, a_run_of_a_study_says_its_row_base_and_seed) {
  put("sft.jsonl", "{\"step\": 1, \"loss\": 1, \"lr\": 1, \"tokens\": 1}\n");
  put("env.json", "{\"initial_weights\": \"abc\"}");
  EXPECT_EQ(read_run(root_).base, "abc");
  put("study.json", "{\"row\": \"ucas\", \"base\": \"base 2\", \"seed\": 5}");
  const RunRecord run = read_run(root_);
  EXPECT_EQ(run.row, "ucas");
  EXPECT_EQ(run.luck(), (RunLabel{"base 2", 5}));
  put("study.json", "{\"base\": \"base 2\"}");
  EXPECT_NE(refusal().second.find("\"row\" is missing"), std::string::npos);
}

}  // namespace
}  // namespace ucas
