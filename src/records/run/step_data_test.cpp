#include "records/run/step_data.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/files/file.h"
#include "support/batches.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

using Floats = std::vector<float>;

// Two groups of 2 and 1; three, zero and two tokens.
StepData small() {
  StepData data;
  data.step = 12;
  data.method = "ucas";
  data.preset = "paper";
  data.settings = {{"alpha", "0.25"}, {"critic.model", "\"a\\\"b\""}};
  data.answer_classes = true;
  data.groups_of_step = 5;
  data.batch = testing::make_batch({{0, 1, {20, 21, 22}, {1, 2, 3}}, {0, -0.7f, {}, {}}, {1, 0.5f, {9, 8}, {-1, 4}}});
  Batch& batch = data.batch;
  batch.has_tails = false;
  batch.stop_ids = {7, 151643};
  batch.token = {5, 6, 7, 5, 151935};
  batch.groups[0].prompt = {1, 2};
  batch.responses[0].verdict = {VerdictKind::equal, "\\frac{1}{2} \"q\"\n", "", 0};
  batch.responses[1].finished = false;
  batch.responses[2].verdict = {VerdictKind::unequal, "7", "", 1};
  batch.responses[2].kl_penalty = 0.125f;
  batch.old_logprob = {-0.1f, -1e-30f, -0.0f, -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN()};
  batch.entropy = {0.1f, 1.0f / 3, 3.4028235e38f, 1.1754944e-38f, 1e-45f};
  data.problem = {"p-1", "p \xff 2"};
  data.question = {"1 + 1?", "</script> \"?\""};
  data.gold = {{"2", "two"}, {}};
  data.piece = {"a", "\n", "</s>", " \xc3", "x"};
  data.advantage = {1, 2, 3, -4, 0};
  data.ratio = {1, 0.7f, 1.3f, 4e8f, std::numeric_limits<float>::quiet_NaN()};
  data.clipped = {0, 0, 1, 2, 0};
  data.trace = {{"A", false, {0.5f, 0, -0.25f}}, {"l_hat", true, {0, 0.5f, 1, 0, 1}}};
  return data;
}

bool same(const Floats& a, const Floats& b) {  // bits, save that NaN is NaN
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]) && !(a[i] != a[i] && b[i] != b[i])) return false;
  }
  return true;
}

// The first response was answered twice.
StepData answered() {
  StepData data = small();
  data.batch.responses[0].inserts = {{1, {30, 31}, "<result>4</result>"}, {2, {9}, "\"\n\xe2\x82\xac"}};
  return data;
}

class step_data : public ::testing::Test {
 protected:
  StepData back(const StepData& data) { return read(step_data_lines(data)); }
  StepData read(const std::string& text) {
    write_file(path(), text);
    return read_step_data(path());
  }
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      return str_of(error);
    }
    return "read without complaint";
  }
  static std::string str_of(const Error& error) { return error.word() + ": " + error.what(); }
  std::string path() const { return path_join(folder_.path(), "step.jsonl"); }
  testing::TemporaryDirectory folder_;
};

TEST_F(step_data, inserts_read_back_as_they_were_and_bad_ones_are_refused) {
  const StepData data = answered();
  const StepData read_back = back(data);
  EXPECT_EQ(read_back.batch.responses[0].inserts, data.batch.responses[0].inserts);
  EXPECT_TRUE(read_back.batch.responses[1].inserts.empty());
  EXPECT_EQ(read_back.batch.token, data.batch.token);
  EXPECT_EQ(step_data_lines(small()).find("inserts"), std::string::npos) << "a single turn has no such key";
  const std::string lines = step_data_lines(data);
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string text = lines;
    text.replace(text.find(old), old.size(), now);
    return refusal(text);
  };
  const std::string expected = "expected tokens, at ascending places between the response's own";
  for (const auto& [old, now] : {std::pair{"\"at\": 1", "\"at\": 0"},
                                 {"\"at\": 2", "\"at\": 1"},
                                 {"\"at\": 2", "\"at\": 3"},
                                 {"\"token\": [30, 31]", "\"token\": []"}}) {
    EXPECT_NE(with(old, now).find(expected), std::string::npos) << now << ": " << with(old, now);
  }
}

