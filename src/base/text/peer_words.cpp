#include "base/text/peer_words.h"

#include <algorithm>

namespace ucas {

namespace {

struct PeerWord {
  std::string_view theirs, ours;  // of one that has several meanings the first that is there counts
};

constexpr PeerWord kOptions[] = {
    {"num_generations", "rollout.n"},
    {"num_generations", "samples"},
    {"num_return_sequences", "rollout.n"},
    {"num_return_sequences", "samples"},
    {"max_completion_length", "rollout.response_length"},
    {"max_completion_length", "max_tokens"},
    {"max_response_length", "rollout.response_length"},
    {"max_response_length", "max_tokens"},
    {"max_new_tokens", "rollout.response_length"},
    {"max_new_tokens", "max_tokens"},
    {"max_gen_toks", "max_tokens"},
    {"learning_rate", "optimizer.lr"},
    {"per_device_train_batch_size", "data.train_batch_size"},
    {"per_device_train_batch_size", "batch_size"},
    {"batch_size", "data.train_batch_size"},
    {"gradient_accumulation_steps", "update.micro_batch_tokens"},
    {"ppo_mini_batch_size", "update.mini_batch_size"},
    {"ppo_max_token_len_per_gpu", "update.micro_batch_tokens"},
    {"ppo_micro_batch_size_per_gpu", "update.micro_batch_tokens"},
    {"ppo_epochs", "update.epochs"},
    {"num_iterations", "update.epochs"},
    {"num_train_epochs", "train.epochs"},
    {"num_train_epochs", "epochs"},
    {"total_epochs", "train.epochs"},
    {"max_steps", "train.steps"},
    {"max_steps", "steps"},
    {"total_training_steps", "train.steps"},
    {"save_steps", "train.save_freq"},
    {"save_steps", "save_freq"},
    {"eval_steps", "train.test_freq"},
    {"warmup_ratio", "optimizer.warmup_steps"},
    {"lr_warmup_steps", "optimizer.warmup_steps"},
    {"lr_scheduler_type", "optimizer.schedule"},
    {"max_grad_norm", "optimizer.grad_clip"},
    {"beta", "objective.kl_coeff"},
    {"kl_coef", "objective.kl_coeff"},
    {"kl_loss_coef", "objective.kl_coeff"},
    {"epsilon", "objective.clip_low"},
    {"clip_ratio", "objective.clip_low"},
    {"clip_ratio_low", "objective.clip_low"},
    {"epsilon_high", "objective.clip_high"},
    {"clip_ratio_high", "objective.clip_high"},
    {"clip_ratio_c", "objective.dual_clip"},
    {"loss_agg_mode", "objective.aggregation"},
    {"loss_type", "objective.aggregation"},
    {"adv_estimator", "method.name"},
    {"mask_truncated_completions", "reward.truncated"},
    {"reward_funcs", "reward.command"},
    {"custom_reward_function", "reward.command"},
    {"gradient_checkpointing", "update.recompute"},
    {"enable_gradient_checkpointing", "update.recompute"},
    {"output_dir", "out"},
    {"default_local_dir", "out"},
    {"model_name_or_path", "model"},
    {"train_files", "data.files"},
    {"dataset_name", "data.files"},
    {"dataset_name", "data"},
    {"lora_r", "lora.rank"},
    {"lora_rank", "lora.rank"},
    {"lora_alpha", "lora.alpha"},
    {"bf16", "dtype"},
    {"torch_dtype", "dtype"},
};

constexpr PeerWord kValues[] = {
    {"bfloat16", "bf16"}, {"float32", "f32"}, {"fp32", "f32"}, {"float", "f32"}, {"token-mean", "token_mean"},
};

}  // namespace

std::string peer_option(std::string_view key, const std::vector<std::string>& keys) {
  std::string last(key.substr(key.rfind('.') == std::string_view::npos ? 0 : key.rfind('.') + 1));
  std::ranges::replace(last, '-', '_');
  for (const auto& [theirs, ours] : kOptions) {
    if (theirs == last && std::ranges::find(keys, ours) != keys.end()) return std::string(ours);
  }
  return "";
}

std::string peer_value(std::string_view value, const std::vector<std::string>& words) {
  std::string lower(value);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (std::ranges::find(words, lower) != words.end()) return lower;
  for (const auto& [theirs, ours] : kValues) {
    if (theirs == lower && std::ranges::find(words, ours) != words.end()) return std::string(ours);
  }
  return "";
}

}  // namespace ucas
