#include "train/state/checkpoint.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "hf/safetensors.h"
#include "records/run/manifest.h"
#include "records/run/run_directory.h"

namespace ucas {
namespace {

constexpr int kNoSpace = 28;  // ENOSPC

// An auxiliary model that is trained: a model of its own with its own optimizer.
class TrainedAuxiliaryModel final : public AuxiliaryModel {
 public:
  explicit TrainedAuxiliaryModel(const ModelConfig& config)
      : model_(make_model(config, 5, at::kCPU)), optimizer_(model_->parameters(), OptimizerConfig{.lr = 0.01}) {}
  std::string name() const override { return "critic"; }
  void prepare(Batch&, const StepContext&, StepMetrics&) override {}
  std::vector<NamedTensor> weights() override { return model_->parameters(); }
  Optimizer* optimizer() override { return &optimizer_; }

 private:
  std::unique_ptr<Model> model_;
  Optimizer optimizer_;
};

// One that only reads: a checkpoint knows nothing of it.
class FrozenAuxiliaryModel final : public AuxiliaryModel {
 public:
  std::string name() const override { return "ref"; }
  void prepare(Batch&, const StepContext&, StepMetrics&) override {}
};

// Everything that a resume must give back.
struct Snapshot {
  std::vector<std::vector<float>> values;
  std::vector<int64_t> steps;
  std::string state;
  bool operator==(const Snapshot&) const = default;
};

class checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    // Thousands of fsyncs: in memory where that is to be had.
    std::string parent = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    path_ = str(parent, "/ucas-checkpoint-", ::getpid());
    std::filesystem::remove_all(path_);
    run_.emplace(RunDirectory::create(path_, "", {}));
    make("float32");
    before_ = set_log_sink([this](LogLevel level, const std::string& message) {
      if (level == LogLevel::warning) warnings_.push_back(message);
    });
  }
  void TearDown() override {
    set_fault("");
    set_log_sink(before_);
    std::filesystem::remove_all(path_);
  }

  void make(const std::string& dtype) {
    ModelConfig config;
    config.hidden_size = 8;
    config.num_hidden_layers = 1;
    config.num_attention_heads = 2;
    config.num_key_value_heads = 1;
    config.head_dim = 4;
    config.intermediate_size = 12;
    config.vocab_size = 11;
    config.torch_dtype = dtype;
    model_ = make_model(config, 3, at::kCPU);
    optimizer_.emplace(model_->parameters(), OptimizerConfig{.lr = 0.01});
    auxiliary_models_.clear();
    auxiliary_models_.push_back(std::make_unique<FrozenAuxiliaryModel>());
    auxiliary_models_.push_back(std::make_unique<TrainedAuxiliaryModel>(config));
  }
  std::vector<Optimizer*> optimizers() { return {&*optimizer_, auxiliary_models_[1]->optimizer()}; }
  // Weights and moments of the policy and of what is trained next to it.
  std::vector<at::Tensor> tensors() {
    std::vector<at::Tensor> all;
    auto add = [&](const std::vector<NamedTensor>& named) {
      for (const NamedTensor& t : named) all.push_back(t.tensor.detach());
    };
    add(model_->parameters());
    add(optimizer_->state());
    add(auxiliary_models_[1]->weights());
    add(auxiliary_models_[1]->optimizer()->state());
    return all;
  }

