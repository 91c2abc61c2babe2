#include "config/sft_config.h"

#include "base/error.h"
#include "base/str.h"

namespace ucas {

SftConfig::SftConfig() {
  optimizer.lr = 1e-5;
  optimizer.decay = Decay::matrices;
  optimizer.schedule = Schedule::cosine;
  optimizer.min_lr_ratio = 0.1;
}

void SftConfig::fields(Fields& f) {
  f.field("data", data, "JSONL files of {\"prompt\", \"response\"} rows; several are phases, one after another");
  f.field("steps", steps, Range{1, 1e9}, "updates in each phase; empty: --epochs passes over each file");
  f.field("epochs", epochs, Range{1, 1e6}, "passes over each file where steps is empty");
  f.field(
      "prompt_template", prompt_template,
      "auto (chat where the checkpoint has a chat template, else prompts as they are), chat, qwen_math, qwen_boxed, "
      "orz, plain or a .toml file; empty: prompts as they are");
  f.field("batch_size", batch_size, Range{1, 1e6}, "sequences per update");
  f.field("max_tokens", max_tokens, Range{1, 1e9}, "tokens per micro-batch; bounds memory, the result stays the same");
  f.field("max_length", max_length, Range{2, 1e7}, "longer sequences are dropped, and counted");
  f.field("seed", seed, Range{0}, "order of the examples, and initial weights with --init");
  f.field("phase_end_loss", phase_end_loss, Range{0, 1e3},
          "end a phase (not the last) once its running loss is below this, 0 = never");
  f.field(
      "save_freq", save_freq, Range{0, 1e9},
      "updates between checkpoints, kept in OUT.run until OUT is there; the same command goes on from them; 0 = none",
      Effect::bookkeeping);
  f.choice("bad_rows", bad_rows, kBadRowsHelp, Effect::place);
  f.field("append_eos", append_eos, "train on an end token after each response");
  f.section("optimizer", optimizer);
}

void SftConfig::validate() const {
  if (data.empty()) throw Error("config", "--data: no file of prompts and responses given");
  if (!steps.empty() && steps.size() != data.size()) {
    throw Error("config", str("steps has ", steps.size(), " entries and data has ", data.size(),
                              ": give one number of steps for each file, or leave steps out"));
  }
  if (max_length > max_tokens) {
    throw Error("config", str("max_length = ", max_length, " is above max_tokens = ", max_tokens,
                              ": one sequence must fit a micro-batch; lower the one or raise the other"));
  }
}

}  // namespace ucas