TEST_F(step_data, answers_are_grouped_by_the_grader_of_their_problem) {
  StepData data = small();
  data.answer_classes = false;
  data.batch.groups[0].count = 3;
  data.batch.groups.resize(1);
  data.problem.resize(1);
  data.question.resize(1);
  data.gold.resize(1);
  data.batch.responses[1].verdict = {VerdictKind::unequal, "3,000", "", -1};
  data.batch.responses[2].verdict = {VerdictKind::unequal, "3e3", "", -1};
  data.batch.responses[2].group = 0;
  EXPECT_EQ(step_data_lines(data).find("\"grader\""), std::string::npos) << "mathematics, as files always were";
  data.grader = {GraderKind::numeric};
  const StepData again = back(data);
  ASSERT_EQ(again.grader, data.grader);
  const auto class_of = [](const Batch& batch, size_t i) { return batch.responses[i].verdict.answer_class; };
  const Batch numbers = with_answer_classes(again);
  EXPECT_EQ(class_of(numbers, 1), class_of(numbers, 2));
  data.grader = {GraderKind::letter};
  data.batch.responses[1].verdict.answer = "B";
  data.batch.responses[2].verdict.answer = "C";
  const Batch texts = with_answer_classes(back(data));
  EXPECT_NE(class_of(texts, 1), class_of(texts, 2));
  std::string text = step_data_lines(data);
  text.replace(text.find("\"letter\"") + 1, 6, "no-grader");
  EXPECT_NE(refusal(text).find("\"no-grader\" is no grader"), std::string::npos) << refusal(text);
}

TEST_F(step_data, the_parts_of_a_reward_read_back_and_are_one_number_each) {
  StepData data = small();
  EXPECT_EQ(step_data_lines(data).find("terms"), std::string::npos);
  data.batch.reward_terms = {{"answer", 1}, {"format", 0.2}};
  for (Response& o : data.batch.responses) o.terms = {o.reward, 0.1f};
  StepData again = back(data);
  for (const Batch& batch : {again.batch, leading_groups(data.batch, 1)}) {
    ASSERT_EQ(batch.reward_terms.size(), 2u);
    EXPECT_EQ(batch.reward_terms[1].name, "format");
    EXPECT_EQ(batch.reward_terms[1].weight, 0.2);
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(again.batch.responses[i].terms, data.batch.responses[i].terms);
  std::string text = step_data_lines(data);
  text.replace(text.find("\"terms\": [1, "), 13, "\"terms\": [");
  EXPECT_NE(refusal(text).find("terms"), std::string::npos) << refusal(text);
}

TEST_F(step_data, everything_reads_back) {
  StepData data = small(), again = back(data);
  EXPECT_EQ(again.step, 12);
  EXPECT_EQ(again.method, "ucas");
  EXPECT_EQ(again.preset, "paper");
  EXPECT_EQ(again.settings, data.settings);
  EXPECT_TRUE(again.answer_classes);
  EXPECT_FALSE(again.batch.has_tails);
  EXPECT_EQ(again.groups_of_step, 5);
  EXPECT_FALSE(again.whole());
  EXPECT_EQ(again.batch.stop_ids, data.batch.stop_ids);
  EXPECT_EQ(again.batch.token, data.batch.token);
  ASSERT_EQ(again.batch.groups.size(), 2u);
  EXPECT_EQ(again.batch.groups[0].prompt, data.batch.groups[0].prompt);
  EXPECT_EQ(again.batch.groups[1].first, 2);
  ASSERT_EQ(again.batch.responses.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Response &a = again.batch.responses[i], &b = data.batch.responses[i];
    EXPECT_EQ(std::tie(a.first, a.length, a.group, a.sample, a.finished, a.score, a.reward, a.kl_penalty),
              std::tie(b.first, b.length, b.group, b.sample, b.finished, b.score, b.reward, b.kl_penalty));
    EXPECT_EQ(a.verdict.kind, b.verdict.kind);
    EXPECT_EQ(a.verdict.answer, b.verdict.answer);
    EXPECT_EQ(a.verdict.answer_class, b.verdict.answer_class);
  }
  EXPECT_TRUE(same(again.batch.old_logprob, data.batch.old_logprob));
  EXPECT_TRUE(same(again.batch.entropy, data.batch.entropy));
  EXPECT_TRUE(same(again.batch.confidence, data.batch.confidence));
  EXPECT_TRUE(again.batch.signal("value").empty() && again.batch.signal("ref_logprob").empty() &&
              again.batch.signal("prm_logratio").empty());
  EXPECT_TRUE(same(again.advantage, data.advantage));
  EXPECT_TRUE(same(again.ratio, data.ratio));
  EXPECT_EQ(again.clipped, data.clipped);
  ASSERT_EQ(again.trace.size(), 2u);
  EXPECT_TRUE(again.trace[1].per_token && same(again.trace[1].values, data.trace[1].values));
  EXPECT_TRUE(!again.trace[0].per_token && same(again.trace[0].values, data.trace[0].values));
  EXPECT_EQ(again.piece[1], "\n");
  EXPECT_EQ(again.piece[3], " \xef\xbf\xbd");  // bytes that are not UTF-8
  EXPECT_EQ(step_data_lines(again).size(), step_data_lines(back(again)).size());
}

TEST_F(step_data, without_a_record_of_the_update_it_is_read_like_older_files) {
  StepData data = small();
  data.ratio.clear();
  data.clipped.clear();
  std::string text = step_data_lines(data);
  EXPECT_EQ(text.find("\"ratio\""), std::string::npos);
  StepData again = back(data);
  EXPECT_TRUE(again.ratio.empty() && again.clipped.empty());
  EXPECT_EQ(again.advantage, data.advantage);
}

TEST_F(step_data, what_clipped_a_token_is_none_or_one_of_two) {
  std::string text = step_data_lines(small());
  size_t at = text.find("\"clipped\": [0, 0, 1]");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(refusal(std::string(text).replace(at, 20, "\"clipped\": [0, 0, 3]"))
                .find("\"clipped\": holds 3, expected a list of token ids from 0 to 2"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(text).replace(at, 20, "\"clipped\": [0, 0]")).find("2 values for 3 tokens"),
            std::string::npos);
}

TEST_F(step_data, every_float_reads_back_to_its_bits) {
  EXPECT_TRUE(rc::check("bits", [this] {
    StepData data = small();
    data.batch.signal("value").clear();
    for (int i = 0; i < 5; ++i)
      data.batch.signal("value").push_back(std::bit_cast<float>(*rc::gen::arbitrary<uint32_t>()));
    RC_ASSERT(same(back(data).batch.signal("value"), data.batch.signal("value")));
  }));
  // Shortest texts near the middle of two floats, and many more.
  StepData data = small();
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 997 * 1009 * 5) {
    data.batch.signal("value").assign(5, 0);
    for (uint32_t i = 0; i < 5; ++i) data.batch.signal("value")[i] = std::bit_cast<float>(bits + i);
    ASSERT_TRUE(same(back(data).batch.signal("value"), data.batch.signal("value"))) << bits;
  }
}