  // One update with random gradients, so that every step has its own state.
  void train(uint64_t step) {
    Rng rng(11, step);
    for (auto& parameters : {model_->parameters(), auxiliary_models_[1]->weights()}) {
      for (const NamedTensor& p : parameters) {
        at::Tensor grad = at::empty_like(p.tensor.detach());
        for (int64_t i = 0; i < grad.numel(); ++i) grad.mutable_data_ptr<float>()[i] = static_cast<float>(rng.normal());
        p.tensor.mutable_grad() = grad;
      }
    }
    optimizer_->step(0.01);
    // The auxiliary model's count must not be the policy's.
    for (int i = 0; i < 2; ++i) auxiliary_models_[1]->optimizer()->step(0.01);
  }
  Snapshot snapshot(const std::string& state) {
    Snapshot s{{}, {}, state};
    for (const Optimizer* optimizer : optimizers()) s.steps.push_back(optimizer->steps());
    for (const at::Tensor& t : tensors()) {
      const float* data = t.const_data_ptr<float>();
      s.values.emplace_back(data, data + t.numel());
    }
    return s;
  }
  void restore(const Snapshot& from) {
    size_t next = 0;
    for (const at::Tensor& t : tensors()) {
      const std::vector<float>& values = from.values[next++];
      std::copy(values.begin(), values.end(), t.mutable_data_ptr<float>());
    }
    for (size_t i = 0; i < from.steps.size(); ++i) optimizers()[i]->set_steps(from.steps[i]);
  }
  std::string save(int64_t step, int64_t keep = 2) {
    return save_checkpoint(*run_, step, *model_, *optimizer_, auxiliary_models_, state_of(step), "", keep);
  }
  Snapshot train_and_save(int64_t step, int64_t keep = 2) {
    train(static_cast<uint64_t>(step));
    save(step, keep);
    return snapshot(state_of(step));
  }
  // Into a model and optimizer that held something else.
  Snapshot load(const FoundCheckpoint& found) {
    train(999);
    std::string state = load_checkpoint(found, *model_, *optimizer_, auxiliary_models_);
    return snapshot(state);
  }
  static std::string state_of(int64_t step) { return str("{\"cursor\": ", step * 7, "}\n"); }
  std::vector<std::string> names() const { return list_directory(run_->checkpoints()); }

  std::string path_;
  std::optional<RunDirectory> run_;
  std::unique_ptr<Model> model_;
  std::optional<Optimizer> optimizer_;
  AuxiliaryModels auxiliary_models_;
  std::vector<std::string> warnings_;
  LogSink before_;
};

TEST_F(checkpoint, gives_back_weights_moments_and_state_bit_for_bit) {
  for (const char* dtype : {"float32", "bfloat16", "float16"}) {
    make(dtype);
    std::filesystem::remove_all(run_->checkpoints());
    make_directories(run_->checkpoints());
    Snapshot saved = train_and_save(5);
    auto found = newest_checkpoint(*run_);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->step, 5);
    EXPECT_EQ(load(*found), saved) << dtype;
    // And it is a model directory like any other.
    EXPECT_EQ(load_model(found->path, at::kCPU)->config().torch_dtype, dtype);
  }
  EXPECT_TRUE(warnings_.empty());
}

