#include "evaluate/results/card_check.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/hash.h"
#include "base/str.h"
#include "base/text/json.h"
#include "evaluate/benchmark.h"
#include "evaluate/score.h"
#include "records/card.h"
#include "records/outputs.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

constexpr int32_t kEnd = 3;
constexpr int64_t kMaxTokens = 6;

// A small evaluation on two sets, complete with journal, rows, figures and card.
class CardChecked : public ::testing::Test {
 protected:
  CardChecked() {
    for (const std::string& directory : {eval_, model_, data_}) make_directories(directory);
    write_file(path_join(model_, "config.json"), "{\"hidden_size\": 8}");
    write_file(path_join(model_, "model.safetensors"), "weights");
    write_file(path_join(run_, "env.json"), "{\"label\": \"tiny\"}");
    for (const char* source : {"sums", "products"}) add_source(source);
    config_.samples = 3;
    config_.stored_responses = 2;
    config_.ks = {1, 2};
    config_.bootstrap_draws = 20;
    evaluate();
  }

  void add_source(const std::string& source) {
    std::string lines;
    for (int i = 0; i < 3; ++i) {
      Problem problem;
      problem.id = str(i);
      problem.source = source;
      problem.text = str("How many in ", source, " ", i, "?");
      problem.gold = {str(10 + i)};
      problem.subject = i < 2 ? "small" : "large";
      lines += str("{\"id\": \"", i, "\", \"problem\": \"", problem.text, "\", \"answer\": \"", 10 + i,
                   "\", \"subject\": \"", problem.subject, "\"}\n");
      problems_.push_back(problem);
    }
    write_file(path_join(data_, source + ".jsonl"), lines);
    CardBenchmark as;
    as.name = source;
    as.files = {path_join(data_, source + ".jsonl")};
    as.prompt_template.name = "plain";
    as.prompt_template.text = "{problem}";
    as.stop_ids = {kEnd};
    as.stop_texts = {"<end>"};
    as.max_tokens = kMaxTokens;
    input_.benchmarks.push_back(as);
    settings_.sources.push_back({source, "plain", "0", {kEnd}, kMaxTokens, false});
  }

  // Right, wrong, without an answer and cut ones, all with numbers of their own.
  Output answer(const Problem& problem, int64_t sample) {
    Output o;
    o.source = problem.source;
    o.id = problem.id;
    o.sample = sample;
    const int64_t kind = (++answers_ * 7 / 3) % 4;
    o.finished = kind != 3;
    o.text = kind == 0 ? str("so \\boxed{", problem.gold[0], "}") : kind == 1 ? "so \\boxed{99}" : "I cannot say";
    o.ids.assign(static_cast<size_t>(o.finished ? 2 + kind : kMaxTokens), 7);
    if (o.finished) o.ids.back() = kEnd;
    const auto number = static_cast<double>(answers_);
    o.logprob = -0.31 * number;
    o.entropy = 0.5 + 0.013 * number;
    o.confidence = 3 + 0.17 * number;
    return o;
  }

  void evaluate() {
    settings_.keys = "place";
    settings_.temperature = config_.temperature;
    settings_.model = "m";
    OutputJournal journal(path_join(eval_, "t.outputs.jsonl"), settings_);
    std::vector<Output> outputs;
    for (const Problem& problem : problems_) {
      for (int64_t sample = kGreedySample; sample < config_.samples; ++sample) {
        outputs.push_back(answer(problem, sample));
        journal.append(outputs.back());
      }
    }
    journal.finish(problems_);
    Graders graders;
    graders.standard = make_grader(GraderKind::math);
    EvalRecord result = score(problems_, by_problem(problems_, outputs, true, config_.samples), graders, config_);
    result.label = "tiny";
    result.model = model_;
    result.data = "sums, products";
    write_evaluation(result, eval_, "t");
    input_.model = model_;
    input_.model_files = hash_model_files(model_);
    write_card(input_, result, problems_, eval_, "t");
  }

  CardCheck check(const CheckAgainst& against = {}) { return check_card(run_, "t", against); }

  // Whether the run is refused or found to differ.
  bool noticed() {
    try {
      return !check().findings.empty();
    } catch (const Error&) {
      return true;
    }
  }

  static void put(const std::string& path, const std::string& bytes) { std::ofstream(path) << bytes; }
  std::string path_of(const std::string& ending) const { return path_join(eval_, "t" + ending); }

