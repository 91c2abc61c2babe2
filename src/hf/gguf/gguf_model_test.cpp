#include "hf/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/hash.h"
#include "base/str.h"
#include "base/text/json.h"
#include "hf/parameters.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

const std::string kGgufGoldens = std::string(UCAS_SOURCE_DIR) + "/tests/goldens/gguf/";

std::vector<float> all_values(const TensorToStore& tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  tensor.pieces(0, count, values.data());
  return values;
}

std::string sha256_of(const std::vector<float>& values) {
  return sha256_of_text(std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * 4));
}

class GgufGolden : public ::testing::TestWithParam<const char*> {};

// tools/make_gguf_goldens.py: gguf-py wrote the file, transformers read it.
TEST_P(GgufGolden, config_and_every_weight_are_those_that_transformers_loads) {
  const std::string name = GetParam();
  const Json golden = parse_json(read_file(kGgufGoldens + name + ".json"), name);
  const GgufFile file(kGgufGoldens + name + ".gguf");
  const ModelConfig config = gguf_model_config(file, "float32");
  const Json& expected = golden["config"];
  EXPECT_EQ(config.family->model_type, expected["model_type"].get<std::string>());
  const std::pair<const char*, int64_t> sizes[] = {{"hidden_size", config.hidden_size},
                                                   {"num_hidden_layers", config.num_hidden_layers},
                                                   {"num_attention_heads", config.num_attention_heads},
                                                   {"num_key_value_heads", config.num_key_value_heads},
                                                   {"intermediate_size", config.intermediate_size},
                                                   {"vocab_size", config.vocab_size},
                                                   {"max_position_embeddings", config.max_position_embeddings},
                                                   {"bos_token_id", config.bos_token_id},
                                                   {"pad_token_id", config.pad_token_id},
                                                   {"eos_token_id", config.eos_token_id.at(0)}};
  for (const auto& [key, value] : sizes) EXPECT_EQ(value, expected[key].get<int64_t>()) << key;
  EXPECT_EQ(config.tie_word_embeddings, expected["tie_word_embeddings"].get<bool>());
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.rope.theta, 100'000);
  const std::vector<TensorToStore> weights = gguf_weights(file, config);
  EXPECT_EQ(weights.size(), golden["tensors"].size());
  for (const TensorToStore& tensor : weights) {
    ASSERT_TRUE(golden["tensors"].contains(tensor.name)) << tensor.name;
    EXPECT_EQ(tensor.shape, golden["tensors"][tensor.name]["shape"].get<std::vector<int64_t>>()) << tensor.name;
    EXPECT_EQ(sha256_of(all_values(tensor)), golden["tensors"][tensor.name]["sha256"].get<std::string>())
        << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(goldens, GgufGolden, ::testing::Values("llama", "qwen2", "qwen3", "gemma3"));

TEST(gguf_model, a_gemma3_says_its_windows_and_local_rotation_and_llama_cpp_knows_the_rest) {
  const ModelConfig c = gguf_model_config(GgufFile(kGgufGoldens + "gemma3.gguf"), "float32");
  EXPECT_EQ(c.windows, (std::vector<int64_t>{6, 6, 6, 6, 6, 0, 6}));
  EXPECT_EQ(c.local_rope.theta, 500);
  EXPECT_EQ(c.query_pre_attn_scalar, 32) << "the head width";
}

TEST(gguf_model, a_checkpoint_written_in_pieces_holds_the_values_of_the_file) {
  const testing::TemporaryDirectory folder;
  const GgufFile file(kGgufGoldens + "llama.gguf");
  for (const std::string dtype : {"float32", "bfloat16"}) {
    const ModelConfig config = gguf_model_config(file, dtype);
    const std::vector<TensorToStore> weights = gguf_weights(file, config);
    write_weights(folder.path(), weights, dtype, 60'000);  // several shards
    const StoredByName stored = stored_by_name(list_weights(folder.path()), folder.path());
    ASSERT_EQ(stored.size(), weights.size());
    for (const TensorToStore& tensor : weights) {
      const StoredTensor& read = stored.at(tensor.name);
      std::vector<float> expected = all_values(tensor), values(expected.size());
      if (dtype == "bfloat16") {
        for (float& x : expected) {
          const uint32_t bits = static_cast<uint32_t>(bf16_of_f32(x)) << 16;
          std::memcpy(&x, &bits, 4);
        }
      }
      read_as_f32(read, values.data());
      EXPECT_EQ(values, expected) << tensor.name << " in " << dtype;
    }
    std::filesystem::remove_all(folder.path());
    std::filesystem::create_directories(folder.path());
  }
}

// Any piece is the same as that part of the whole, also where it begins within a row that is stored elsewhere.
TEST(gguf_model, pieces_of_interleaved_rows_are_parts_of_the_whole) {
  const GgufFile file(kGgufGoldens + "llama.gguf");
  const ModelConfig config = gguf_model_config(file, "float32");
  for (const TensorToStore& tensor : gguf_weights(file, config)) {
    if (!tensor.name.ends_with("k_proj.weight")) continue;
    const std::vector<float> whole = all_values(tensor);
    const auto count = static_cast<int64_t>(whole.size());
    for (int64_t first : {int64_t{0}, int64_t{32}, int64_t{96}, count - 160}) {
      std::vector<float> piece(160);
      tensor.pieces(first, 160, piece.data());
      EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + first)) << tensor.name << " from " << first;
    }
  }
}

template <class T>
std::string bytes_of_value(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// A llama of one layer and no weights but what is asked of here: the embedding, and the factors of its rotation.
class LlamaWithFactors : public ::testing::Test {
 protected:
  ModelConfig read(const std::vector<float>& factors) const {
    std::string text;
    const auto put = [&](std::string_view s) { text += bytes_of_value(uint64_t{s.size()}) + std::string(s); };
    text = "GGUF" + bytes_of_value(uint32_t{3}) + bytes_of_value(uint64_t{2}) + bytes_of_value(uint64_t{8});
    put("general.architecture");
    text += bytes_of_value(uint32_t{8});
    put("llama");
    const std::pair<const char*, uint32_t> sizes[] = {{"llama.block_count", 1},
                                                      {"llama.embedding_length", 128},
                                                      {"llama.context_length", 64},
                                                      {"llama.feed_forward_length", 32},
                                                      {"llama.attention.head_count", 2}};
    for (const auto& [key, value] : sizes) {
      put(key);
      text += bytes_of_value(uint32_t{4}) + bytes_of_value(value);
    }
    const std::pair<const char*, float> numbers[] = {{"llama.attention.layer_norm_rms_epsilon", 1e-5f},
                                                     {"llama.rope.freq_base", 500'000}};
    for (const auto& [key, value] : numbers) {
      put(key);
      text += bytes_of_value(uint32_t{6}) + bytes_of_value(value);
    }
    put("rope_freqs.weight");
    text += bytes_of_value(uint32_t{1}) + bytes_of_value(uint64_t{factors.size()}) + bytes_of_value(uint32_t{0}) +
            bytes_of_value(uint64_t{0});
    put("token_embd.weight");
    const uint64_t after = (factors.size() * 4 + 31) / 32 * 32;
    text += bytes_of_value(uint32_t{2}) + bytes_of_value(uint64_t{128}) + bytes_of_value(uint64_t{4}) +
            bytes_of_value(uint32_t{0}) + bytes_of_value(after);
    text.resize((text.size() + 31) / 32 * 32, '\0');
    const size_t data = text.size();
    for (float x : factors) text += bytes_of_value(x);
    text.resize(data + after + 2048, '\0');
    const std::string path = folder_.path() + "/x.gguf";
    std::ofstream(path, std::ios::binary) << text;
    return gguf_model_config(GgufFile(path), "float32");
  }
  // As convert_hf_to_gguf.py computes them, of Llama 3.1 (factor 8) and 3.2 (32).
  static std::vector<float> published(double factor) {
    std::vector<float> factors;
    for (int i = 0; i < 32; ++i) {
      const double frequency = 1 / std::pow(500'000.0, 2.0 * i / 64), length = 2 * std::numbers::pi / frequency;
      const double smooth = (8192 / length - 1) / (4 - 1);
      factors.push_back(static_cast<float>(length < 8192.0 / 4   ? 1
                                           : length > 8192.0 / 1 ? factor
                                                                 : 1 / ((1 - smooth) / factor + smooth)));
    }
    return factors;
  }

  testing::TemporaryDirectory folder_;
};

TEST_F(LlamaWithFactors, the_factors_of_llama_3_become_its_settings_and_others_are_refused) {
  for (double factor : {8.0, 32.0}) {
    const RopeConfig rope = read(published(factor)).rope;
    EXPECT_EQ(rope.kind, RopeKind::llama3);
    EXPECT_EQ(rope.factor, factor);
    EXPECT_EQ(rope.original_max_position_embeddings, 8192);
    EXPECT_EQ(rope.low_freq_factor, 1);
    EXPECT_EQ(rope.high_freq_factor, 4);
    EXPECT_EQ(rope.theta, 500'000);
  }
  EXPECT_EQ(read(std::vector<float>(32, 1.0f)).rope.kind, RopeKind::plain);
  std::vector<float> other = published(8);
  other[20] *= 1.01f;
  for (const std::vector<float>& factors : {other, std::vector<float>(16, 1.0f)}) {
    try {
      read(factors);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "unsupported") << error.what();
    }
  }
}

}  // namespace
}  // namespace ucas