// vLLM loads every *.safetensors of the directory that it is given.
TEST_F(checkpoint, beside_state_there_is_nothing_but_the_model) {
  train_and_save(1);
  EXPECT_EQ(list_directory(run_->checkpoint(1)),
            (std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors", "state"}));
}

// As versions before wrote them: everything in one folder, and its seal.
TEST_F(checkpoint, one_of_the_first_format_is_still_read) {
  Snapshot saved = train_and_save(5);
  const std::string path = run_->checkpoint(5), state = path_join(path, "state");
  remove_all(path_join(state, "manifest.json"));
  for (const std::string& name : list_directory(state)) rename_path(path_join(state, name), path_join(path, name));
  remove_all(state);
  seal_directory(path, 5);
  EXPECT_TRUE(exists(path_join(path, "manifest.json")));
  auto found = newest_checkpoint(*run_);
  ASSERT_TRUE(found);
  EXPECT_EQ(load(*found), saved);
  train_and_save(6, 1);
  EXPECT_EQ(names(), std::vector<std::string>{"step-0000006"});
}

TEST_F(checkpoint, companions_that_are_trained_have_files_of_their_own) {
  train_and_save(1);
  std::vector<std::string> files = list_directory(path_join(run_->checkpoint(1), "state"));
  for (const char* name : {"critic.safetensors", "critic-optimizer.safetensors", "critic-optimizer.json"}) {
    EXPECT_NE(std::ranges::find(files, name), files.end()) << name;
  }
  for (const std::string& name : files) EXPECT_FALSE(name.starts_with("ref")) << name;
}

TEST_F(checkpoint, one_saved_without_the_companion_is_refused_naming_its_file) {
  save_checkpoint(*run_, 1, *model_, *optimizer_, {}, state_of(1), "", 2);
  try {
    load_checkpoint({run_->checkpoint(1), 1}, *model_, *optimizer_, auxiliary_models_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("critic.safetensors"), std::string::npos) << error.what();
  }
}

TEST_F(checkpoint, none_saved_yet_is_no_error) { EXPECT_FALSE(newest_checkpoint(*run_)); }

TEST_F(checkpoint, only_the_newest_k_stay) {
  for (int64_t step : {1, 2, 3, 4}) train_and_save(step, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-0000003", "step-0000004"}));
  train_and_save(5, 1);
  EXPECT_EQ(names(), std::vector<std::string>{"step-0000005"});
}

TEST_F(checkpoint, saving_a_step_twice_keeps_the_first) {
  Snapshot saved = train_and_save(3);
  auto written = std::filesystem::last_write_time(run_->checkpoint(3));
  EXPECT_EQ(save(3), run_->checkpoint(3));
  EXPECT_EQ(std::filesystem::last_write_time(run_->checkpoint(3)), written);
}

TEST_F(checkpoint, what_a_kill_left_unpruned_goes_at_the_next_save_and_step_0_is_never_the_best) {
  for (int64_t step : {0, 1, 2, 3}) train_and_save(step, 5);
  save(3, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-0000002", "step-0000003"}));
}

TEST_F(checkpoint, damage_to_any_file_makes_the_one_before_count) {
  Snapshot first = train_and_save(1);
  train_and_save(2);
  std::string newest = run_->checkpoint(2);
  struct Damage {
    const char* what;
    std::function<void(const std::string&)> apply;
  };
  const Damage damages[] = {
      {"flipped",
       [](const std::string& file) {
         std::string bytes = read_file(file);
         bytes[bytes.size() / 2] ^= 1;
         write_file(file, bytes);
       }},
      {"cut", [](const std::string& file) { truncate_file(file, file_size(file) - 1); }},
      {"emptied", [](const std::string& file) { truncate_file(file, 0); }},
      {"longer", [](const std::string& file) { write_file(file, read_file(file) + "\n"); }},
      {"gone", [](const std::string& file) { remove_all(file); }},
  };
  std::vector<std::string> files;
  for (const std::string& name : list_directory(newest)) {
    if (name != "state") files.push_back(name);
  }
  for (const std::string& name : list_directory(path_join(newest, "state"))) files.push_back("state/" + name);
  for (const std::string& relative : files) {
    std::string file = path_join(newest, relative), whole = read_file(file);
    const std::string name = relative.substr(relative.find('/') + 1);
    for (const Damage& damage : damages) {
      damage.apply(file);
      warnings_.clear();
      auto found = newest_checkpoint(*run_);
      ASSERT_TRUE(found && found->step == 1) << name << " " << damage.what;
      ASSERT_EQ(warnings_.size(), 1u);
      EXPECT_NE(warnings_[0].find(name), std::string::npos) << warnings_[0];
      write_file(file, whole);
    }
  }
  EXPECT_EQ(newest_checkpoint(*run_)->step, 2);  // mended
  EXPECT_EQ(load({run_->checkpoint(1), 1}), first);
}

TEST_F(checkpoint, a_broken_one_is_replaced_when_its_step_comes_again) {
  train_and_save(1);
  train_and_save(2);
  truncate_file(path_join(run_->checkpoint(2), "state/state.json"), 1);
  load(*newest_checkpoint(*run_));
  Snapshot again = train_and_save(2);
  auto found = newest_checkpoint(*run_);
  EXPECT_EQ(found->step, 2);
  EXPECT_EQ(load(*found), again);
}

TEST_F(checkpoint, a_rejected_later_one_does_not_push_out_good_ones) {
  for (int64_t step : {1, 2, 9}) train_and_save(step, 3);
  truncate_file(path_join(run_->checkpoint(9), "model.safetensors"), 100);
  train_and_save(3, 2);
  EXPECT_EQ(newest_checkpoint(*run_)->step, 3);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-0000002", "step-0000003", "step-0000009"}));
}

TEST_F(checkpoint, none_good_is_an_error_and_never_a_fresh_start) {
  train_and_save(1);
  remove_all(path_join(run_->checkpoint(1), "state/manifest.json"));
  try {
    newest_checkpoint(*run_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "path");
  }
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("did not finish"), std::string::npos);
}

// Each read of the search fails in turn, alone and from then on: the run may take an older one, but what a disk that
// does not answer ends in is exit 74, never the 2 of a bad input.
TEST_F(checkpoint, a_disk_that_does_not_read_is_no_bad_checkpoint) {
  for (int64_t step : {1, 2}) train_and_save(step);
  for (const char* mode : {"", ":sticky"}) {
    int64_t n = 1;
    for (bool failed_there = true; failed_there; ++n) {
      set_fault(str("any:", n, ":", kNoSpace, mode));
      bool found = false;
      try {
        found = newest_checkpoint(*run_).has_value();
        EXPECT_TRUE(found) << "call " << n;
      } catch (const Error& error) {
        EXPECT_EQ(error.exit_code(), kIoFailure) << "call " << n << mode << ": " << error.what();
      }
      failed_there = set_fault("") >= n;
      EXPECT_TRUE(mode[0] == '\0' || found == !failed_there) << "call " << n;
    }
    EXPECT_GT(n, 10) << "the loop must reach every call";
  }
}

TEST_F(checkpoint, a_directory_renamed_to_another_step_is_passed_over) {
  train_and_save(1);
  std::filesystem::rename(run_->checkpoint(1), run_->checkpoint(7));
  EXPECT_THROW(newest_checkpoint(*run_), Error);
  EXPECT_NE(warnings_.at(0).find("saved at step 1"), std::string::npos);
}

TEST_F(checkpoint, one_of_a_newer_format_is_named_as_such) {
  train_and_save(1);
  std::string file = path_join(run_->checkpoint(1), "state/manifest.json"), text = read_file(file);
  text.replace(text.find("\"format\": 2"), 11, "\"format\": 3");
  size_t self = text.rfind(",\n  \"self\": \"");
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash, XXH3_128bits(text.data(), self));
  std::string hex;
  for (unsigned char b : hash.digest) hex += {"0123456789abcdef"[b >> 4], "0123456789abcdef"[b & 15]};
  text.replace(self + 13, 32, hex);
  write_file(file, text);
  EXPECT_NE(check_seal(run_->checkpoint(1), true).problem.find("newer"), std::string::npos);
}

TEST_F(checkpoint, leftovers_and_strange_names_are_ignored) {
  train_and_save(1);
  for (const char* name : {".tmp-step-0000009-4", ".trash-step-0000001-4", "step-9", "notes", "step-00000000009"}) {
    make_directories(path_join(run_->checkpoints(), name));
  }
  EXPECT_EQ(newest_checkpoint(*run_)->step, 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"notes", "step-00000000009", "step-0000001", "step-9"}));
}

