#include "hf/model_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class Config : public ::testing::Test {
 protected:
  static Json good() {
    return {{"architectures", {"Qwen2ForCausalLM"}},
            {"model_type", "qwen2"},
            {"hidden_size", 64},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"intermediate_size", 96},
            {"vocab_size", 100},
            {"max_position_embeddings", 512},
            {"rope_theta", 1000000.0},
            {"rms_norm_eps", 1e-6},
            {"tie_word_embeddings", true},
            {"torch_dtype", "bfloat16"},
            {"eos_token_id", 99}};
  }
  ModelConfig read(const Json& json) const {
    std::ofstream(directory_ + "/config.json") << json.dump();
    return read_model_config(directory_);
  }
  // "" where the file is accepted.
  std::string refusal(const Json& json) const {
    try {
      read(json);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void expect_refused(const char* key, const Json& value, const std::string& kind) const {
    Json json = good();
    json[key] = value;
    try {
      read(json);
      ADD_FAILURE() << "accepted " << key << " = " << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << "must name the key: " << error.what();
      EXPECT_NE(std::string(error.what()).find("config.json"), std::string::npos) << error.what();
    }
  }

  testing::TemporaryDirectory folder_;
  std::string directory_ = folder_.path();
};

TEST_F(Config, is_read_as_transformers_4_and_5_write_it) {
  ModelConfig c = read(good());
  EXPECT_EQ(c.head_dim, 16);
  EXPECT_EQ(c.rope.theta, 1e6);
  EXPECT_EQ(c.torch_dtype, "bfloat16");
  EXPECT_EQ(c.eos_token_id, std::vector<int32_t>{99});
  EXPECT_EQ(c.parameter_count(), 100 * 64 + 64 + 2 * (128 * 65 + 64 * 64 + 3 * 96 * 64 + 2 * 64));
  Json newer = good();
  for (const char* key : {"rope_theta", "torch_dtype"}) newer.erase(key);
  newer["dtype"] = "float16";
  newer["rope_parameters"] = {{"rope_theta", 5e5}, {"rope_type", "default"}};
  newer["rope_scaling"] = nullptr;
  c = read(newer);
  EXPECT_EQ(c.rope.theta, 5e5);
  EXPECT_EQ(c.torch_dtype, "float16");
}

TEST_F(Config, what_is_not_supported_is_refused_by_name) {
  expect_refused("model_type", "mixtral", "unsupported");
  expect_refused("architectures", Json::array({"LlamaForCausalLM"}), "unsupported");
  expect_refused("rope_scaling", {{"rope_type", "longrope"}, {"factor", 4.0}}, "unsupported");
  expect_refused("rope_parameters", {{"rope_type", "proportional"}, {"rope_theta", 1e6}}, "unsupported");
  expect_refused("partial_rotary_factor", 0.5, "unsupported");
  expect_refused("pretraining_tp", 2, "unsupported");
  expect_refused("use_mrope", true, "unsupported");
  expect_refused("quantization_config", {{"quant_method", "gptq"}}, "unsupported");
  expect_refused("auto_map", {{"AutoModel", "code.Model"}}, "unsupported");
  expect_refused("hidden_act", "gelu", "unsupported");
  expect_refused("torch_dtype", "int8", "unsupported");
}

TEST_F(Config, every_family_is_read_by_its_name_and_written_back) {
  for (const Family& family : kFamilies) {
    Json json = good();
    json["model_type"] = family.model_type;
    json["architectures"] = {family.architecture};
    ModelConfig c = read(json);
    EXPECT_EQ(c.family->title, family.title);
    EXPECT_EQ(c.head_dim, family.head_dim > 0 ? family.head_dim : 16);
    std::string out = directory_ + "/" + family.model_type;
    std::filesystem::create_directories(out);
    write_model_config(c, out);
    ModelConfig back = read_model_config(out);
    EXPECT_EQ(back.family->title, family.title);
    EXPECT_EQ(back.head_dim, c.head_dim);
    EXPECT_EQ(back.parameter_count(), c.parameter_count());
    json["architectures"] = {"Gemma2ForCausalLM"};
    EXPECT_THROW(read(json), Error) << family.title << " of another architecture";
    if (family.block.qkv_bias) continue;
    json["architectures"] = {family.architecture};
    json["attention_bias"] = true;
    EXPECT_THROW(read(json), Error) << family.title << " with a bias";
  }
}

TEST_F(Config, a_model_that_does_not_run_is_named_with_what_it_is) {
  for (auto [type, what] :
       {std::pair("mixtral", "a mixture of experts"), std::pair("qwen3_moe", "a mixture of experts"),
        std::pair("llava", "a multimodal model"), std::pair("mamba", "state-space"),
        std::pair("phi3", "an unsupported dense architecture"),
        std::pair("new", "ucas runs qwen2, qwen3, llama, mistral, gemma3_text, smollm3, granite, olmo2, olmo3")}) {
    Json json = good();
    json["model_type"] = type;
    EXPECT_NE(refusal(json).find(str("config.json: model_type = \"", type, "\": ")), std::string::npos)
        << refusal(json);
    EXPECT_NE(refusal(json).find(what), std::string::npos) << refusal(json);
  }
}

TEST_F(Config, a_window_is_that_of_the_layers_that_the_file_says) {
  using Windows = std::vector<int64_t>;
  Json json = good();
  json["num_hidden_layers"] = 3;
  json["sliding_window"] = 128;
  json["max_window_layers"] = 1;
  EXPECT_EQ(read(json).windows, Windows{}) << "not in use";
  json["use_sliding_window"] = true;
  EXPECT_EQ(read(json).windows, (Windows{0, 128, 128}));
  json["max_window_layers"] = 3;
  EXPECT_EQ(read(json).windows, Windows{});
  json["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention"};
  EXPECT_EQ(read(json).windows, (Windows{128, 0, 128}));
  json["sliding_window"] = nullptr;
  EXPECT_EQ(read(json).windows, Windows{}) << "null for none";
  json.erase("sliding_window");
  EXPECT_EQ(read(json).window(2), 4096) << "what transformers takes where there is no key";

  json["model_type"] = "mistral";
  json["architectures"] = {"MistralForCausalLM"};
  json["sliding_window"] = 7;
  EXPECT_NE(refusal(json).find("layer_types"), std::string::npos) << "not what transformers would run of it";
  json.erase("layer_types");
  EXPECT_EQ(read(json).windows, (Windows{7, 7, 7}));
  json["sliding_window"] = nullptr;
  EXPECT_EQ(read(json).windows, Windows{});
}

TEST_F(Config, windows_and_rotations_are_written_as_they_were_read) {
  Json window = good(), mistral = good(), yarn = good(), llama3 = good();
  window["use_sliding_window"] = true;
  window["sliding_window"] = 9;
  window["max_window_layers"] = 1;
  mistral["model_type"] = "mistral";
  mistral["architectures"] = {"MistralForCausalLM"};
  mistral["sliding_window"] = 5;
  Json wide = mistral;
  wide["sliding_window"] = nullptr;
  yarn["rope_scaling"] = {{"type", "yarn"},    {"factor", 4.0},    {"original_max_position_embeddings", 128},
                          {"beta_fast", 16.0}, {"mscale", 0.7},    {"mscale_all_dim", 1.0},
                          {"beta_slow", 2.0},  {"truncate", false}};
  llama3["rope_parameters"] = {{"rope_type", "llama3"},   {"factor", 8.0},
                               {"low_freq_factor", 1.5},  {"high_freq_factor", 5.0},
                               {"rope_theta", 1000000.0}, {"original_max_position_embeddings", 100}};
  Json spread = llama3;
  spread["original_max_position_embeddings"] = 100;
  int number = 0;
  for (const Json& json : {good(), window, mistral, wide, yarn, llama3, spread})
    for (bool like : {false, true}) {
      ModelConfig c = read(json);
      std::string out = directory_ + "/out" + std::to_string(number++);
      std::filesystem::create_directories(out);
      write_model_config(c, out, like ? directory_ : "");
      ModelConfig back = read_model_config(out);
      EXPECT_EQ(back.windows, c.windows) << json;
      EXPECT_TRUE(back.rope == c.rope) << json;
      Json written = read_json(out + "/config.json", 1 << 20);
      if (c.rope.kind == RopeKind::plain) continue;
      Json scaling = written["rope_parameters"];
      scaling.erase("rope_theta");
      EXPECT_EQ(written["rope_scaling"], scaling) << "both spellings";
    }
  // A model without what the file next to it has.
  std::string out = directory_ + "/plain";
  std::filesystem::create_directories(out);
  ModelConfig plain = read(good());
  for (const Json& json : {window, yarn, spread}) {
    read(json);  // now the file in the directory
    write_model_config(plain, out, directory_);
    ModelConfig back = read_model_config(out);
    EXPECT_EQ(back.windows, plain.windows);
    EXPECT_TRUE(back.rope == plain.rope);
  }
}

Json gemma3(Json json) {
  json["model_type"] = "gemma3_text";
  json["architectures"] = {"Gemma3ForCausalLM"};
  json["num_hidden_layers"] = 3;
  json["head_dim"] = 24;
  json["sliding_window"] = 7;
  json["sliding_window_pattern"] = 2;
  return json;
}

TEST_F(Config, gemma3_has_two_rotations_and_a_pattern_of_windows) {
  using Windows = std::vector<int64_t>;
  Json json = gemma3(good());
  json["rope_local_base_freq"] = 500;
  json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  json["query_pre_attn_scalar"] = 20;
  const ModelConfig c = read(json);
  EXPECT_EQ(c.windows, (Windows{7, 0, 7}));
  EXPECT_TRUE(c.rotates_locally(0));
  EXPECT_FALSE(c.rotates_locally(1));
  EXPECT_EQ(c.local_rope.theta, 500);
  EXPECT_EQ(c.local_rope.kind, RopeKind::plain);
  EXPECT_EQ(c.rope.theta, 1e6);
  EXPECT_EQ(c.rope.kind, RopeKind::linear);
  EXPECT_EQ(c.query_pre_attn_scalar, 20);
  Json uneven = json;
  uneven["layer_types"] = {"full_attention", "sliding_attention", "sliding_attention"};
  EXPECT_EQ(read(uneven).windows, (Windows{0, 7, 7})) << "whatever sliding_window_pattern says";
  int number = 0;
  for (const Json& of : {json, uneven, gemma3(good())})
    for (bool like : {false, true}) {
      const ModelConfig before = read(of);
      const std::string out = directory_ + "/gemma" + std::to_string(number++);
      std::filesystem::create_directories(out);
      write_model_config(before, out, like ? directory_ : "");
      const ModelConfig back = read_model_config(out);
      EXPECT_EQ(back.windows, before.windows) << of;
      EXPECT_TRUE(back.rope == before.rope) << of;
      EXPECT_TRUE(back.local_rope == before.local_rope) << of;
      EXPECT_EQ(back.query_pre_attn_scalar, before.query_pre_attn_scalar) << of;
      const Json written = read_json(out + "/config.json", 1 << 20);
      EXPECT_EQ(written.contains("sliding_window_pattern"), of != uneven) << of;
      EXPECT_TRUE(written["query_pre_attn_scalar"].is_number_integer()) << "transformers takes no 256.0";
    }
}

Json of_family(Json json, const char* model_type) {
  json["model_type"] = model_type;
  json["architectures"] = {find_family(model_type)->architecture};
  json["num_hidden_layers"] = 3;
  return json;
}

TEST_F(Config, keys_of_smollm3_granite_and_olmo3_are_read_refused_by_name_and_written_back) {
  Json smol = of_family(good(), "smollm3");
  smol["no_rope_layers"] = {1, 0, 1, 0};  // "at least" as many as layers
  EXPECT_EQ(read(smol).unrotated, (std::vector<bool>{false, true, false}));
  smol["use_sliding_window"] = true;
  smol["sliding_window"] = 7;
  const ModelConfig slides = read(smol);
  EXPECT_EQ(slides.windows, (std::vector<int64_t>{0, 7, 0})) << "those that do not rotate";
  Json granite = of_family(good(), "granite");
  EXPECT_EQ(read(granite).attention_multiplier, 1) << "not by the width of a head";
  granite["attention_multiplier"] = 0.25;
  granite["logits_scaling"] = 8;
  granite["residual_multiplier"] = 0.5;
  granite["embedding_multiplier"] = 12;
  Json olmo = of_family(good(), "olmo3");
  olmo["sliding_window"] = 5;
  olmo["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 8.0}, {"original_max_position_embeddings", 512}};
  const ModelConfig two = read(olmo);
  EXPECT_EQ(two.windows, (std::vector<int64_t>{5, 5, 5})) << "all but every fourth";
  EXPECT_EQ(two.rope.kind, RopeKind::yarn);
  EXPECT_EQ(two.local_rope.kind, RopeKind::plain);
  EXPECT_EQ(two.local_rope.theta, 1e6);
  int number = 0;
  for (const Json& json : {smol, granite, olmo}) {
    const ModelConfig c = read(json);
    const std::string out = directory_ + "/again" + std::to_string(number++);
    std::filesystem::create_directories(out);
    write_model_config(c, out);
    const ModelConfig back = read_model_config(out);
    EXPECT_EQ(back.unrotated, c.unrotated);
    EXPECT_EQ(back.windows, c.windows);
    EXPECT_TRUE(back.rope == c.rope && back.local_rope == c.local_rope) << json;
    EXPECT_EQ(back.attention_multiplier, c.attention_multiplier);
    EXPECT_EQ(back.embedding_multiplier * back.logits_scaling * back.residual_multiplier,
              c.embedding_multiplier * c.logits_scaling * c.residual_multiplier);
    EXPECT_EQ(back.rms_norm_eps, c.rms_norm_eps);
  }
  for (const auto& [json, key, value] :
       {std::tuple(smol, "no_rope_layers", Json{1, 0}), std::tuple(smol, "no_rope_layers", Json{1, 2, 1}),
        std::tuple(granite, "logits_scaling", Json(0)), std::tuple(granite, "residual_multiplier", Json("half"))}) {
    Json bad = json;
    bad[key] = value;
    try {
      read(bad);
      ADD_FAILURE() << key << " = " << value << " was read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
    }
  }
}

TEST_F(Config, what_gemma3_can_say_and_does_not_run_is_refused_by_name) {
  const std::pair<const char*, Json> refused[] = {{"attn_logit_softcapping", 50.0},
                                                  {"final_logit_softcapping", 30.0},
                                                  {"use_bidirectional_attention", true},
                                                  {"hidden_activation", "gelu"},
                                                  {"hidden_act", "silu"},
                                                  {"sliding_window", nullptr},
                                                  {"sliding_window_pattern", 0},
                                                  {"query_pre_attn_scalar", 0},
                                                  {"rope_local_base_freq", -1.0},
                                                  {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e6}}},
                                                  {"rope_parameters", {{"full_attention", {{"rope_theta", 7.0}}}}},
                                                  {"attention_bias", true}};
  for (const auto& [key, value] : refused) {
    Json json = gemma3(good());
    json[key] = value;
    EXPECT_NE(refusal(json).find(key == std::string("rope_parameters") ? "rope_" : key), std::string::npos)
        << key << " = " << value << ": " << refusal(json);
  }
  Json open = gemma3(good());
  open["attn_logit_softcapping"] = nullptr;
  open["final_logit_softcapping"] = nullptr;
  open["use_bidirectional_attention"] = false;
  EXPECT_EQ(refusal(open), "");
}

