#include "records/outputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {

namespace {

OutputSettings settings() {
  OutputSettings s;
  s.model = "abc";
  s.keys = "problem";
  s.sources = {{"aime", "qwen_math", "h1", {7, 9}, 32}, {"amc", "qwen_math", "h2", {7, 9}, 16}};
  return s;
}

Output output(const std::string& source, const std::string& id, int64_t sample) {
  return {.source = source,
          .id = id,
          .sample = sample,
          .text = str("\\boxed{", sample, "} \xE2\x80\xA8 \x01 \"", id, "\"\n"),
          .ids = {1, 2, 7},
          .finished = true,
          .logprob = -0.1 * 3,
          .entropy = 1.0 / 3,
          .confidence = 2.5};
}

std::vector<Problem> problems() {
  std::vector<Problem> out;
  for (const auto& [source, id] : {std::pair{"aime", "1"}, {"aime", "2"}, {"amc", "1"}}) {
    Problem& p = out.emplace_back();
    p.source = source;
    p.id = id;
  }
  return out;
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.word() + ": " + error.what();
  }
  return "no error";
}

#define EXPECT_SAYS(act, text)                                                              \
  do {                                                                                      \
    const std::string said = error_of([&] { act; });                                        \
    EXPECT_NE(said.find(text), std::string::npos) << "said: " << said << "\nnot: " << text; \
  } while (false)

struct Place {
  testing::TemporaryDirectory directory;
  std::string path = path_join(directory.path(), "t.outputs.jsonl");
};

}  // namespace

TEST(evaluate_outputs, what_is_written_is_read_back_exactly) {
  Place place;
  std::vector<Output> all = {output("amc", "1", 1), output("aime", "2", kGreedySample), output("aime", "1", 0)};
  all[2].entropy = std::nan("");
  all[0].inserts = {{1, {5, 6}, "<result>7</result>"}, {2, {8}, "\""}};
  OutputSettings answered = settings();
  answered.environment = "calculator";
  answered.max_turns = 3;
  {
    OutputJournal journal(place.path, answered);
    for (const Output& o : all) journal.append(o);
  }
  const StoredOutputs stored = read_outputs(place.path);
  EXPECT_EQ(stored.settings, answered);
  EXPECT_SAYS(OutputJournal(place.path, settings()), "environment calculator for 3 turns, this one none");
  ASSERT_EQ(stored.outputs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(stored.outputs[i].text, all[i].text);
    EXPECT_EQ(stored.outputs[i].ids, all[i].ids);
    EXPECT_EQ(stored.outputs[i].inserts, all[i].inserts);
    EXPECT_EQ(stored.outputs[i].logprob, all[i].logprob);
  }
  EXPECT_EQ(stored.outputs[0].entropy, 1.0 / 3);
  EXPECT_TRUE(std::isnan(stored.outputs[2].entropy)) << "null";
}

TEST(evaluate_outputs, every_cut_of_the_file_goes_on_and_ends_as_the_same_bytes) {
  Place place;
  std::vector<Output> all;
  for (const Problem& p : problems()) {
    for (int64_t sample = -1; sample < 2; ++sample) all.push_back(output(p.source, p.id, sample));
  }
  const auto finish = [&](bool backwards) {
    OutputJournal journal(place.path, settings());
    std::vector<Output> found = journal.take_found();
    std::vector<Output> missing;
    for (const Output& o : all) {
      const bool there = std::any_of(found.begin(), found.end(), [&](const Output& f) {
        return f.source == o.source && f.id == o.id && f.sample == o.sample;
      });
      if (!there) missing.push_back(o);
    }
    if (backwards) std::reverse(missing.begin(), missing.end());
    for (const Output& o : missing) journal.append(o);
    journal.finish(problems());
    return found.size();
  };
  finish(false);
  const std::string whole = read_file(place.path);
  for (size_t cut = 0; cut < whole.size(); cut += 13) {
    write_file(place.path, whole.substr(0, cut));
    const size_t lines =
        static_cast<size_t>(std::count(whole.begin(), whole.begin() + static_cast<int64_t>(cut), '\n'));
    EXPECT_EQ(finish(cut % 2 == 0), lines < 2 ? 0 : lines - 1) << "cut at " << cut;
    ASSERT_EQ(read_file(place.path), whole) << "cut at " << cut;
  }
}

TEST(evaluate_outputs, other_settings_are_refused_and_named) {
  Place place;
  {
    OutputJournal journal(place.path, settings());
    journal.append(output("aime", "1", 0));
  }
  const auto opened = [&](auto change) {
    OutputSettings other = settings();
    change(other);
    return error_of([&] { OutputJournal(place.path, other); });
  };
  using S = OutputSettings;
  const std::pair<std::string, std::string> cases[] = {
      {opened([](S& s) { s.temperature = 0.6; }),
       "an evaluation with temperature 1, this one 0.6; remove it or choose"},
      {opened([](S& s) { s.top_p = 0.95; }), "top_p 1, this one 0.95"},
      {opened([](S& s) { s.top_k = 20; }), "top_k 0, this one 20"},
      {opened([](S& s) { s.min_p = 0.1; }), "min_p 0, this one 0.1"},
      {opened([](S& s) { s.seed = 5; }), "seed 0, this one 5"},
      {opened([](S& s) { s.model = "x"; }), "another model"},
      {opened([](S& s) { s.sources[1].max_tokens = 99; }), "amc: max_tokens 16, this one 99"},
      {opened([](S& s) { s.sources[0].stop_ids = {7}; }), "aime: stop ids [7, 9], this one [7]"},
      {opened([](S& s) { s.sources[0].prompts = "x"; }), "aime: other prompts"},
      {opened([](S& s) { s.sources[0].prompt_template = "orz"; }), "aime: template qwen_math, this one orz"},
      {opened([](S& s) { s.sources.pop_back(); }), "the sets aime, amc, this one aime"},
  };
  for (const auto& [said, wanted] : cases) EXPECT_NE(said.find(wanted), std::string::npos) << said;
  EXPECT_EQ(read_outputs(place.path).outputs.size(), 1u) << "refusing changes nothing";
}

