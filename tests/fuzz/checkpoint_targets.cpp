// Weights, their index, configs, adapters, tokenizers: what stands in the directory of a checkpoint.
#include <filesystem>
#include <memory>

#include "base/str.h"
#include "fuzz/target.h"
#include "hf/parameters.h"
#include "hf/peft.h"
#include "hf/safetensors.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas::fuzz {

namespace {

constexpr int64_t kMostRead = int64_t{1} << 20;  // elements of a tensor

void read_all(const std::vector<StoredTensor>& tensors) {
  for (const StoredTensor& tensor : tensors) {
    if (tensor.elements() > kMostRead || tensor.type > StoredType::bf16) continue;
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    read_as_f32(tensor, values.data());
  }
}

void safetensors(std::string_view input) { read_all(read_safetensors_header(put("w.safetensors", input))); }

// The input is the header; 64 bytes of data follow.
void tensor_header(std::string_view input) {
  const uint64_t size = input.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  file += input;
  file.append(64, '\1');
  read_all(read_safetensors_header(put("w.safetensors", file)));
}

void index(std::string_view input) {
  static const bool once = [] {
    for (const char* name : {"one", "two"}) {
      const std::string shard = str(name, ".safetensors");
      std::filesystem::copy_file(support(shard), scratch() + "/" + shard);
    }
    return true;
  }();
  require(once, "shards");
  read_all(read_sharded_headers(put("model.safetensors.index.json", input)));
}

// A folder of its own with all of a checkpoint but one file.
std::string checkpoint_without(const std::string& file, const std::string& from = "checkpoint") {
  const std::string folder = str(scratch(), "/without-", file);
  std::filesystem::create_directories(folder);
  for (const auto& entry : std::filesystem::directory_iterator(support(from))) {
    const std::string name = entry.path().filename().string();
    if (name != file) std::filesystem::copy_file(entry.path(), folder + "/" + name);
  }
  return str("without-", file);
}

void check_checkpoint(const std::string& folder) {
  const ModelConfig config = read_model_config(folder);
  check_parameters(config, stored_by_name(list_weights(folder), folder), folder);
}

void config(std::string_view input) {
  static const std::string folder = checkpoint_without("config.json");
  put(folder + "/config.json", input);
  check_checkpoint(scratch() + "/" + folder);
}

void generation(std::string_view input) {
  static const std::string folder = checkpoint_without("generation_config.json");
  put(folder + "/generation_config.json", input);
  read_model_config(scratch() + "/" + folder);
}

void adapter(std::string_view input) {
  static const std::string folder = checkpoint_without(kAdapterConfig, "adapter");
  put(folder + "/" + kAdapterConfig, input);
  const std::string path = scratch() + "/" + folder;
  const PeftAdapter found = *find_adapter(path);
  check_adapter(found, read_model_config(support("checkpoint")),
                stored_by_name(read_safetensors_header(adapter_file(path)), path), path);
}

void there_and_back(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  for (int32_t id : ids) {
    require(id >= 0 && id < tokenizer.vocab_size(), "an id beyond the vocabulary");
    tokenizer.token_text(id);
  }
  tokenizer.decode(ids);
  tokenizer.encode_prompt(text, Tokenizer::Special::as_text);
  Tokenizer::Stream stream(tokenizer);
  for (int32_t id : ids) stream.push(id);
  stream.finish();
}

constexpr std::string_view kText =
    "The 3 cats<s> didn't\n\n  say \xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80 {\"a\": 1.5}  <|im_end|>\t! ";

void tokenizer(std::string_view input) {
  put("tokenizer.json", input);
  const Tokenizer tokenizer = Tokenizer::load(scratch());
  there_and_back(tokenizer, kText);
  there_and_back(tokenizer, std::string(3000, 'a'));
  tokenizer.eos_ids();
  tokenizer.pad_id();
}

void tokenizer_config(std::string_view input) {
  static const std::string folder = checkpoint_without("tokenizer_config.json");
  put(folder + "/tokenizer_config.json", input);
  Tokenizer::load(scratch() + "/" + folder).eos_ids();
}

// The input is a text, for tokenizers of every kind.
void encode(std::string_view input) {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> loaded;
    for (const auto& entry : std::filesystem::directory_iterator(support("tokenizers")))
      loaded.push_back(Tokenizer::load(entry.path().string()));
    require(loaded.size() > 5, "tokenizers");
    return loaded;
  }();
  for (const Tokenizer& tokenizer : all) there_and_back(tokenizer, input);
}

}  // namespace

std::vector<Target> checkpoint_targets() {
  return {{"safetensors", safetensors},
          {"tensor_header", tensor_header},
          {"index", index},
          {"config", config},
          {"generation", generation},
          {"adapter", adapter},
          {"tokenizer", tokenizer},
          {"tokenizer_config", tokenizer_config},
          {"encode", encode}};
}

}  // namespace ucas::fuzz
