// The API over an engine that answers from a script: what is asked, what is refused, what comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/text/json.h"
#include "serve/api.h"
#include "support/tokenizer_goldens.h"

namespace ucas {
namespace {

// Answers every sample with `text`, a token at a time, cut at its limit or where it is unwanted.
class Answering final : public Rollouter {
 public:
  explicit Answering(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  std::string text;
  bool fails = false;
  std::vector<std::vector<PromptJob>> batches;
  std::vector<double> temperatures;

  std::vector<Episode> run(const RolloutRequest& request) override {
    if (fails) throw std::runtime_error("no memory is left");
    batches.emplace_back(request.jobs.begin(), request.jobs.end());
    temperatures.push_back(request.sampling.temperature);
    for (size_t job = 0; job < batches.back().size(); ++job) {
      const PromptJob asked = batches.back()[job];
      for (int64_t i = 0; i < asked.samples; ++i) sample(request, asked, static_cast<int64_t>(job), i);
      for (const PromptJob& more : request.feed.more()) batches.back().push_back(more);
    }
    return {};
  }

 private:
  void sample(const RolloutRequest& request, const PromptJob& asked, int64_t job, int64_t i) const {
    Episode episode{.job = job, .sample = static_cast<uint32_t>(i)};
    for (int32_t id : tokenizer_.encode(text)) {
      if (std::ssize(episode.token) == asked.max_tokens || request.limits.unwanted(job, episode.sample)) break;
      episode.token.push_back(id);
      episode.logprob.push_back(-0.5f);
      request.sink.on_token(job, episode.sample, id);
    }
    episode.finished = std::ranges::find(asked.stop_ids, episode.token.back()) != asked.stop_ids.end();
    request.sink.on_response(episode);
  }
  const Tokenizer& tokenizer_;
};

class Api : public ::testing::Test {
 protected:
  Api()
      : api_(service_, {.name = "small", .key = "k", .tokenizer = &tokenizer_, .vocab = tokenizer_.vocab_size()}),
        thread_([this] { service_.run([this] { return stop_.load(); }); }) {}
  ~Api() override {
    stop_ = true;
    thread_.join();
  }
  HttpAnswer ask(const std::string& body, bool chat = false) {
    std::string own = body;
    return api_.complete(own, chat);
  }
  Json answer(const std::string& body) {
    const HttpAnswer got = ask(body);
    EXPECT_EQ(got.status, 200) << got.body;
    return parse_json(got.body, "answer");
  }

  const Tokenizer tokenizer_ = Tokenizer::load(testing::tokenizer_goldens() + "gpt2-like");
  Answering engine_{tokenizer_};
  Service service_{engine_, tokenizer_, 40, 7};
  std::atomic<bool> stop_{false};
  ServeApi api_;
  std::thread thread_;
};

TEST_F(Api, a_completion_has_the_text_its_tokens_and_what_they_cost) {
  engine_.text = " is a number";
  const Json got = answer(R"({"prompt": "seven", "max_tokens": 30, "n": 2, "logprobs": 1, "return_token_ids": true})");
  const auto ids = tokenizer_.encode(engine_.text);
  ASSERT_EQ(got["choices"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Json& choice = got["choices"][i];
    EXPECT_EQ(choice["index"], i);
    EXPECT_EQ(choice["text"], engine_.text);
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(choice["token_ids"].get<std::vector<int32_t>>(), ids);
    EXPECT_EQ(choice["logprobs"]["token_logprobs"].size(), ids.size());
  }
  const auto prompt = std::ssize(tokenizer_.encode_prompt("seven"));
  EXPECT_EQ(got["usage"]["prompt_tokens"], prompt);
  EXPECT_EQ(got["usage"]["completion_tokens"], 2 * std::ssize(ids));
}

TEST_F(Api, a_stop_is_left_out_also_where_it_spans_tokens_and_the_rest_is_not_sampled) {
  engine_.text = " one two three four five six";
  const Json got = answer(R"({"prompt": "x", "max_tokens": 38, "stop": ["wo th", "six"], "return_token_ids": true})");
  EXPECT_EQ(got["choices"][0]["text"], " one t");
  EXPECT_EQ(got["choices"][0]["finish_reason"], "stop");
  EXPECT_LT(got["choices"][0]["token_ids"].size(), tokenizer_.encode(engine_.text).size());
}

TEST_F(Api, a_stream_has_the_same_text_in_pieces_then_its_use_then_an_end) {
  engine_.text = " one two three";
  const HttpAnswer got = ask(
      R"({"prompt": "x", "max_tokens": 30, "stop": "e th", "stream": true, "stream_options": {"include_usage": true}})");
  ASSERT_TRUE(got.pieces);
  std::vector<std::string> events;
  got.pieces([&](std::string_view piece) { return events.emplace_back(piece), true; });
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events.back(), "data: [DONE]\n\n");
  std::string text;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    text += parse_json(events[i].substr(6), "event")["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, " one two three");
  EXPECT_GT(parse_json(events[events.size() - 2].substr(6), "event")["usage"]["completion_tokens"], 0);
}

TEST_F(Api, what_is_not_there_is_refused_by_name) {
  engine_.text = "x";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"prompt": "x", "presence_penalty": 0.5})", "\"presence_penalty\" is not supported: leave it out, or send 0"},
      {R"({"prompt": "x", "tools": []})", "\"tools\" is not supported"},
      {R"({"prompt": ["x", "y"]})", "one prompt a request"},
      {R"({"prompt": ""})", "\"prompt\": empty"},
      {R"({"max_tokens": 3})", "\"prompt\" is missing"},
      {R"({"prompt": "x", "max_tokens": 40})", "more than the 40 that there is room for"},
      {R"({"prompt": "x", "temperature": 0.0001})", "expected 0 (greedy) or at least 0.001"},
      {R"({"prompt": "x", "n": 0})", "\"n\""},
      {R"({"prompt": "x", "stop": [""]})", "\"stop\": expected a text"},
      {R"({"prompt": [99999999]})", "\"prompt\""},
      {R"({"prompt": "x", "logprobs": 5})", "\"logprobs\": only of sampled tokens"},
      {"[1", "the request"}};
  for (const auto& [body, why] : cases) {
    const HttpAnswer got = ask(body);
    EXPECT_EQ(got.status, 400) << body;
    EXPECT_NE(parse_json(got.body, "refusal")["error"]["message"].get<std::string>().find(why), std::string::npos)
        << got.body;
  }
  EXPECT_EQ(ask(R"({"prompt": "x", "model": "large"})").status, 404);
  EXPECT_EQ(ask(R"({"messages": [{"role": "user", "content": "x"}]})", true).status, 400) << "no chat template";
  EXPECT_TRUE(engine_.batches.empty());
}

