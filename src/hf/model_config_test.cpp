#include "hf/model_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
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
  void expect_refused(const char* key, const Json& value, const std::string& kind) const {
    Json json = good();
    json[key] = value;
    try {
      read(json);
      ADD_FAILURE() << "accepted " << key << " = " << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
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
  EXPECT_EQ(c.rope_theta, 1e6);
  EXPECT_EQ(c.torch_dtype, "bfloat16");
  EXPECT_EQ(c.eos_token_id, std::vector<int32_t>{99});
  EXPECT_EQ(c.parameter_count(), 100 * 64 + 64 + 2 * (128 * 65 + 64 * 64 + 3 * 96 * 64 + 2 * 64));
  Json newer = good();
  for (const char* key : {"rope_theta", "torch_dtype"}) newer.erase(key);
  newer["dtype"] = "float16";
  newer["rope_parameters"] = {{"rope_theta", 5e5}, {"rope_type", "default"}};
  newer["rope_scaling"] = nullptr;
  c = read(newer);
  EXPECT_EQ(c.rope_theta, 5e5);
  EXPECT_EQ(c.torch_dtype, "float16");
}

TEST_F(Config, what_is_not_supported_is_refused_by_name) {
  expect_refused("model_type", "mistral", "unsupported");
  expect_refused("architectures", Json::array({"LlamaForCausalLM"}), "unsupported");
  expect_refused("rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}, "unsupported");
  expect_refused("rope_scaling", {{"type", "linear"}, {"factor", 2.0}}, "unsupported");
  expect_refused("rope_parameters", {{"rope_type", "dynamic"}, {"rope_theta", 1e6}}, "unsupported");
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
    json["architectures"] = {"MistralForCausalLM"};
    EXPECT_THROW(read(json), Error) << family.title << " of another architecture";
    if (family.qkv_bias) continue;
    json["architectures"] = {family.architecture};
    json["attention_bias"] = true;
    EXPECT_THROW(read(json), Error) << family.title << " with a bias";
  }
}

TEST_F(Config, a_sliding_window_is_refused_only_where_it_could_be_left) {
  Json json = good();
  json["use_sliding_window"] = true;
  json["sliding_window"] = 512;
  EXPECT_NO_THROW(read(json)) << "as long as the longest context";
  json["sliding_window"] = 128;
  json["max_window_layers"] = 2;
  EXPECT_NO_THROW(read(json)) << "no layer uses it";
  json["max_window_layers"] = 1;
  EXPECT_THROW(read(json), Error);
  json["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_NO_THROW(read(json));
  json["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_THROW(read(json), Error);
  json["use_sliding_window"] = false;
  EXPECT_NO_THROW(read(json));
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
  EXPECT_EQ(back.rope_theta, c.rope_theta);
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
