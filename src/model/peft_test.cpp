// Adapters that peft saved, with the logits and gradients it computes (tools/make_model_goldens.py), and what is none
// that ucas runs.

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/str.h"
#include "hf/peft.h"
#include "model/stored.h"
#include "support/engine/emulation.h"
#include "support/engine/model_goldens.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

using testing::expect_near_f32;
using testing::golden;
using testing::logits_of;
using testing::most_apart;
using testing::read_all;
using testing::sequence_of;
using testing::TemporaryDirectory;

constexpr const char* kAdapters[] = {"lora_qv",  "lora_all",    "lora_rs",      "lora_saved", "lora_tied",
                                     "lora_one", "lora_gemma3", "lora_granite", "lora_olmo2"};

at::Tensor expected(const std::string& name, const char* what) {
  return read_all(golden(name) + "/expected.safetensors").at(what);
}

TEST(peft, logits_of_its_adapters_equal_its_own_on_both_paths_and_merging_changes_none) {
  c10::NoGradGuard no_grad;
  for (const char* name : kAdapters) {
    auto model = load_model(golden(name), at::kCPU);
    const at::Tensor want = expected(name, "logits");
    const Packed packed = sequence_of(golden(name));
    const double native = most_apart(logits_of(*model, packed, want), want);
    const double aten = most_apart(logits_of(*aten_view(*model), packed, want), want);
    const double base = most_apart(logits_of(*model->base(), packed, want), want);
    const at::Tensor before = logits_of(*model, packed, want), after = logits_of(*model->merged(), packed, want);
    const double merged = most_apart(after, before);
    const double theirs = most_apart(after, expected(name, "merged_logits"));
    std::printf("%-12s max |logit difference| %.1e, ATen %.1e; merged to unmerged %.1e, to peft's merged %.1e; ", name,
                native, aten, merged, theirs);
    std::printf("without the adapter %.2f\n", base);
    EXPECT_LE(native, 2e-4) << name;
    EXPECT_LE(aten, 2e-4) << name;
    EXPECT_LE(merged, 2e-5) << name;
    EXPECT_LE(theirs, 2e-4) << name;
    EXPECT_GT(base, 0.1) << name << ": the adapter matters";
  }
}

TEST(peft, logits_of_its_adapters_in_bf16_are_no_further_from_f32_than_its_own) {
  c10::NoGradGuard no_grad;
  for (const char* name : kAdapters) {
    auto model = load_model(golden(name), at::kCPU, inference(Dtype::bf16));
    // OLMo 2's norms come after the sums that an adapter changes: 3 % above peft's own on both paths.
    const double share = std::string(name) == "lora_olmo2" ? 1.05 : 1.0;
    expect_near_f32(*model, name, "native", share);
    expect_near_f32(*aten_view(*model), name, "ATen", 1.12);
  }
}

void expect_gradients_of_peft(Model& model, const std::string& name) {
  const Packed packed = sequence_of(golden(name));
  const auto rows = static_cast<int64_t>(packed.token.size()) - 1;
  const std::vector<int32_t> target(packed.token.begin() + 1, packed.token.end());
  (-model.head().stats(model.hidden(packed).narrow(0, 0, rows), target, 1.0).logprob.mean()).backward();
  auto want = read_all(golden(name) + "/expected.safetensors");
  std::erase_if(want, [](const auto& item) { return !item.first.starts_with("grad."); });
  double worst = 0;
  for (const NamedTensor& p : model.trainable()) {
    const bool whole = p.name.find(".lora_") == std::string::npos;
    const auto found = want.find("grad." + (whole ? kPeftPrefix + p.name : p.name));
    ASSERT_NE(found, want.end()) << name << " " << p.name;
    const double scale = found->second.abs().max().item<double>();
    const double off = most_apart(p.tensor.grad(), found->second) / scale;
    EXPECT_LE(off, 2e-4) << name << " " << p.name;
    worst = std::max(worst, off);
    p.tensor.mutable_grad().reset();
    want.erase(found);
  }
  EXPECT_TRUE(want.empty()) << name << ": peft trains " << (want.empty() ? "" : want.begin()->first);
  std::printf("%-12s largest gradient difference, relative to the tensor's largest: %.2e\n", name.c_str(), worst);
}

TEST(peft, the_same_parameters_are_trained_with_the_same_gradients_on_both_paths) {
  for (const char* name : kAdapters) {
    auto model = load_model(golden(name), at::kCPU);
    expect_gradients_of_peft(*model, name);
    expect_gradients_of_peft(*aten_view(*model), name);
  }
}

