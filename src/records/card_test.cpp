#include "records/card.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/hash.h"
#include "base/str.h"
#include "records/evaluation.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

Problem problem(const std::string& id, const std::string& text, const std::vector<std::string>& gold) {
  Problem out;
  out.id = id;
  out.source = "sums";
  out.text = text;
  out.gold = gold;
  return out;
}

const std::vector<Problem> kProblems = {problem("1", "1+1?", {"2"}), problem("2", "2+2?", {"4", "four"})};

class RunCard : public ::testing::Test {
 protected:
  RunCard() {
    make_directories(model_);
    write_file(path_join(model_, "config.json"), R"({"hidden_size": 64, "eos_token_id": [3, 5], "secret": 1})");
    write_file(path_join(model_, "model-00001-of-00002.safetensors"), "weights one");
    write_file(path_join(model_, "model-00002-of-00002.safetensors"), "weights two");
    write_file(path_join(model_, "optimizer.safetensors"), "moments");
    write_file(data_, "{}\n");
    for (const char* ending : {".outputs.jsonl", ".jsonl", ".json"})
      write_file(path_join(eval_, str("t", ending)), "{}");
    input_.machine.isa = "avx2";
    input_.model = model_;
    input_.model_files = hash_model_files(model_);
    CardBenchmark& sums = input_.benchmarks.emplace_back();
    sums.name = "sums";
    sums.title = "Sums";
    sums.files = {data_};
    sums.columns.problem = "question";
    sums.prompt_template.name = "plain";
    sums.prompt_template.text = "{problem}";
    sums.stop_ids = {3, 5};
    sums.stop_texts = {"<end>", "\xff"};
    sums.max_tokens = 32;
    sums.extract = Extract::answer_tag;
    result_.label = "tiny";
    result_.config.ks = {1, 2};
    result_.config.temperature = 0.7;
    result_.config.truncated = Truncated::wrong;
  }
  std::string write() { return write_card(input_, result_, kProblems, eval_, "t"); }

  testing::TemporaryDirectory directory_;
  std::string model_ = path_join(directory_.path(), "model"), data_ = path_join(directory_.path(), "sums.jsonl");
  std::string eval_ = (make_directories(path_join(directory_.path(), "eval")), path_join(directory_.path(), "eval"));
  std::string path_ = path_join(eval_, "t.card.json");
  CardInput input_;
  EvalRecord result_;
};

TEST_F(RunCard, reads_back_as_it_was_written) {
  const std::string name = write();
  const Card card = read_card(path_);
  EXPECT_EQ(card.sha256, card.computed);
  EXPECT_EQ(card.name(), name);
  EXPECT_EQ(card_name(eval_, "t"), name);
  EXPECT_EQ(card.label, "tiny");
  EXPECT_EQ(card.step, -1);
  EXPECT_EQ(card.config.ks, result_.config.ks);
  EXPECT_EQ(card.config.temperature, 0.7);
  EXPECT_EQ(card.config.truncated, Truncated::wrong);
  ASSERT_EQ(card.benchmarks.size(), 1u);
  const Card::Set& set = card.benchmarks[0];
  EXPECT_EQ(set.problems, 2);
  EXPECT_EQ(set.problems_sha256, problems_sha256(kProblems, "sums"));
  EXPECT_EQ(set.template_sha256, template_sha256(set.as.prompt_template));
  EXPECT_EQ(set.as.columns.problem, "question");
  EXPECT_EQ(set.as.extract, Extract::answer_tag);
  EXPECT_EQ(set.as.stop_ids, (std::vector<int32_t>{3, 5}));
  EXPECT_EQ(set.files[0].sha256, sha256_of_text("{}\n"));
  EXPECT_EQ(card.outputs.name, "t.outputs.jsonl");
}

TEST_F(RunCard, lists_the_files_that_decide_what_a_model_answers_and_no_others) {
  std::vector<std::string> names;
  for (const CardFile& file : input_.model_files) names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"config.json", "model-00001-of-00002.safetensors",
                                             "model-00002-of-00002.safetensors"}));
  EXPECT_EQ(input_.model_files[2].sha256, sha256_of_text("weights two"));
  write();
  const std::string text = read_file(path_);
  EXPECT_NE(text.find("\"hidden_size\": 64"), std::string::npos);
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

TEST_F(RunCard, any_changed_byte_breaks_the_seal) {
  write();
  const std::string text = read_file(path_);
  for (size_t at = 0; at < text.size(); at += 31) {
    std::string changed = text;
    changed[at] = changed[at] == '7' ? '8' : '7';
    write_file(path_, changed);
    try {
      const Card card = read_card(path_);
      EXPECT_NE(card.sha256, card.computed) << "byte " << at;
    } catch (const Error&) {  // no card any more
    }
  }
}

TEST_F(RunCard, a_broken_card_is_refused_by_file_and_key) {
  write();
  const std::string text = read_file(path_);
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"max_tokens\": 32", "\"max_tokens\": \"many\""},
      {"\"extract\": \"answer_tag\"", "\"extract\": \"guess\""},
      {"\"confidence_level\": 0.95", "\"confidence_level\": 7.0"},
      {"\"format\": \"ucas-card-1\"", "\"format\": \"ucas-card-9\""},
      {"\"problems_sha256\"", "\"problems_md5\""}};
  for (const auto& [from, to] : changes) {
    std::string changed = text;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), from.size(), to);
    write_file(path_, changed);
    try {
      read_card(path_);
      ADD_FAILURE() << "accepted: " << to;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("t.card.json"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(card_name(eval_, "t"), "");
}

TEST(run_card, the_hash_of_problems_changes_with_gold_question_id_and_order) {
  const std::string before = problems_sha256(kProblems, "sums");
  for (auto change : std::vector<void (*)(std::vector<Problem>&)>{
           [](std::vector<Problem>& p) { p[0].gold[0] = "3"; }, [](std::vector<Problem>& p) { p[1].gold.pop_back(); },
           [](std::vector<Problem>& p) { p[1].text += " "; }, [](std::vector<Problem>& p) { p[0].id = "7"; },
           [](std::vector<Problem>& p) { p[0].subject = "algebra"; },
           [](std::vector<Problem>& p) { std::swap(p[0], p[1]); }}) {
    std::vector<Problem> problems = kProblems;
    change(problems);
    EXPECT_NE(problems_sha256(problems, "sums"), before);
  }
  EXPECT_EQ(problems_sha256(kProblems, "products"), sha256_of_text(""));
}

}  // namespace
}  // namespace ucas