TEST_F(step_data, whole_groups_up_to_a_number_of_tokens) {
  Batch batch = small().batch;
  EXPECT_EQ(leading_groups(batch, 0).groups.size(), 2u);
  EXPECT_EQ(leading_groups(batch, 5).groups.size(), 2u);
  Batch part = leading_groups(batch, 4);
  EXPECT_EQ(part.groups.size(), 1u);
  EXPECT_EQ(part.responses.size(), 2u);
  EXPECT_EQ(part.token.size(), 3u);
  EXPECT_EQ(part.entropy.size(), 3u);
  EXPECT_TRUE(part.signals.empty());
  EXPECT_EQ(part.stop_ids, batch.stop_ids);
  EXPECT_EQ(leading_groups(batch, 1).groups.size(), 1u);  // one at least
}

TEST_F(step_data, what_is_broken_is_refused_by_line_and_name) {
  std::string good = step_data_lines(small());
  auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return refusal(text.replace(at, from.size(), to));
  };
  auto expect = [](const std::string& got, const std::string& says) {
    EXPECT_NE(got.find(says), std::string::npos) << got;
    EXPECT_TRUE(got.starts_with("data_line: ")) << got;
  };
  expect(refusal("{\"step\": 1, \"advantage_mean\": 0.5}\n"), "not a step's signals");
  expect(refusal(""), ":1: the file ends here");
  expect(refusal(good.substr(0, good.size() - 1)), "cut short");
  expect(refusal(good.substr(0, good.rfind("{\"sample\""))), "expected a response");
  expect(refusal(good + "{}\n"), "expected the end of the file");
  expect(broken("\"token\": [5, 6, 7]", "\"token\": [5, 6]"), ":3: \"piece\": 3 values for 2 tokens");
  expect(broken("\"token\": [5, 6, 7]", "\"token\": [5, 6, -1]"), "\"token\": holds -1, expected a list of token ids");
  expect(broken("\"token\": [5, 6, 7]", "\"token\": [5, 6, 99999999999999999999]"), "token ids");
  expect(broken("\"verdict\": \"equal\"", "\"verdict\": \"right\""), "expected equal, unequal");
  expect(broken("\"reward\": 1", "\"reward\": \"1\""), ":3: \"reward\": expected 32-bit numbers");
  expect(broken("\"reward\": 1", "\"reward\": 1e39"), "\"reward\"");
  expect(broken("\"responses\": 2", "\"responses\": 0"), ":2: \"responses\"");
  expect(broken("\"responses\": 2", "\"responses\": 3"), ":5: the field \"sample\" is missing");
  expect(broken("\"groups\":2", "\"groups\":6"), "\"groups\": number 6, expected a whole number from 1 to 5");
  expect(broken("\"entropy\"", "\"entropie\""), "the field \"entropie\" is missing");
  expect(broken("\"per_token\":false", "\"per_token\":0"), "trace[0]: \"per_token\": number 0, expected true or false");
}

TEST_F(step_data, random_damage_never_does_more_than_throw) {
  std::string good = step_data_lines(small());
  EXPECT_TRUE(rc::check("damage", [&] {
    std::string text = good;
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
      auto at = *rc::gen::inRange<size_t>(0, text.size());
      text[at] = static_cast<char>(*rc::gen::inRange(1, 256));
    }
    try {
      StepData data = read(text);
      RC_ASSERT(data.advantage.size() == data.batch.token.size());
    } catch (const Error&) {
    }
  }));
}

}  // namespace
}  // namespace ucas