// Of the parameter with this index, or of its moments.
float& value_of(const std::vector<NamedTensor>& tensors, size_t index) {
  at::Tensor t = tensors.at(index).tensor.detach();
  return t.mutable_data_ptr<float>()[t.numel() / 2];
}

TEST_F(checkpoint, one_whose_numbers_are_not_finite_is_never_saved) {
  Snapshot good = train_and_save(1, 1);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  struct Case {
    const char* says;
    float value;
    std::function<float&()> where;
  };
  const Case cases[] = {
      {"the policy: model.embed_tokens.weight holds nan", nan,
       [&]() -> float& { return value_of(model_->parameters(), 0); }},
      {"optimizer: exp_avg/model.embed_tokens.weight holds inf", infinity,
       [&]() -> float& { return value_of(optimizer_->state(), 0); }},
      {"critic: ", -infinity, [&]() -> float& { return value_of(auxiliary_models_[1]->weights(), 1); }},
      {"critic-optimizer: ", nan, [&]() -> float& { return value_of(auxiliary_models_[1]->optimizer()->state(), 1); }},
  };
  for (const Case& c : cases) {
    train(2);
    c.where() = c.value;
    try {
      save(2, 1);
      FAIL() << c.says;
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "numeric");
      EXPECT_EQ(error.exit_code(), kNumeric);
      EXPECT_NE(std::string(error.what()).find(c.says), std::string::npos) << error.what();
    }
    EXPECT_EQ(names(), std::vector<std::string>{"step-0000001"});
    restore(good);
  }
  EXPECT_EQ(load(*newest_checkpoint(*run_)), good);
}

