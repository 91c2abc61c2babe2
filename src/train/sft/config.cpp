#include "train/sft/config.h"

#include "base/error.h"
#include "base/str.h"

namespace ucas {

SftConfig::SftConfig() {
  optimizer.lr = 1e-5;
  optimizer.decay = Decay::matrices;
  optimizer.schedule = Schedule::cosine;
  optimizer.min_lr_ratio = 0.1;
}

void SftOptimizer::fields(Fields& f) {
  OptimizerConfig::fields(f);
  f.choice("schedule", schedule, {"constant", "cosine"}, "learning-rate schedule after the warm-up");
  f.field("min_lr_ratio", min_lr_ratio, Range{0, 1}, "final learning rate of the cosine schedule as a fraction of lr");
}

void SftConfig::fields(Fields& f) {
  f.field("data", data, OptionNames::training_data,
          "JSONL files of {\"prompt\", \"response\"} rows; several files are consecutive phases");
  f.field("steps", steps, Range{1, 1e9}, "updates per phase; empty = --epochs epochs over each file");
  f.field("epochs", epochs, Range{1, 1e6}, "epochs over each file where --steps is empty");
  f.field("prompt_template", prompt_template,
          "prompt template: auto, chat, qwen_math, qwen_boxed, orz, plain or a .toml file; auto = the checkpoint's "
          "chat template, else none; empty = none");
  f.field("batch_size", batch_size, Range{1, 1e6}, "sequences per update");
  f.field("max_tokens", max_tokens, Range{1, 1e9}, "tokens per micro-batch; limits memory, does not change the result");
  f.field("max_length", max_length, Range{2, 1e7},
          "maximum sequence length in tokens; longer sequences are dropped and counted");
  f.field("seed", seed, Range{0}, "random seed of the example order, and of initial weights with --init");
  f.field("save_freq", save_freq, Range{0, 1e9},
          "updates between checkpoints in OUT.run, removed when OUT is complete; the same command resumes; 0 = none",
          Effect::bookkeeping);
  f.choice("bad_rows", bad_rows, kBadRowsHelp, Effect::place);
  f.field("append_eos", append_eos, "train on an end token after each response");
  f.section("optimizer", optimizer);
}

void SftConfig::validate() const {
  if (data.empty()) throw Error(ErrorKind::config, "--data: no file of prompts and responses given");
  if (!steps.empty() && steps.size() != data.size()) {
    throw Error(ErrorKind::config, str("steps has ", steps.size(), " entries and data has ", data.size(),
                                       ": give one number of steps for each file, or leave steps out"));
  }
  if (max_length > max_tokens) {
    throw Error(ErrorKind::config, str("max_length = ", max_length, " is above max_tokens = ", max_tokens,
                                       ": one sequence must fit a micro-batch; lower the one or raise the other"));
  }
}

}  // namespace ucas