TEST_F(Config, published_files_and_those_with_the_least_are_read_as_transformers_reads_them) {
  for (const Json& row : read_json(std::string(UCAS_SOURCE_DIR) + "/tests/goldens/model/configs.json", 1 << 20)) {
    const Json& want = row["expected"];
    ModelConfig c = read(row["config"]);
    EXPECT_EQ(c.num_key_value_heads, want["num_key_value_heads"]) << row["name"];
    EXPECT_EQ(c.head_dim, want["head_dim"]) << row["name"];
    EXPECT_EQ(c.max_position_embeddings, want["max_position_embeddings"]) << row["name"];
    EXPECT_EQ(c.rms_norm_eps, want["rms_norm_eps"]) << row["name"];
    EXPECT_EQ(c.tie_word_embeddings, want["tie_word_embeddings"]) << row["name"];
    if (want.contains("query_pre_attn_scalar")) {
      EXPECT_EQ(c.query_pre_attn_scalar, want["query_pre_attn_scalar"]) << row["name"];
      EXPECT_EQ(c.eos_token_id, want["eos_token_id"].get<std::vector<int32_t>>()) << row["name"];
      EXPECT_EQ(c.bos_token_id, want["bos_token_id"]) << row["name"];
      EXPECT_EQ(c.pad_token_id, want["pad_token_id"]) << row["name"];
    }
    if (want.contains("logits_scaling")) {
      EXPECT_EQ(c.embedding_multiplier, want["embedding_multiplier"]) << row["name"];
      EXPECT_EQ(c.attention_multiplier, want["attention_multiplier"]) << row["name"];
      EXPECT_EQ(c.residual_multiplier, want["residual_multiplier"]) << row["name"];
      EXPECT_EQ(c.logits_scaling, want["logits_scaling"]) << row["name"];
    }
    for (size_t layer = 0; layer < want["windows"].size(); ++layer)
      EXPECT_EQ(c.window(layer), want["windows"][layer]) << row["name"] << ", layer " << layer;
  }
}

