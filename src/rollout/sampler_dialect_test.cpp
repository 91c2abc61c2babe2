#include "rollout/sampler_dialect.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/json.h"
#include "rollout/sampled_bytes.h"

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

// As SGLang 0.5.23's sources lay it out.
constexpr const char* kSglang =
    R"({"text":"xu","output_ids":[23,27],"meta_info":{"id":"a","finish_reason":{"type":"stop","matched":27},)"
    R"("prompt_tokens":4,"weight_version":"7","completion_tokens":2,"input_token_logprobs":[[null,1,null],[-5.5,2,null],)"
    R"([-3.5,3,null],[-3.25,4,null]],"output_token_logprobs":[[-5.0,23,null],[-1.5,27,null]]}})";

}  // namespace

TEST(sampler_dialect, a_reply_of_vllm_is_read) {
  const auto vllm = make_dialect(SampledBy::vllm, "tiny");
  const SamplerReply reply = vllm->sampled(kVllm);
  EXPECT_EQ(reply.token, (std::vector<int32_t>{23, 20}));
  EXPECT_EQ(reply.logprob, (std::vector<double>{-5.054850101470947, -1.3150391578674316}));
  EXPECT_FALSE(reply.stopped);
  EXPECT_EQ(vllm->scored(kVllm, kAskedIds),
            (std::vector<double>{-5.225926399230957, -3.580416679382324, -3.0322518348693848}));
  EXPECT_ANY_THROW(vllm->scored(kVllm, std::vector<int32_t>{1, 5, 3, 4}));  // of other tokens
}

TEST(sampler_dialect, a_reply_of_sglang_is_read) {
  const auto sglang = make_dialect(SampledBy::sglang, "");
  const SamplerReply reply = sglang->sampled(kSglang);
  EXPECT_EQ(reply.token, (std::vector<int32_t>{23, 27}));
  EXPECT_EQ(reply.logprob, (std::vector<double>{-5.0, -1.5}));
  EXPECT_TRUE(reply.stopped);
  EXPECT_EQ(reply.version, "7");
  EXPECT_EQ(sglang->scored(kSglang, kAskedIds), (std::vector<double>{-5.5, -3.5, -3.25}));
  EXPECT_ANY_THROW(sglang->scored(kSglang, std::vector<int32_t>{1, 5, 3, 4}));
}

TEST(sampler_dialect, a_reply_without_what_was_asked_for_is_none) {
  for (const SampledBy sampler : {SampledBy::sglang, SampledBy::vllm}) {
    const auto dialect = make_dialect(sampler, "tiny");
    for (const char* body :
         {"", "{}", "[]", "null", "{\"choices\": []}", "{\"meta_info\": {\"finish_reason\": null}}"}) {
      EXPECT_ANY_THROW(dialect->sampled(body)) << body;
    }
  }
}

TEST(sampler_dialect, what_is_asked_names_ids_limits_and_a_seed) {
  const std::vector<int32_t> stops = {27};
  const SamplerAsk ask{.prompt = kAskedIds, .stop_ids = stops, .max_tokens = 9, .temperature = 0.5, .seed = 11};
  const Json sglang = Json::parse(make_dialect(SampledBy::sglang, "")->sample(ask));
  EXPECT_EQ(sglang.at("input_ids").size(), 4u);
  EXPECT_EQ(sglang.at("sampling_params").at("sampling_seed"), 11);
  EXPECT_EQ(sglang.at("sampling_params").at("max_new_tokens"), 9);
  EXPECT_EQ(sglang.at("return_logprob"), true);
  const Json vllm = Json::parse(make_dialect(SampledBy::vllm, "tiny")->sample(ask));
  EXPECT_EQ(vllm.at("model"), "tiny");
  EXPECT_EQ(vllm.at("seed"), 11);
  EXPECT_EQ(vllm.at("temperature"), 0.5);
  EXPECT_EQ(vllm.at("stop_token_ids").at(0), 27);
  EXPECT_EQ(vllm.at("return_token_ids"), true);
}

// As SGLang's http_server and io_struct name them.
TEST(sampler_dialect, a_group_of_sglang_is_joined_by_name_rank_and_size_and_told_what_comes) {
  const auto dialect = make_dialect(SampledBy::sglang, "");
  const SamplerDialect::Group group{
      .name = "g", .backend = "nccl", .address = "10.0.0.1", .port = 29500, .size = 5, .first_rank = 3};
  const SamplerDialect::Call join = dialect->join_group(group);
  EXPECT_EQ(join.path, "/init_weights_update_group");
  EXPECT_EQ(Json::parse(join.body),
            Json::parse(R"({"master_address": "10.0.0.1", "master_port": 29500, "rank_offset": 3,
      "world_size": 5, "group_name": "g", "backend": "nccl"})"));
  SamplerDialect::Bucket bucket{.names = {"a", "b"}, .shapes = {{2, 3}, {4}}, .dtype = "bfloat16"};
  const SamplerDialect::Call first = dialect->receive(group, bucket);
  EXPECT_EQ(first.path, "/update_weights_from_distributed");
  EXPECT_EQ(Json::parse(first.body),
            Json::parse(R"({"names": ["a", "b"], "dtypes": ["bfloat16", "bfloat16"], "shapes": [[2, 3], [4]],
      "group_name": "g", "flush_cache": false})"))
      << "what follows belongs to the same weights";
  bucket.version = "7";
  EXPECT_EQ(Json::parse(dialect->receive(group, bucket).body).at("weight_version"), "7");
  EXPECT_EQ(Json::parse(dialect->receive(group, bucket).body).at("flush_cache"), true);
  EXPECT_EQ(dialect->ranks_in(R"({"tp_size": 4, "pp_size": 1, "dp_size": 1})"), 4);
  EXPECT_ANY_THROW(dialect->ranks_in(R"({"tp_size": 4, "pp_size": 2})")) << "its workers would share ranks";
  EXPECT_ANY_THROW(dialect->ranks_in(R"({"tp_size": 0})"));
  EXPECT_ANY_THROW(dialect->ranks_in("[]"));
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