TEST(peft, what_is_saved_holds_the_same_tensors_and_loads_again_with_the_same_bits) {
  for (const char* name : kAdapters) {
    TemporaryDirectory scratch;
    auto model = load_model(golden(name), at::kCPU);
    save_model(*model, scratch.path());
    auto ours = read_all(adapter_file(scratch.path())), theirs = read_all(adapter_file(golden(name)));
    EXPECT_EQ(ours.size(), theirs.size()) << name;
    for (const auto& [key, tensor] : theirs) EXPECT_TRUE(ours.at(key).equal(tensor)) << name << " " << key;
    EXPECT_TRUE(load_model(scratch.path(), at::kCPU)->options().lora == model->options().lora) << name;
    const Json config = read_json(scratch.path() + "/adapter_config.json", 1 << 20);
    const Json before = read_json(golden(name) + "/adapter_config.json", 1 << 20);
    for (const char* key : {"peft_type", "task_type", "r", "bias", "ensure_weight_tying", "fan_in_fan_out"}) {
      EXPECT_EQ(config[key], before[key]) << name << " " << key;
    }
    EXPECT_TRUE(std::filesystem::equivalent(config["base_model_name_or_path"].get<std::string>(),
                                            golden(name) + "/" + before["base_model_name_or_path"].get<std::string>()));
  }
}

// A golden adapter in a directory of its own, to be changed.
class OwnAdapter {
 public:
  explicit OwnAdapter(const std::string& name) : directory_(scratch_.path() + "/adapter"), config_() {
    std::filesystem::create_directory(directory_);
    std::filesystem::copy(golden(name) + "/adapter_model.safetensors", directory_);
    config_ = read_json(golden(name) + "/adapter_config.json", 1 << 20);
    set("base_model_name_or_path", golden(name) + "/" + config_["base_model_name_or_path"].get<std::string>());
  }
  void set(const std::string& key, const Json& value) {
    config_[key] = value;
    write();
  }
  void remove(const std::string& key) {
    config_.erase(key);
    write();
  }
  void change_tensors(const std::function<void(std::map<std::string, at::Tensor>&)>& change) {
    auto tensors = read_all(adapter_file(directory_));
    change(tensors);
    std::vector<NamedTensor> list;
    for (const auto& [name, tensor] : tensors) list.push_back({name, tensor});
    write_safetensors(adapter_file(directory_), tensors_to_store(list));
  }
  const std::string& directory() const { return directory_; }
  // The message, one line; "" where it loads.
  std::string refusal(const ModelOptions& options = {}) const {
    try {
      load_model(directory_, at::kCPU, options);
      return "";
    } catch (const Error& error) {
      const std::string text = str(error.word(), ": ", error.what());
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      return text;
    }
  }

 private:
  void write() { write_file(directory_ + "/adapter_config.json", config_.dump()); }

  TemporaryDirectory scratch_;
  std::string directory_;
  Json config_;
};

void expect_says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks " << part;
}

TEST(peft, a_kind_of_adapter_that_is_not_run_is_refused_by_its_setting) {
  struct Row {
    const char* key;
    Json value;
    const char* kind;
  };
  const Row rows[] = {
      {"use_dora", true, "unsupported"},
      {"bias", "all", "unsupported"},
      {"bias", "lora_only", "unsupported"},
      {"lora_bias", true, "unsupported"},
      {"fan_in_fan_out", true, "unsupported"},
      {"rank_pattern", {{"q_proj", 8}}, "unsupported"},
      {"alpha_pattern", {{"q_proj", 8}}, "unsupported"},
      {"layers_to_transform", {0}, "unsupported"},
      {"layers_to_transform", 1, "unsupported"},
      {"exclude_modules", {"v_proj"}, "unsupported"},
      {"layer_replication", {{0, 2}, {1, 2}}, "unsupported"},
      {"kasa_config", {{"beta", 1e-4}}, "unsupported"},
      {"trainable_token_indices", {1, 2}, "unsupported"},
      {"init_lora_weights", "pissa_niter_4", "unsupported"},
      {"init_lora_weights", "olora", "unsupported"},
      {"peft_type", "IA3", "unsupported"},
      {"peft_type", nullptr, "unsupported"},
      {"r", 0, "config"},
      {"r", 2.5, "config"},
      {"r", "8", "config"},
      {"lora_alpha", -1, "config"},
      {"use_rslora", "yes", "config"},
      {"target_modules", {1}, "config"},
      {"target_modules", ".*\\.q_proj", "unsupported"},
      {"target_modules", nullptr, "config"},
      {"target_modules", {"layers.2.self_attn.q_proj"}, "config"},
      {"modules_to_save", {"q_proj"}, "config"},
      {"target_modules", {"q_proj", "lm_head"}, "config"},
      {"target_modules", {"q_proj", "foo\nbar"}, "config"},
      {"modules_to_save", {"classifier"}, "config"},
      {"modules_to_save", {"lm_head"}, "config"},
      {"base_model_name_or_path", "Qwen/Qwen2.5-0.5B", "path"},
      {"base_model_name_or_path", nullptr, "path"},
  };
  for (const Row& row : rows) {
    OwnAdapter adapter("lora_qv");
    EXPECT_EQ(adapter.refusal(), "");
    adapter.set(row.key, row.value);
    const std::string text = adapter.refusal();
    EXPECT_TRUE(text.starts_with(str(row.kind, ": "))) << row.key << " " << row.value.dump() << ": \"" << text << "\"";
    expect_says(text, {row.key});
  }
  OwnAdapter adapter("lora_qv");
  for (const char* kind : {"gaussian", "orthogonal", "eva"}) {
    adapter.set("init_lora_weights", kind);
    EXPECT_EQ(adapter.refusal(), "") << kind;
  }
  adapter.set("use_dora", true);
  EXPECT_EQ(adapter.refusal(),
            str("unsupported: ", adapter.directory(),
                "/adapter_config.json: use_dora = true: ucas trains plain LoRA only; merge the adapter with peft and "
                "load the result"));
}