TEST_F(Config, rotations_that_make_no_sense_or_contradict_each_other_are_refused) {
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}};
  const Json llama3 = {{"rope_type", "llama3"}, {"factor", 8.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}};
  auto with = [](Json rope, const char* key, const Json& value) {
    rope[key] = value;
    return rope;
  };
  for (const Json& rope :
       {with(yarn, "factor", nullptr), with(yarn, "factor", 0.5), with(yarn, "factor", "4"), with(yarn, "factor", true),
        with(yarn, "type", "linear"), with(yarn, "rope_type", 7), with(yarn, "beta_fast", 0.5),
        with(yarn, "beta_slow", 0), with(yarn, "truncate", "no"), with(yarn, "mscale", -1),
        with(yarn, "attention_factor", 0), with(yarn, "original_max_position_embeddings", 0),
        with(yarn, "rope_theta", 1e4), with(llama3, "factor", 0), with(llama3, "low_freq_factor", nullptr),
        with(llama3, "high_freq_factor", 1.0), Json("yarn"), Json::array({1})})
    expect_refused("rope_scaling", rope, "config");
  for (const Json& rope :
       {with(yarn, "rope_type", "longrope"), with(yarn, "rope_type", "proportional"),
        with(yarn, "mrope_section", {1, 2}), with(yarn, "attn_factor", 0.9), with(yarn, "low_freq_factor", 1.0),
        with(llama3, "beta_fast", 32), with(yarn, "partial_rotary_factor", 0.5), Json({{"factor", 2.0}}),
        Json({{"full_attention", yarn}, {"sliding_attention", yarn}}),
        Json({{"rope_type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 128}})})
    expect_refused("rope_scaling", rope, "unsupported");
  Json both = good();
  both["rope_scaling"] = yarn;
  both["rope_parameters"] = with(yarn, "rope_theta", 1e6);
  EXPECT_NO_THROW(read(both));
  both["rope_parameters"]["factor"] = 2.0;
  EXPECT_NE(refusal(both).find("rope_parameters"), std::string::npos);
  Json outer = good();
  outer["rope_scaling"] = yarn;
  outer["original_max_position_embeddings"] = 64;
  EXPECT_NE(refusal(outer).find("original_max_position_embeddings = 64"), std::string::npos);
  Json flat = good();
  flat["rope_scaling"] = yarn;
  flat["rope_theta"] = 1.0;
  EXPECT_NE(refusal(flat).find("rope_theta"), std::string::npos) << "its logarithm is divided by";
  Json narrow = good();
  narrow["head_dim"] = 2;
  narrow["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
  EXPECT_NE(refusal(narrow).find("dynamic"), std::string::npos);
}

TEST_F(Config, zero_negative_huge_wrong_or_contradicting_values_are_refused) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"})
    for (const Json& value : {Json(0), Json(-1), Json(1e30), Json(int64_t{1} << 62), Json("7"), Json(2.5), Json(true),
                              Json(18446744073709551615u), Json::array(), Json(nullptr)})
      expect_refused(key, value, "config");
  for (const char* key : {"rms_norm_eps", "rope_theta", "hidden_act", "max_position_embeddings", "use_sliding_window",
                          "tie_word_embeddings", "model_type"})
    expect_refused(key, nullptr, "config");
  // Also where no window is in use.
  for (const Json& window : {Json(-3), Json(0), Json("wide"), Json(1.5)})
    expect_refused("sliding_window", window, "config");
  expect_refused("max_window_layers", -1, "config");
  for (const Json& types : {Json("full_attention"), Json({"full_attention"}), Json({"full_attention", 7}),
                            Json({"full_attention", "linear_attention"})})
    expect_refused("layer_types", types, "config");
  expect_refused("num_key_value_heads", 3, "config");
  expect_refused("num_attention_heads", 6, "config");
  expect_refused("rms_norm_eps", 0, "config");
  expect_refused("rope_theta", -1.0, "config");
  expect_refused("tie_word_embeddings", 1, "config");
  expect_refused("eos_token_id", 100, "config");
  expect_refused("eos_token_id", Json::array({1, -2}), "config");
  Json nameless = good();
  nameless.erase("model_type");
  EXPECT_THROW(read(nameless), Error) << "architectures alone do not say it";
  for (const char* key : {"sliding_window", "head_dim", "num_key_value_heads", "bos_token_id", "layer_types"}) {
    Json json = good();
    json[key] = nullptr;
    EXPECT_NO_THROW(read(json)) << key << ": transformers writes null for none";
  }
  Json odd = good();
  odd["head_dim"] = 7;
  EXPECT_THROW(read(odd), Error);
}

TEST_F(Config, is_written_so_that_it_reads_back_and_keeps_what_it_does_not_know) {
  Json json = good();
  json["initializer_range"] = 0.02;
  ModelConfig c = read(json);
  c.eos_token_id = {99, 5};
  c.pad_token_id = 1;
  std::string out = directory_ + "/out";
  std::filesystem::create_directories(out);
  write_model_config(c, out, directory_);
  ModelConfig back = read_model_config(out);
  EXPECT_EQ(back.eos_token_id, c.eos_token_id);
  EXPECT_EQ(back.pad_token_id, 1);
  EXPECT_EQ(back.bos_token_id, -1);
  EXPECT_EQ(back.rope.theta, c.rope.theta);
  EXPECT_EQ(back.torch_dtype, "bfloat16");
  Json written = read_json(out + "/config.json", 1 << 20);
  EXPECT_EQ(written["initializer_range"], 0.02);
  EXPECT_EQ(written["rope_parameters"]["rope_theta"], 1e6);
  EXPECT_EQ(written["dtype"], written["torch_dtype"]);
}

TEST_F(Config, stop_tokens_of_config_and_generation_config_are_joined) {
  std::ofstream(directory_ + "/generation_config.json") << R"({"eos_token_id":[98,99],"pad_token_id":3})";
  ModelConfig c = read(good());
  EXPECT_EQ(c.eos_token_id, (std::vector<int32_t>{99, 98}));
  EXPECT_EQ(c.pad_token_id, 3);
}

}  // namespace
}  // namespace ucas