TEST(evaluate_outputs, greedy_responses_stand_whatever_the_samples_are_drawn_with) {
  Place place;
  {
    OutputJournal journal(place.path, settings());
    journal.append(output("aime", "2", kGreedySample));
    journal.append(output("aime", "1", kGreedySample));
  }
  OutputSettings warmer = settings();
  warmer.temperature = 0.6;
  {
    OutputJournal journal(place.path, warmer);
    EXPECT_EQ(journal.take_found().size(), 2u);
    journal.append(output("aime", "1", 0));
    journal.finish(problems());
  }
  const StoredOutputs stored = read_outputs(place.path);
  EXPECT_EQ(stored.settings, warmer);
  ASSERT_EQ(stored.outputs.size(), 3u);
  EXPECT_EQ(stored.outputs[1].sample, 0) << "in order: 1 greedy, 1 first sample, 2 greedy";
}

TEST(evaluate_outputs, two_programs_do_not_write_one_journal) {
  Place place;
  OutputJournal journal(place.path, settings());
  EXPECT_SAYS(OutputJournal(place.path, settings()), "in use by another ucas");
}

TEST(evaluate_outputs, hostile_lines_are_refused_with_their_place) {
  Place place;
  const std::string head = to_json_line(settings()), good = to_json_line(output("aime", "1", 0));
  const auto reads = [&](const std::string& text) {
    write_file(place.path, text);
    return error_of([&] { read_outputs(place.path); });
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    const size_t at = line.find(from);
    UCAS_CHECK(at != std::string::npos, "the line has it");
    return head + line.replace(at, from.size(), to);
  };
  const std::pair<std::string, std::string> cases[] = {
      {reads(""), "the file is empty"},
      {reads("{}\n"), ":1: the field \"format\" is missing"},
      {reads("{\"format\": \"ucas-outputs-2\"}\n"), "expected \"ucas-outputs-1\""},
      {reads(good), ":1: the field \"format\" is missing"},
      {reads(head + "[1]\n"), ":2: array [1], expected an object"},
      {reads(head + good + good), ":3: sample 0 of problem 1 for the second time"},
      {reads(head + good.substr(0, good.size() - 1)), "the last line is cut off"},
      {reads(with("\"sample\":0", "\"sample\":-2")), "\"sample\": number -2, expected a whole number from -1 to"},
      {reads(with("\"sample\":0", "\"sample\":0.5")), "\"sample\": number 0.5, expected a whole number"},
      {reads(with("\"sample\":0", "\"sample\":18446744073709551615")),
       "\"sample\": number 18446744073709551615, expected"},
      {reads(with("[1,2,7]", "[1,2,-7]")), "\"ids\": holds -7, expected a list of token ids"},
      {reads(with("[1,2,7]", "[1,2,4294967296]")), "\"ids\": holds 4294967296"},
      {reads(with("[1,2,7]", "\"1\"")), "\"ids\": is a string, expected a list"},
      {reads(with("\"finished\":true", "\"finished\":1")), "expected true or false"},
      {reads(with("\"finished\"", "\"finish\"")), "unknown field \"finish\""},
      {reads(with("\"logprob\":", "\"logprob\":1e999,\"x\":")), ":2: "},
      {reads(with("\"id\":", "\"id\":\"a\",\"id\":")), ":2: "},
      {reads(head + "\"" + std::string(100, '[') + "\n"), ":2: "},
      {reads(head + std::string(100, '[') + "\n"), ":2: "},
      {reads(with("boxed", "box\xff")), ":2: "},
  };
  for (const auto& [said, wanted] : cases) {
    EXPECT_TRUE(said.starts_with("data_line: ")) << said;
    EXPECT_NE(said.find(wanted), std::string::npos) << "said: " << said << "\nnot: " << wanted;
  }
}

TEST(evaluate_outputs, by_problem_wants_every_response_that_was_asked_for) {
  std::vector<Output> all;
  for (const Problem& p : problems()) {
    for (int64_t sample = 3; sample >= -1; --sample) all.push_back(output(p.source, p.id, sample));
  }
  const auto two = by_problem(problems(), all, true, 2);
  ASSERT_EQ(two.size(), 3u);
  ASSERT_EQ(two[2].samples.size(), 2u);
  EXPECT_EQ(two[2].samples[1].sample, 1);
  EXPECT_EQ(two[2].greedy.size(), 1u);
  EXPECT_TRUE(by_problem(problems(), all, false, 4)[0].greedy.empty());
  EXPECT_SAYS(by_problem(problems(), all, true, 5), "aime/1: 1 of its responses are missing");
  std::erase_if(all, [](const Output& o) { return o.source == "amc" && o.sample >= 0; });
  EXPECT_SAYS(by_problem(problems(), all, true, 4), "amc/1: 4 of its responses are missing");
  const std::string amc = "amc";
}

}  // namespace ucas
