#include "support/engine/tiny_training.h"

#include <algorithm>

#include "base/files/file.h"
#include "base/str.h"
#include "data/tasks/register_chains.h"
#include "model/model.h"
#include "records/run/steps.h"
#include "text/tokenizer/tokenizer.h"
#include "train/loop/trainer.h"

namespace ucas::testing {

TinyTraining::TinyTraining() {
  before_ = set_log_sink([this](LogLevel, const std::string& message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
  });
  TaskOptions task;
  task.n_max = 6;
  task.count_train = 12;
  task.count_dev = 4;
  task.count_test = 4;
  task.count_worked = 8;
  task.count_mixed = 8;
  write_register_chains(path_of("task"), task);
  const std::string tokenizer = path_of("task/tokenizer");
  const Tokenizer words = Tokenizer::load(tokenizer);
  ModelConfig shape;
  shape.hidden_size = 16;
  shape.num_hidden_layers = 2;
  shape.num_attention_heads = 2;
  shape.num_key_value_heads = 1;
  shape.head_dim = 8;
  shape.intermediate_size = 24;
  shape.max_position_embeddings = 96;
  shape.vocab_size = words.vocab_size();
  shape.eos_token_id = words.eos_ids();
  make_directories(model());
  save_model(*make_model(shape, 1, at::kCPU), model(), tokenizer);
}

TinyTraining::~TinyTraining() { set_log_sink(before_); }

std::string TinyTraining::path_of(const std::string& name) const { return path_join(directory_.path(), name); }

TrainConfig TinyTraining::config(const std::string& more) const {
  const std::string text =
      str("model = \"", model(), "\"\nthreads = 1\ndata.files = [\"", path_of("task/train.jsonl"), "\"]\n", R"(
data.template = "plain"
data.max_prompt_length = 32
data.train_batch_size = 4
rollout.n = 4
rollout.response_length = 12
reward.overlong_buffer = 10
method.name = "grpo"
objective.keep_mixed_groups = false
update.mini_batch_size = 2
update.micro_batch_tokens = 128
optimizer.lr = 1e-2
train.steps = 3
)");
  std::vector<Setting> settings = parse_toml(text, "tiny");
  for (Setting& setting : parse_toml(more, "test")) {
    std::erase_if(settings, [&](const Setting& known) { return known.key == setting.key; });
    settings.push_back(std::move(setting));
  }
  return make_train_config(settings);
}

std::vector<std::string> TinyTraining::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

bool TinyTraining::said(const std::string& part) const {
  const std::vector<std::string> all = messages();
  return std::ranges::any_of(all, [&](const std::string& one) { return one.find(part) != std::string::npos; });
}

int train(Training& training) {
  TrainObserver none;
  return Trainer(training).run(none);
}

int train(const TrainConfig& config, const std::string& out, std::shared_ptr<Ranks> ranks) {
  Training training = open_training(config, out, "test", false, std::move(ranks));
  return train(training);
}

TrainedResult result_of(const std::string& run) {
  TrainedResult result;
  const RunDirectory directory = RunDirectory::watch(run);
  result.weights =
      read_file(path_join(directory.checkpoint(directory.last_step()), "model.safetensors"), int64_t{1} << 24);
  std::vector<std::string> remarks;
  const StepTable table = read_steps(directory.steps_file(), remarks);
  for (size_t i = 0; i < table.step.size(); ++i) {
    std::string row;
    for (const auto& [key, values] : table.column) {
      if (!key.starts_with("timing_s/") && !key.starts_with("perf/")) row += str(key, " ", values[i], "\n");
    }
    result.rows.push_back(row);
  }
  return result;
}

void RecordingObserver::step(int64_t step, StepRow metrics) {
  calls.push_back(str("step ", step));
  rows.emplace_back(metrics.begin(), metrics.end());
}

}  // namespace ucas::testing
