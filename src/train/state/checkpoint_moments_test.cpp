// Checkpoints of every kind of optimizer and type of moments.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "hf/safetensors.h"
#include "records/run/manifest.h"
#include "train/state/checkpoint.h"

namespace ucas {
namespace {

OptimizerConfig optimizer_config(OptimizerKind kind, MomentType moments) {
  return {.lr = 0.01, .kind = kind, .moments = moments};
}
std::vector<OptimizerConfig> optimizer_configs() {
  std::vector<OptimizerConfig> all;
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
    for (MomentType type : {MomentType::f32, MomentType::bf16, MomentType::int8}) {
      all.push_back(optimizer_config(kind, type));
    }
  }
  return all;
}
std::string words_of(const OptimizerConfig& config) { return str(word_of(config.kind), " ", word_of(config.moments)); }

// A policy whose matrices are large enough for 8 bits, with its optimizer.
struct Policy {
  explicit Policy(const OptimizerConfig& config, const std::string& dtype = "float32")
      : model(make_model(shape(dtype), 3, at::kCPU)), optimizer(model->trainable(), config) {}
  static ModelConfig shape(const std::string& dtype) {
    ModelConfig config;
    config.hidden_size = 32;
    config.num_hidden_layers = 1;
    config.num_attention_heads = 2;
    config.num_key_value_heads = 1;
    config.head_dim = 4;
    config.intermediate_size = 160;
    config.vocab_size = 161;
    config.torch_dtype = dtype;
    return config;
  }
  // One update with random gradients.
  void train(uint64_t step) {
    Rng rng(11, step);
    for (const NamedTensor& p : model->trainable()) {
      at::Tensor grad = at::empty_like(p.tensor.detach());
      for (int64_t i = 0; i < grad.numel(); ++i) grad.mutable_data_ptr<float>()[i] = static_cast<float>(rng.normal());
      p.tensor.mutable_grad() = grad;
    }
    optimizer.step(0.01);
  }
  // Weights and moments, byte for byte.
  std::map<std::string, std::string> bytes() {
    std::vector<NamedTensor> all = optimizer.state();
    for (const NamedTensor& p : model->trainable()) all.push_back(p);
    std::map<std::string, std::string> map;
    for (const NamedTensor& t : all) {
      map[t.name] = {static_cast<const char*>(t.tensor.detach().const_data_ptr()), t.tensor.nbytes()};
    }
    return map;
  }

  std::unique_ptr<Model> model;
  Optimizer optimizer;
};

class checkpoint_moments : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = str(std::filesystem::temp_directory_path().string(), "/ucas-checkpoint-moments-", ::getpid());
    fresh();
    before_ = set_log_sink([this](LogLevel level, const std::string& message) {
      if (level == LogLevel::warning) warnings_.push_back(message);
    });
  }
  void TearDown() override {
    set_log_sink(before_);
    std::filesystem::remove_all(path_);
  }
  void fresh() {
    run_.reset();
    std::filesystem::remove_all(path_);
    run_.emplace(RunDirectory::create(path_, "", {}));
  }
  void save(int64_t step, Policy& policy) {
    save_checkpoint(*run_, step, *policy.model, policy.optimizer, {}, "{}\n", "", 2);
  }
  void load(int64_t step, Policy& policy) {
    load_checkpoint({run_->checkpoint(step), step}, *policy.model, policy.optimizer, {});
  }
  std::string optimizer_file(int64_t step) const {
    return path_join(run_->checkpoint(step), "state/optimizer.safetensors");
  }
  StoredTensor stored(int64_t step, const std::string& beginning) const {
    for (const StoredTensor& t : read_safetensors_header(optimizer_file(step))) {
      if (t.name.starts_with(beginning)) return t;
    }
    ADD_FAILURE() << "no tensor " << beginning;
    return {};
  }

  std::string path_;
  std::optional<RunDirectory> run_;
  std::vector<std::string> warnings_;
  LogSink before_;
};