TEST_F(Api, the_same_seed_is_the_same_key_and_greedy_requests_are_marked) {
  engine_.text = "x";
  for (const char* body : {R"({"prompt": "x", "seed": 5})", R"({"prompt": "y", "seed": 5})",
                           R"({"prompt": "x", "seed": 6})", R"({"prompt": "x", "temperature": 0})"}) {
    answer(body);
  }
  std::vector<PromptJob> jobs;
  for (const auto& batch : engine_.batches) jobs.insert(jobs.end(), batch.begin(), batch.end());
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs[0].problem, jobs[1].problem);
  EXPECT_NE(jobs[0].problem, jobs[2].problem);
  EXPECT_FALSE(jobs[2].greedy);
  EXPECT_TRUE(jobs[3].greedy);
}

TEST_F(Api, a_failed_batch_is_the_servers_fault_and_the_next_one_is_answered) {
  engine_.text = "x";
  engine_.fails = true;
  const HttpAnswer failed = ask(R"({"prompt": "x"})");
  EXPECT_EQ(failed.status, 503);
  EXPECT_NE(failed.body.find("no memory is left"), std::string::npos) << failed.body;
  engine_.fails = false;
  EXPECT_EQ(ask(R"({"prompt": "x"})").status, 200);
}

TEST_F(Api, a_key_is_asked_of_every_path_but_health) {
  EXPECT_FALSE(api_.without_key("/health", {}));
  EXPECT_FALSE(api_.without_key("/v1/models", {{"authorization", "bEaReR k"}}));
  for (const char* given : {"", "k", "Bearer", "Bearer ", "Bearer K", "Bearer k "}) {
    const auto refused = api_.without_key("/v1/models", {{"authorization", given}});
    ASSERT_TRUE(refused) << given;
    EXPECT_EQ(refused->status, 401);
  }
}

// A request that samples otherwise waits for the batch before it, which nothing joins any more.
TEST(service, requests_that_sample_alike_share_a_batch_in_their_order) {
  const Tokenizer tokenizer = Tokenizer::load(testing::tokenizer_goldens() + "gpt2-like");
  Answering engine(tokenizer);
  engine.text = "x";
  Service service(engine, tokenizer, 40, 7);
  std::vector<std::shared_ptr<ServeTicket>> tickets;
  for (const double temperature : {1.0, 1.0, 0.7, 1.0}) {
    tickets.push_back(service.ask({.prompt = {1}, .temperature = temperature}));
  }
  std::atomic<bool> stop{false};
  std::thread thread([&] { service.run([&] { return stop.load(); }); });
  for (const auto& ticket : tickets) {
    const auto piece = ticket->next();
    ASSERT_TRUE(piece);
  }
  stop = true;
  thread.join();
  EXPECT_EQ(engine.temperatures, (std::vector<double>{1.0, 0.7, 1.0}));
  EXPECT_EQ(engine.batches.front().size(), 2u);
  EXPECT_THROW(service.ask({.prompt = {1}}), Error) << "it has stopped";
}

}  // namespace
}  // namespace ucas