TEST_F(checkpoint, a_weight_that_its_stored_type_cannot_hold_is_not_saved_as_infinity) {
  make("float16");
  value_of(model_->parameters(), 0) = 65520;
  EXPECT_THROW(save(1), Error);
  value_of(model_->parameters(), 0) = 65519;
  save(1);
  EXPECT_TRUE(newest_checkpoint(*run_));
}

// Sealed all the same, by an earlier version or by somebody's hand.
TEST_F(checkpoint, poisoned_numbers_make_the_one_before_count) {
  Snapshot first = train_and_save(1);
  train_and_save(2);
  const std::string newest = run_->checkpoint(2), state = path_join(newest, "state");
  const auto first_tensor = [&](const char* name, const char* file) {
    for (const StoredTensor& t : read_safetensors_header(path_join(newest, file))) {
      if (t.name.starts_with(name)) return t;
    }
    return StoredTensor{};
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  struct Poison {
    const char *tensor, *file, *says;
    float value;
  };
  const Poison poisons[] = {
      {"model.embed", "model.safetensors", "model.embed_tokens.weight holds values that are not finite", nan},
      {"exp_avg/", "state/optimizer.safetensors", "holds values that are not finite", nan},
      {"exp_avg_sq/", "state/optimizer.safetensors", "holds negative values", -1.0f},
      {"model.embed", "state/critic.safetensors", "state/critic.safetensors: tensor model.embed", nan},
  };
  for (const Poison& poison : poisons) {
    const StoredTensor t = first_tensor(poison.tensor, poison.file);
    const std::string whole = read_file(t.file);
    std::string bytes = whole;
    std::memcpy(bytes.data() + t.offset, &poison.value, 4);
    write_file(t.file, bytes);
    remove_all(path_join(state, "manifest.json"));
    seal_directory(newest, 2);
    warnings_.clear();
    auto found = newest_checkpoint(*run_);
    ASSERT_TRUE(found && found->step == 1) << poison.says;
    EXPECT_NE(warnings_.at(0).find(poison.says), std::string::npos) << warnings_[0];
    write_file(t.file, whole);
  }
  write_file(path_join(state, "optimizer.json"), "{\"steps\": -5}\n");
  remove_all(path_join(state, "manifest.json"));
  seal_directory(newest, 2);
  warnings_.clear();
  auto found = newest_checkpoint(*run_);
  ASSERT_TRUE(found && found->step == 1);
  EXPECT_NE(warnings_.at(0).find("steps = -5"), std::string::npos) << warnings_[0];
  // Its step comes again: it is replaced, although its seal holds.
  load(*found);
  Snapshot again = train_and_save(2);
  EXPECT_EQ(load(*newest_checkpoint(*run_)), again);
  EXPECT_EQ(newest_checkpoint(*run_)->step, 2);
}

TEST_F(checkpoint, a_state_that_is_not_accepted_makes_the_one_before_count) {
  train_and_save(1);
  train_and_save(2);
  auto found = newest_checkpoint(*run_, [](const std::string& state, const FoundCheckpoint&) {
    if (state == state_of(2)) throw Error(ErrorKind::schema, "not this one");
  });
  ASSERT_TRUE(found && found->step == 1);
  EXPECT_NE(warnings_.at(0).find("not this one"), std::string::npos);
}

TEST_F(checkpoint, a_missing_model_file_is_an_error_and_not_a_smaller_checkpoint) {
  train_and_save(1);
  const std::string base = path_join(path_, "base");
  make_directories(base);
  for (const char* name : {"tokenizer.json", "chat_template.jinja"}) write_file(path_join(base, name), name);
  write_file(path_join(base, "config.json"), R"({"own": 1})");
  keep_model_files(*run_, base, base);
  remove_all(base);  // the run does not need it again
  train(2);
  save_checkpoint(*run_, 2, *model_, *optimizer_, auxiliary_models_, "", run_->model_files(), 1);
  EXPECT_EQ(read_file(path_join(run_->checkpoint(2), "chat_template.jinja")), "chat_template.jinja");
  EXPECT_NE(read_file(path_join(run_->checkpoint(2), "config.json")).find("\"own\": 1"), std::string::npos);
  remove_all(path_join(run_->model_files(), "tokenizer.json"));
  try {
    save_checkpoint(*run_, 3, *model_, *optimizer_, auxiliary_models_, "", run_->model_files(), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kIoFailure);
    EXPECT_NE(std::string(error.what()).find("tokenizer.json is missing"), std::string::npos) << error.what();
  }
  EXPECT_EQ(names(), std::vector<std::string>{"step-0000002"});
  keep_model_files(*run_, run_->checkpoint(2), "");  // as a resume does
  check_model_files(run_->model_files());
  EXPECT_EQ(read_file(path_join(run_->model_files(), "tokenizer.json")), "tokenizer.json");
}

TEST_F(checkpoint, a_moment_of_another_shape_is_refused) {
  train_and_save(1);
  ModelConfig other = model_->config();
  other.intermediate_size = 16;
  auto model = make_model(other, 3, at::kCPU);
  Optimizer optimizer(model->parameters(), {});
  EXPECT_THROW(load_checkpoint({run_->checkpoint(1), 1}, *model, optimizer, {}), Error);
}

// Every I/O call of a save fails in turn, alone and from then on: the caller gets it, nothing of the save stays
// under a real name unless it is complete, and the checkpoint before is intact.
TEST_F(checkpoint, a_failure_at_any_call_leaves_the_one_before) {
  Snapshot first = train_and_save(1);
  train(2);
  Snapshot second = snapshot(state_of(2));
  for (const char* mode : {"", ":sticky", ":short"}) {
    int64_t n = 1, calls = 0;
    for (;; ++n) {
      set_fault(str("any:", n, ":", kNoSpace, mode));
      bool thrown = false;
      try {
        save(2);
      } catch (const Error& error) {
        thrown = true;
        EXPECT_EQ(error.word(), "io");
        EXPECT_EQ(error.exit_code(), kIoFailure);
      }
      calls = set_fault("");
      if (mode[0] == '\0' && thrown) {
        for (const std::string& name : names()) EXPECT_FALSE(name.starts_with(".tmp-")) << "call " << n;
      }
      auto found = newest_checkpoint(*run_);
      ASSERT_TRUE(found) << "call " << n << mode;
      Snapshot loaded = load(*found);
      ASSERT_TRUE(thrown ? loaded == first || loaded == second : loaded == second) << "call " << n << mode;
      load_checkpoint({run_->checkpoint(1), 1}, *model_, *optimizer_,
                      auxiliary_models_);  // still there, whatever happened
      train(2);
      if (exists(run_->checkpoint(2))) remove_all(run_->checkpoint(2));
      if (calls < n) break;
    }
    EXPECT_GT(n, 30) << "the loop must reach every call";
  }
}

// SIGKILL at every I/O call of a save that also prunes.
TEST_F(checkpoint, a_kill_at_any_call_loses_at_most_the_save_in_flight) {
  train_and_save(1, 1);
  Snapshot first = train_and_save(2, 1);
  train(3);
  Snapshot second = snapshot(state_of(3));
  int64_t kills = 0;
  for (int64_t n = 1;; ++n) {
    pid_t child = ::fork();
    if (child == 0) {
      set_fault(str("any:", n, ":0:kill"));
      save(3, 1);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    bool killed = WIFSIGNALED(status);
    auto found = newest_checkpoint(*run_);
    ASSERT_TRUE(found) << "call " << n;
    Snapshot loaded = load(*found);
    ASSERT_TRUE(loaded == second || (killed && loaded == first)) << "call " << n;
    for (const std::string& name : names()) EXPECT_FALSE(name.starts_with(".")) << "call " << n;
    if (!killed) break;
    ++kills;
    // Back to where the child began.
    std::filesystem::remove_all(run_->checkpoints());
    make_directories(run_->checkpoints());
    restore(first);
    save(2, 1);
    restore(second);
  }
  EXPECT_GT(kills, 30);
}

}  // namespace
}  // namespace ucas