TEST(peft, an_embedding_that_is_trained_apart_from_the_head_of_its_tied_base_is_refused) {
  OwnAdapter adapter("lora_tied");
  EXPECT_EQ(adapter.refusal(), "");
  adapter.remove("ensure_weight_tying");
  expect_says(adapter.refusal(), {"unsupported: ", "ensure_weight_tying", "gqa_tied"});
}

TEST(peft, tensors_that_contradict_the_settings_or_the_base_are_named) {
  const std::string a = "base_model.model.model.layers.1.self_attn.v_proj.lora_A.weight";
  OwnAdapter missing("lora_qv");
  missing.change_tensors([&](auto& tensors) { tensors.erase(a); });
  expect_says(missing.refusal(), {"missing_tensor: ", a.c_str(), "[4, 32]"});

  OwnAdapter more("lora_qv");
  more.change_tensors([&](auto& tensors) { tensors["base_model.model.model.layers.2.odd"] = tensors[a]; });
  expect_says(more.refusal(), {"unexpected_tensor: ", "base_model.model.model.layers.2.odd"});

  OwnAdapter rank("lora_qv");
  rank.set("r", 3);
  expect_says(rank.refusal(), {"shape: ", "lora_A.weight", "[4, 32]", "[3, 32]"});

  OwnAdapter other_base("lora_qv");
  other_base.set("base_model_name_or_path", golden("head_dim"));
  expect_says(other_base.refusal(), {"shape: ", "lora_"});

  OwnAdapter whole("lora_qv");  // trained whole says the setting, but the file has none
  whole.set("modules_to_save", Json::array({"norm"}));
  expect_says(whole.refusal(), {"missing_tensor: ", "layernorm.weight"});

  OwnAdapter unsaid("lora_saved");  // the other way round
  unsaid.set("modules_to_save", nullptr);
  expect_says(unsaid.refusal(), {"unexpected_tensor: ", "lm_head.weight"});

  OwnAdapter wild("lora_qv");
  wild.change_tensors([&](auto& tensors) { tensors[a].select(0, 1).fill_(NAN); });
  expect_says(wild.refusal(), {"numeric: ", a.c_str()});

  OwnAdapter none("lora_qv");
  std::filesystem::remove(adapter_file(none.directory()));
  expect_says(none.refusal(), {"path: ", "adapter_model.safetensors"});
}

TEST(peft, lora_settings_beside_an_adapters_directory_must_be_its_own) {
  const OwnAdapter adapter("lora_qv");
  ModelOptions options;
  options.lora = {.rank = 4, .alpha = 8, .target_modules = {"v_proj", "q_proj"}};
  EXPECT_EQ(adapter.refusal(options), "");
  options.lora.rank = 8;
  expect_says(adapter.refusal(options), {"config: ", "rank 4, alpha 8 on q_proj, v_proj", "leave lora.* out"});
  options.lora = {.rank = 4, .alpha = 8, .target_modules = {"q_proj", "v_proj"}, .modules_to_save = {"norm"}};
  expect_says(adapter.refusal(options), {"config: "});
}

}  // namespace
}  // namespace ucas