  // A tamperer who brings hashes, sizes and the seal of the card in line with the changed file.
  void reseal(const std::function<void(OrderedJson&)>& also = {}) {
    const std::string path = path_of(".card.json");
    OrderedJson card = OrderedJson::parse(read_file(path));
    for (const auto& [what, ending] :
         {std::pair{"outputs", ".outputs.jsonl"}, {"problems", ".jsonl"}, {"figures", ".json"}}) {
      card["files"][what]["sha256"] = sha256_of_file(path_of(ending));
      card["files"][what]["size"] = file_size(path_of(ending));
    }
    if (also) also(card);
    card.erase("sha256");
    std::string text = card.dump(2);
    text.resize(text.rfind("\n}"));
    put(path, str(text, ",\n  \"sha256\": \"", sha256_of_text(text), "\"\n}\n"));
  }

  testing::TemporaryDirectory directory_;
  std::string run_ = path_join(directory_.path(), "run"), eval_ = path_join(run_, "eval");
  std::string model_ = path_join(directory_.path(), "model"), data_ = path_join(directory_.path(), "data");
  EvalConfig config_;
  std::vector<Problem> problems_;
  OutputSettings settings_;
  CardInput input_;
  int64_t answers_ = 0;
};

void change(OrderedJson& leaf) {
  if (leaf.is_boolean()) {
    leaf = !leaf.get<bool>();
  } else if (leaf.is_number_integer()) {
    leaf = leaf.get<int64_t>() + 1;
  } else if (leaf.is_number()) {
    leaf = leaf.get<double>() + 0.0001;
  } else if (leaf.is_string()) {
    leaf = leaf.get<std::string>() + "1";
  } else {
    leaf = 1;
  }
}

std::vector<OrderedJson::json_pointer> leaves(const OrderedJson& json) {
  std::vector<OrderedJson::json_pointer> out;
  const OrderedJson flat = json.flatten();
  for (const auto& [path, value] : flat.items()) {
    if (!value.is_array() && !value.is_object()) out.emplace_back(path);
  }
  return out;
}

TEST_F(CardChecked, an_untouched_run_is_as_its_card_says) {
  const CardCheck found = check({.data = data_, .model = ""});
  for (const CardFinding& f : found.findings)
    ADD_FAILURE() << f.place << " " << f.field << " " << f.stored << " " << f.recomputed;
  EXPECT_EQ(found.problems, 6);
  EXPECT_EQ(found.responses, 24);
  EXPECT_GT(found.figures, 200);
  EXPECT_GE(found.hashes, 10);
  EXPECT_EQ(carded_evaluations(run_), std::vector<std::string>{"t"});
}

TEST_F(CardChecked, every_field_of_figures_is_noticed_also_with_its_hash_put_right) {
  const std::string path = path_of(".json"), before = read_file(path), card = read_file(path_of(".card.json"));
  const OrderedJson json = OrderedJson::parse(before);
  ASSERT_GT(leaves(json).size(), 150u);
  for (const auto& leaf : leaves(json)) {
    OrderedJson forged = json;
    change(forged[leaf]);
    put(path, forged.dump(2) + "\n");
    EXPECT_TRUE(noticed()) << leaf.to_string();
    reseal();
    EXPECT_TRUE(noticed()) << leaf.to_string() << ", hash put right";
    put(path_of(".card.json"), card);
  }
  put(path, before);
  EXPECT_FALSE(noticed());
}

TEST_F(CardChecked, every_field_of_a_problems_row_is_noticed_also_with_its_hash_put_right) {
  const std::string path = path_of(".jsonl"), before = read_file(path), card = read_file(path_of(".card.json"));
  const std::string rest = before.substr(before.find('\n') + 1);
  const OrderedJson json = OrderedJson::parse(before.substr(0, before.find('\n')));
  ASSERT_GT(leaves(json).size(), 30u);
  for (const auto& leaf : leaves(json)) {
    OrderedJson forged = json;
    change(forged[leaf]);
    put(path, forged.dump() + "\n" + rest);
    EXPECT_TRUE(noticed()) << leaf.to_string();
    reseal();
    EXPECT_TRUE(noticed()) << leaf.to_string() << ", hash put right";
    put(path_of(".card.json"), card);
  }
}

