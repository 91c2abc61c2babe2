#include <ATen/core/Tensor.h>

#include <memory>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/options/train_options.h"
#include "hf/hub.h"
#include "hf/peft.h"
#include "report/progress/train_progress.h"
#include "rollout/policy.h"
#include "sharding/ranks.h"
#include "train/sft/sft.h"

namespace ucas {

namespace {

std::unique_ptr<Model> starting_model(const SftOptions& options, const Tokenizer& tokenizer) {
  at::Device device = parse_device(options.device);
  if (!options.model.empty()) {
    check_vocabulary(tokenizer, read_model_config(options.model));
    return load_model(options.model, device, options.model_options());
  }
  ModelConfig config = options.shape;
  config.family = find_family(options.init);
  config.head_dim = config.hidden_size / config.num_attention_heads;
  config.vocab_size = tokenizer.vocab_size();
  config.eos_token_id = tokenizer.eos_ids();
  if (auto pad = tokenizer.pad_id()) config.pad_token_id = *pad;
  return make_model(config, static_cast<uint64_t>(options.sft.seed), device, options.model_options());
}

SftOptions read_options(const CommandLine& line) {
  std::vector<Setting> settings;
  for (const std::string& file : line.positionals) {
    for (Setting& setting : read_toml(file)) settings.push_back(std::move(setting));
  }
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  SftOptions options;
  ucas::apply(options, settings);
  options.dtype = decided(options.dtype, options.device);
  options.validate();
  resolve_hub_names(options);
  for (const Setting& setting : settings) {
    if (setting.key.starts_with("model.") && !options.model.empty()) {
      throw Error(ErrorKind::config, str(setting.where, ": ", setting.key, " shapes a new model (--init); ",
                                         options.model, " has its own shape"));
    }
  }
  return options;
}

}  // namespace

int run_sft(const Words& words) {
  if (rank_of_environment() > 0) return kDone;  // of several ranks the first does it all
  CommandLine line = parse_command_line(words, {});
  const std::unique_ptr<TrainObserver> observer =
      make_train_observer(parse_progress_mode(take_option(line.settings, "progress")));
  const SftOptions options = read_options(line);
  if (ended_already(options.sft, options.out)) {
    log(str("sft: ", options.out, " is already complete; removed leftovers of the interrupted run"));
    return kDone;
  }
  check_output(options.out);
  use_threads(options.threads);
  install_stop_signals();
  const Tokenizer tokenizer =
      Tokenizer::load(options.tokenizer.empty() ? directory_with(options.model, "tokenizer.json") : options.tokenizer);
  const std::unique_ptr<Model> model = starting_model(options, tokenizer);
  log(str("sft: ", grouped(model->config().parameter_count()), " parameters on ", options.device));
  SftResult result = run_sft(*model, tokenizer, options.sft, options.out, *observer);
  log(str("sft: ", options.out, ": loss ", fixed(result.first_loss, 4), " -> ", fixed(result.last_loss, 4), " in ",
          grouped(result.steps), " updates, ", grouped(result.tokens), " response tokens, ",
          human_seconds(result.seconds),
          result.skipped > 0 ? str("; ", result.skipped, " updates skipped, gradient not finite") : ""));
  return kDone;
}

}  // namespace ucas
