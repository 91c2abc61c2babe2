#include "rollout/served_rollout.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/json.h"
#include "rollout/rollouter.h"

namespace ucas {

namespace {

const std::vector<int32_t> kAskedIds = {1, 2, 3, 4};

// What vLLM 0.32.0 answered, as it came.
constexpr const char* kVllm =
    R"({"id":"cmpl-8b5d14e1617ec9bc","object":"text_completion","created":1795430632,"model":"tiny","choices":[{"index":0,)"
    R"("text":"xu","logprobs":{"text_offset":[0,1],"token_logprobs":[-5.054850101470947,-1.3150391578674316],"tokens":["x",)"
    R"("u"],"top_logprobs":[{"x":-5.054850101470947},{"u":-1.3150391578674316}]},"finish_reason":"length","stop_reason":null,)"
    R"("token_ids":[23,20],"prompt_logprobs":[null,{"2":{"logprob":-5.225926399230957,"rank":24,"decoded_token":"c"}},)"
    R"({"3":{"logprob":-3.580416679382324,"rank":10,"decoded_token":"d"}},{"4":{"logprob":-3.0322518348693848,"rank":7,)"
    R"("decoded_token":"e"}}],"prompt_token_ids":[1,2,3,4],"routed_experts":null}],"service_tier":null})";

}  // namespace

TEST(vllm, a_reply_is_read) {
  const SamplerReply reply = vllm_sampled(kVllm);
  EXPECT_EQ(reply.token, (std::vector<int32_t>{23, 20}));
  EXPECT_EQ(reply.logprob, (std::vector<double>{-5.054850101470947, -1.3150391578674316}));
  EXPECT_FALSE(reply.stopped);
  EXPECT_EQ(vllm_scored(kVllm, kAskedIds),
            (std::vector<double>{-5.225926399230957, -3.580416679382324, -3.0322518348693848}));
  EXPECT_ANY_THROW(vllm_scored(kVllm, std::vector<int32_t>{1, 5, 3, 4}));  // of other tokens
}

TEST(vllm, a_reply_without_what_was_asked_for_is_none) {
  for (const char* body : {"", "{}", "[]", "null", "{\"choices\": []}", "{\"choices\": [{\"finish_reason\": null}]}"}) {
    EXPECT_ANY_THROW(vllm_sampled(body)) << body;
  }
}

TEST(vllm, what_is_asked_names_ids_limits_and_a_seed) {
  const std::vector<int32_t> stops = {27};
  const SamplerAsk ask{.prompt = kAskedIds, .stop_ids = stops, .max_tokens = 9, .temperature = 0.5, .seed = 11};
  const Json vllm = Json::parse(vllm_sample("tiny", ask));
  EXPECT_EQ(vllm.at("prompt").size(), 4u);
  EXPECT_EQ(vllm.at("max_tokens"), 9);
  EXPECT_EQ(vllm.at("model"), "tiny");
  EXPECT_EQ(vllm.at("seed"), 11);
  EXPECT_EQ(vllm.at("temperature"), 0.5);
  EXPECT_EQ(vllm.at("stop_token_ids").at(0), 27);
  EXPECT_EQ(vllm.at("return_token_ids"), true);
}

TEST(sampled_bytes, responses_come_back_to_the_bit_and_torn_ones_are_refused) {
  std::vector<Episode> sampled(2);
  sampled[0] = {.job = 3, .sample = 1, .finished = true, .token = {4, 5}, .logprob = {-0.0f, -1.5f}};
  sampled[1] = {.job = 4, .token = {6}, .logprob = {-2}, .entropy = {0.25f}};
  const std::string bytes = sampled_bytes(sampled);
  const std::vector<Episode> back = read_sampled(bytes, "here");
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(sampled_bytes(back), bytes);
  EXPECT_EQ(back[0].token, sampled[0].token);
  EXPECT_EQ(back[1].entropy, sampled[1].entropy);
  for (size_t cut = 1; cut < bytes.size(); cut += 7) {
    if (cut == sampled_bytes({sampled[0]}).size()) continue;
    EXPECT_THROW(read_sampled(std::string_view(bytes).substr(0, cut), "here"), Error) << cut;
  }
}

}  // namespace ucas