TEST_F(CardChecked, every_field_of_a_response_is_noticed_also_with_its_hash_put_right) {
  const std::string path = path_of(".outputs.jsonl"), before = read_file(path), card = read_file(path_of(".card.json"));
  std::vector<std::string> lines = split(before, '\n');
  for (size_t at : {size_t{0}, size_t{1}, size_t{3}}) {  // the settings, a greedy response, a sample
    const OrderedJson json = OrderedJson::parse(lines[at]);
    for (const auto& leaf : leaves(json)) {
      const std::string name = leaf.to_string();
      // Nothing here holds the model and the prompts against what they were made from: --model does.
      const bool opaque = name == "/model" || name.ends_with("/prompts") || name.ends_with("/template");
      OrderedJson forged = json;
      change(forged[leaf]);
      std::vector<std::string> changed = lines;
      changed[at] = forged.dump();
      put(path, join(changed, "\n"));
      EXPECT_TRUE(noticed()) << at << name;
      reseal();
      EXPECT_TRUE(opaque || noticed()) << at << name << ", hash put right";
      put(path_of(".card.json"), card);
    }
  }
}

TEST_F(CardChecked, a_lost_or_a_doubled_response_is_noticed) {
  const std::string path = path_of(".outputs.jsonl");
  const std::vector<std::string> lines = split(read_file(path), '\n');
  std::vector<std::string> less = lines, more = lines;
  less.erase(less.begin() + 4);
  more.insert(more.begin() + 4, lines[4]);
  put(path, join(less, "\n"));
  reseal();
  EXPECT_TRUE(noticed());
  put(path, join(more, "\n"));
  reseal();
  EXPECT_TRUE(noticed());
}

TEST_F(CardChecked, every_field_of_the_card_is_noticed) {
  const std::string path = path_of(".card.json"), before = read_file(path);
  const OrderedJson json = OrderedJson::parse(before);
  for (const auto& leaf : leaves(json)) {
    OrderedJson forged = json;
    change(forged[leaf]);
    put(path, forged.dump(2) + "\n");
    EXPECT_TRUE(noticed()) << leaf.to_string();
  }
}

TEST_F(CardChecked, what_the_card_says_of_the_evaluation_is_noticed_even_under_a_new_seal) {
  const std::string path = path_of(".card.json"), before = read_file(path);
  const OrderedJson json = OrderedJson::parse(before);
  const std::vector<std::string> unseen = {"/ucas", "/made",
                                           "/sampling/truncated",  // nothing was cut and right, so it decides nothing
                                           "/model/path", "/suite"};
  for (const auto& leaf : leaves(json)) {
    const std::string name = leaf.to_string();
    const bool checked = name.starts_with("/benchmarks") || name.starts_with("/sampling") ||
                         name.starts_with("/figures") || name == "/model/label" || name == "/model/step";
    // The texts beside the ids, names for people, and files that are only at hand with --data and --model.
    const bool apart = name.find("/title") != std::string::npos || name.find("/stop_texts") != std::string::npos ||
                       name.find("/files/") != std::string::npos || name.ends_with("/template/name") ||
                       name.ends_with("/grader/version") || name.ends_with("/grader/extract");
    if (!checked || apart || std::find(unseen.begin(), unseen.end(), name) != unseen.end()) continue;
    put(path, before);
    reseal([&](OrderedJson& card) { change(card[leaf]); });
    EXPECT_TRUE(noticed()) << name;
  }
}

TEST_F(CardChecked, a_grader_that_was_not_used_is_noticed) {
  reseal([](OrderedJson& card) { card["benchmarks"][0]["grader"]["extract"] = "answer_tag"; });
  EXPECT_TRUE(noticed());
}

TEST_F(CardChecked, another_name_in_env_json_is_noticed) {
  put(path_join(run_, "env.json"), "{\"label\": \"better\"}");
  const CardCheck found = check();
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].field, "label");
  EXPECT_EQ(found.findings[0].stored, "better");
}

TEST_F(CardChecked, a_forged_gold_with_every_hash_put_right_is_found_by_the_data) {
  // Gold, verdicts and figures all of one piece: as a run on another data file would have left them.
  answers_ = 0;
  remove_all(path_of(".outputs.jsonl"));
  problems_[1].gold = {"99"};
  evaluate();
  EXPECT_FALSE(noticed());
  const CardCheck found = check({.data = data_, .model = ""});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].field, "gold");
  EXPECT_NE(found.findings[0].place.find("t.jsonl:2"), std::string::npos);
}

TEST_F(CardChecked, a_changed_problem_file_is_found_with_data) {
  put(path_join(data_, "sums.jsonl"), "{\"id\": \"0\", \"problem\": \"?\", \"answer\": \"1\"}\n");
  EXPECT_FALSE(noticed());
  const CardCheck found = check({.data = data_, .model = ""});
  ASSERT_GE(found.findings.size(), 2u);
  EXPECT_NE(found.findings[0].field.find("sums.jsonl: sha256"), std::string::npos);
}

}  // namespace
}  // namespace ucas