TEST_F(checkpoint_moments, a_resumed_run_is_the_uninterrupted_one_to_the_bit) {
  for (const OptimizerConfig& config : optimizer_configs()) {
    for (const char* dtype : {"float32", "bfloat16"}) {
      fresh();
      Policy whole(config, dtype), resumed(config, dtype);
      for (uint64_t step : {1, 2, 3}) whole.train(step);
      save(3, whole);
      ASSERT_TRUE(newest_checkpoint(*run_)) << words_of(config);
      resumed.train(99);
      load(3, resumed);
      EXPECT_TRUE(whole.bytes() == resumed.bytes()) << words_of(config);
      for (uint64_t step : {4, 5}) {
        whole.train(step);
        resumed.train(step);
      }
      EXPECT_TRUE(whole.bytes() == resumed.bytes()) << words_of(config);
    }
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(checkpoint_moments, each_is_stored_in_its_own_type) {
  const auto types = [&](OptimizerKind kind, MomentType moments) {
    fresh();
    Policy policy(optimizer_config(kind, moments));
    policy.train(1);
    save(1, policy);
    std::set<std::string> found;
    for (const StoredTensor& t : read_safetensors_header(optimizer_file(1))) {
      found.insert(str(t.name.substr(0, t.name.find('/')), " ", t.dtype));
    }
    return std::vector<std::string>(found.begin(), found.end());
  };
  using Types = std::vector<std::string>;
  EXPECT_EQ(types(OptimizerKind::adamw, MomentType::f32), (Types{"exp_avg F32", "exp_avg_sq F32"}));
  EXPECT_EQ(types(OptimizerKind::adamw, MomentType::bf16), (Types{"exp_avg BF16", "exp_avg_sq BF16"}));
  // F32 next to codes: scales, and moments of small tensors.
  EXPECT_EQ(types(OptimizerKind::adamw, MomentType::int8),
            (Types{"exp_avg F32", "exp_avg I8", "exp_avg_scale F32", "exp_avg_sq F32", "exp_avg_sq U8",
                   "exp_avg_sq_scale F32"}));
  EXPECT_EQ(types(OptimizerKind::muon, MomentType::bf16),
            (Types{"exp_avg BF16", "exp_avg_sq BF16", "momentum_buffer BF16"}));
}

TEST_F(checkpoint_moments, those_of_another_kind_or_type_are_refused_and_say_which_option) {
  for (const OptimizerConfig& saved : optimizer_configs()) {
    fresh();
    Policy policy(saved);
    policy.train(1);
    save(1, policy);
    for (const OptimizerConfig& other : optimizer_configs()) {
      Policy another(other);
      if (words_of(saved) == words_of(other)) {
        EXPECT_NO_THROW(load(1, another));
        continue;
      }
      try {
        load(1, another);
        FAIL() << words_of(saved) << " read as " << words_of(other);
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("optimizer.moments changed"), std::string::npos) << error.what();
      }
    }
  }
}

// Sealed all the same, by somebody's hand.
TEST_F(checkpoint_moments, poisoned_numbers_make_the_one_before_count) {
  struct Poison {
    MomentType moments;
    const char *tensor, *bytes, *says;
  };
  const Poison poisons[] = {
      {MomentType::bf16, "exp_avg/", "\xc0\x7f", "holds values that are not finite"},
      {MomentType::bf16, "exp_avg_sq/", "\x80\xbf", "holds negative values, a mean of squares cannot"},
      {MomentType::int8, "exp_avg/model.embed", "\x80", "holds a byte that is no code of an 8-bit moment"},
      {MomentType::int8, "exp_avg_sq/model.embed", "\xff", "holds a byte that is no code of an 8-bit moment"},
      {MomentType::int8, "exp_avg_scale/", "\x01\x01\xc0\x7f", "holds values that are not finite"},
      {MomentType::int8, "exp_avg_sq_scale/", "\x01\x01\x80\xbf", "holds negative values, a scale cannot"},
  };
  for (const Poison& poison : poisons) {
    fresh();
    Policy policy(optimizer_config(OptimizerKind::adamw, poison.moments));
    for (int64_t step : {1, 2}) {
      policy.train(static_cast<uint64_t>(step));
      save(step, policy);
    }
    const StoredTensor t = stored(2, poison.tensor);
    std::string bytes = read_file(t.file);
    std::memcpy(bytes.data() + t.offset + t.bytes / 2 / 4 * 4, poison.bytes, std::strlen(poison.bytes));
    write_file(t.file, bytes);
    remove_all(path_join(run_->checkpoint(2), "state/manifest.json"));
    seal_directory(run_->checkpoint(2), 2);
    warnings_.clear();
    const auto found = newest_checkpoint(*run_);
    ASSERT_TRUE(found && found->step == 1) << poison.says;
    EXPECT_NE(warnings_.at(0).find(poison.says), std::string::npos) << warnings_[0];
  }
}

TEST_F(checkpoint_moments, what_is_not_finite_is_never_saved_whatever_its_type) {
  for (MomentType type : {MomentType::bf16, MomentType::int8}) {
    for (const NamedTensor& moment : Policy(optimizer_config(OptimizerKind::muon, type)).optimizer.state()) {
      if (!moment.tensor.is_floating_point()) continue;
      fresh();
      Policy policy(optimizer_config(OptimizerKind::muon, type));
      for (const NamedTensor& own : policy.optimizer.state()) {
        if (own.name == moment.name) own.tensor.fill_(NAN);
      }
      try {
        save(1, policy);
        FAIL() << moment.name;
      } catch (const Error& error) {
        EXPECT_EQ(error.exit_code(), kNumeric);
        EXPECT_NE(std::string(error.what()).find(moment.name + " holds nan"), std::string::npos) << error.what();
      }
      EXPECT_FALSE(newest_checkpoint(*run_));
    }
  }
}

}  // namespace
}  // namespace ucas
