#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "hf/safetensors.h"
#include "model/model.h"
#include "model/weights.h"

namespace ucas {
namespace {

namespace fs = std::filesystem;

// A copy of a golden checkpoint, to be damaged.
class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("ucas-checkpoint-" + std::to_string(getpid()));
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void restore(const char* name) {
    fs::remove_all(directory_);
    fs::copy(fs::path(UCAS_SOURCE_DIR) / "tests/goldens/model" / name, directory_);
  }
  void set_config(const char* key, const Json& value) {
    std::string path = (directory_ / "config.json").string();
    Json json = read_json(path, 1 << 20);
    json[key] = value;
    std::ofstream(path) << json.dump();
  }
  // Another number of layers than there are: as many full ones.
  void set_layers(int64_t count) {
    set_config("num_hidden_layers", count);
    set_config("layer_types", std::vector<std::string>(static_cast<size_t>(count), "full_attention"));
  }
  void expect_refused(const std::string& kind, const std::string& part) {
    try {
      load_model(directory_.string(), at::kCPU);
      ADD_FAILURE() << "loaded; expected " << kind;
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  fs::path directory_;
};

TEST_F(Checkpoint, tensors_that_contradict_the_config_are_named) {
  restore("mha_untied");
  set_config("intermediate_size", 39);
  expect_refused("config", "mlp.gate_proj.weight");
  restore("mha_untied");
  set_config("vocab_size", 49);
  expect_refused("config", "embed_tokens.weight");
  restore("mha_untied");
  set_layers(2);
  expect_refused("config", "num_hidden_layers = 2, the files hold tensors of 1 layers");
  restore("gqa_tied");
  set_layers(1);
  expect_refused("config", "num_hidden_layers = 1, the files hold tensors of 2 layers");
  restore("mha_untied");
  set_config("tie_word_embeddings", true);
  expect_refused("config", "lm_head.weight differs");
  restore("gqa_tied");
  set_config("hidden_size", 65536);
  expect_refused("config", "embed_tokens.weight");  // before anything of that size is allocated
  set_layers(1000);
  expect_refused("config", "num_hidden_layers = 1000");
}

TEST_F(Checkpoint, missing_and_truncated_files_are_named) {
  restore("sharded");
  fs::remove(directory_ / "model-00002-of-00009.safetensors");
  expect_refused("path", "model-00002-of-00009.safetensors");
  restore("gqa_tied");
  fs::resize_file(directory_ / "model.safetensors", fs::file_size(directory_ / "model.safetensors") - 1);
  expect_refused("truncated", "model.safetensors");
  restore("gqa_tied");
  fs::remove(directory_ / "model.safetensors");
  expect_refused("path", "no model.safetensors");
  std::ofstream(directory_ / "pytorch_model.bin") << "x";
  expect_refused("unsupported", "pytorch_model.bin");
  restore("gqa_tied");
  fs::remove(directory_ / "config.json");
  expect_refused("path", "config.json");
}

TEST_F(Checkpoint, initial_weights_depend_on_the_seed_alone) {
  ModelConfig config;
  auto a = make_model(config, 5, at::kCPU), b = make_model(config, 5, at::kCPU),
       other = make_model(config, 6, at::kCPU);
  auto pa = a->parameters(), pb = b->parameters(), po = other->parameters();
  int64_t count = 0;
  for (size_t i = 0; i < pa.size(); ++i) {
    EXPECT_TRUE(pa[i].tensor.equal(pb[i].tensor)) << pa[i].name;
    EXPECT_TRUE(pa[i].tensor.is_leaf() && pa[i].tensor.requires_grad()) << pa[i].name;
    count += pa[i].tensor.numel();
  }
  EXPECT_FALSE(pa[0].tensor.equal(po[0].tensor));
  EXPECT_EQ(count, config.parameter_count());
  EXPECT_NEAR(pa[0].tensor.std().item<double>(), 0.02, 0.001);
}

TEST_F(Checkpoint, a_weight_that_is_not_finite_is_named_with_its_file) {
  restore("gqa_tied");
  const std::string file = (directory_ / "model.safetensors").string();
  for (const StoredTensor& t : read_safetensors_header(file)) {
    if (t.name != "model.layers.1.mlp.up_proj.weight") continue;
    ASSERT_EQ(t.type, StoredType::f32);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(t.offset + 4 * 7);
    bytes.write(reinterpret_cast<const char*>(&nan), 4);
  }
  expect_refused("numeric", file + ": tensor model.layers.1.mlp.up_proj.weight: value 7 of ");
}

// A file of a tebibyte that is right in itself, and sparse: nothing may be allocated for it.
TEST_F(Checkpoint, more_weights_than_memory_are_refused_before_they_are_read) {
  fs::create_directories(directory_);
  ModelConfig config;
  config.vocab_size = int64_t{1} << 24;
  config.hidden_size = 32768;
  config.num_attention_heads = config.num_key_value_heads = 1;
  config.head_dim = 2;
  config.num_hidden_layers = 1;
  config.intermediate_size = 2;
  write_model_config(config, directory_.string());
  OrderedJson header;
  int64_t at = 0;
  for (const NamedTensor& p : allocate_weights(config, at::Device(at::kMeta)).parameters) {
    header[p.name] = {
        {"dtype", "BF16"}, {"shape", p.tensor.sizes().vec()}, {"data_offsets", {at, at + 2 * p.tensor.numel()}}};
    at += 2 * p.tensor.numel();
  }
  const std::string text = header.dump(), file = (directory_ / "model.safetensors").string();
  const uint64_t length = text.size();
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(&length), 8)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
  fs::resize_file(file, 8 + length + static_cast<uint64_t>(at));
  expect_refused("limit", "this machine has");
}

TEST_F(Checkpoint, tokenizer_files_travel_along) {
  restore("gqa_tied");
  std::ofstream(directory_ / "tokenizer.json") << "{\"as\":\"it is\"}";
  auto model = load_model(directory_.string(), at::kCPU);
  fs::create_directories(directory_ / "out");
  save_model(*model, (directory_ / "out").string(), directory_.string());
  EXPECT_EQ(read_file((directory_ / "out/tokenizer.json").string()), "{\"as\":\"it is\"}");
}

}  // namespace
}  // namespace ucas
