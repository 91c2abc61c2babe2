#include "cli/options/train_options.h"

#include "base/error.h"
#include "base/str.h"

namespace ucas {

void expand_short_forms(std::vector<Setting>& settings) {
  for (Setting& setting : settings) {
    if (setting.key == "data") setting.key = "data.files";
    if (setting.key == "val") setting.key = "data.val_files";
    if (setting.key == "method") setting.key = "method.name";
    if (setting.key == "preset") setting.key = "method.preset";
    if (setting.key == "bad_rows" || setting.key == "bad-rows") {
      const auto* word = std::get_if<std::string>(&setting.value);
      if (word == nullptr || (*word != "stop" && *word != "skip")) {
        throw Error(ErrorKind::config,
                    str(setting.where, word != nullptr ? " " + printable(*word, 100) : "", ": expected stop or skip"));
      }
      setting.key = "data.skip_bad_rows";
      setting.value = *word == "skip";
    }
    if (setting.key == "max-hours") setting.key = "train.max_hours";
  }
}

std::string take_option(std::vector<Setting>& settings, const std::string& key) {
  std::string value;
  std::erase_if(settings, [&](const Setting& s) {
    if (s.key != key) return false;
    if (s.no_value) throw Error(ErrorKind::usage, str(s.where, ": a value is missing after it"));
    value = std::get<std::string>(s.value);
    return true;
  });
  return value;
}

void ModelShape::fields(Fields& f) {
  f.field("hidden_size", hidden_size, Range{1, 65536}, "hidden size D");
  f.field("num_hidden_layers", num_hidden_layers, Range{1, 1024}, "number of layers L");
  f.field("num_attention_heads", num_attention_heads, Range{1, 1024}, "number of query heads");
  f.field("num_key_value_heads", num_key_value_heads, Range{1, 1024}, "number of key and value heads");
  f.field("intermediate_size", intermediate_size, Range{1, 1e6}, "hidden size of the MLP");
  f.field("max_position_embeddings", max_position_embeddings, Range{1, 1e7}, "maximum sequence length in tokens");
  f.field("rope_theta", rope.theta, Range{1, 1e9}, "base theta of the rotary embedding");
  f.field("rms_norm_eps", rms_norm_eps, Range{1e-12, 1}, "epsilon under the root of RMSNorm");
  f.field("tie_word_embeddings", tie_word_embeddings, "use the embedding matrix as the LM head");
}

void SftOptions::fields(Fields& f) {
  f.field("model", model, OptionNames::checkpoint, "Hugging Face checkpoint to start from");
  f.field("init", init,
          "model family to initialize with random weights instead of --model: qwen2, qwen3, llama, mistral or "
          "gemma3_text; model.* sets the shape");
  f.field("tokenizer", tokenizer, OptionNames::tokenizer,
          "directory with tokenizer.json; empty = the model's directory");
  f.field("out", out, "directory to create; must not exist");
  f.field("device", device, "device to train on: cpu, cuda or cuda:N");
  f.choice("dtype", dtype, kDtypeHelp);
  f.choice("recompute", recompute,
           "activation recomputation in the backward pass: none, a block except attention, or a whole block; less "
           "memory, bit-identical");
  f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores");
  sft.fields(f);
  f.section("lora", lora);
  f.section("model", shape);
}

ModelOptions SftOptions::model_options() const {
  return {.dtype = dtype, .recompute = recompute, .lora = lora, .seed = static_cast<uint64_t>(sft.seed)};
}

void SftOptions::validate() const {
  if (model.empty() == init.empty())
    throw Error(ErrorKind::config, str("give either --model DIR or --init FAMILY, one of ", family_names()));
  if (!init.empty() && find_family(init) == nullptr) {
    throw Error(ErrorKind::config, str("--init ", printable(init), ": expected one of ", family_names()));
  }
  if (!init.empty() && tokenizer.empty()) {
    throw Error(ErrorKind::config, "--init needs --tokenizer DIR: its vocabulary is the model's");
  }
  if (!init.empty() && lora.on()) {
    throw Error(ErrorKind::config,
                "lora.rank with --init: an adapter needs trained weights under it; give --model DIR");
  }
  if (out.empty()) throw Error(ErrorKind::config, "--out DIR is missing: where the trained checkpoint goes");
  if (!init.empty() && (shape.hidden_size % shape.num_attention_heads != 0 ||
                        shape.num_attention_heads % shape.num_key_value_heads != 0 ||
                        shape.hidden_size / shape.num_attention_heads % 2 != 0)) {
    throw Error(ErrorKind::config,
                str("model.hidden_size = ", shape.hidden_size, ", num_attention_heads = ", shape.num_attention_heads,
                    ", num_key_value_heads = ", shape.num_key_value_heads,
                    ": heads must divide hidden_size into an even width, key/value heads must divide heads"));
  }
  sft.validate();
}

}  // namespace ucas
