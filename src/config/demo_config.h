// Options of `ucas demo`, LibTorch-free for --help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "core/model_options.h"
#include "data/register_chains.h"
#include "data/tasks/registry.h"

namespace ucas {

// What both demonstrations can be told.
struct DemoOptions {
  std::string out;
  std::vector<std::string> methods;
  int64_t seeds = 1;
  int64_t steps = 40;
  int64_t test_problems = 256;
  int64_t test_samples = 64;
  std::string device = "cpu";
  Dtype dtype = Dtype::f32;
  int64_t threads = 0;

 protected:
  void place_field(Fields& f) { f.field("out", out, "where everything goes; finished parts found there are reused"); }
  void training_fields(Fields& f, const char* methods_help) {
    f.field("methods", methods, methods_help);
    f.field("seeds", seeds, Range{1, 100}, "RL seeds per method");
    f.field("steps", steps, Range{1, 1000000}, "RL steps per run");
  }
  void evaluation_fields(Fields& f) {
    f.field("test_problems", test_problems, Range{1, 100000}, "held-out problems");
    f.field("test_samples", test_samples, Range{1, 4096}, "samples of each, for mean@k and pass@k");
    f.field("device", device, "cpu, cuda or cuda:N");
    f.choice("dtype", dtype, "of products, activations, keys and values; a GPU's own kernels are for bf16");
    f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores");
  }
};

// On the embedded task: a tiny model that is made here.
struct DemoConfig : DemoOptions {
  TaskKind task = TaskKind::hidden_rule;
  int64_t sft_worked_steps = 608;
  int64_t sft_mixed_steps = 152;
  int64_t sft_seed = 0;

  DemoConfig() {
    out = "runs/demo";
    methods = {"dapo", "ucas", "ucas-logprob"};
  }
  void fields(Fields& f) {
    place_field(f);
    f.choice("task", task,
             "of `ucas make-task`: what becomes of right strategies that are rarely asked for (hidden_rule), are rare "
             "right steps found (hidden_steps), is working it out (chains, length; --steps 24 is enough)");
    training_fields(f, "RLVR methods to run, each an embedded config NAME-tiny");
    f.field("sft_worked_steps", sft_worked_steps, Range{0, 1000000}, "warm-up updates on worked demonstrations");
    f.field("sft_mixed_steps", sft_mixed_steps, Range{1, 1000000}, "then on mixed ones");
    evaluation_fields(f);
    f.field("sft_seed", sft_seed, Range{0, 9e15}, "seed of the task, the initial weights and the warm-up");
  }
};

// With a pretrained model, on a task in English.
struct PretrainedDemoConfig : DemoOptions {
  std::string model;
  TextTaskKind task = TextTaskKind::word_problems;
  int64_t difficulty = 1;
  int64_t task_seed = 0;
  int64_t shots = 4;
  int64_t max_tokens = 48;
  int64_t control_tokens = 256;
  int64_t rate_problems = 24;
  int64_t lora = 0;

  PretrainedDemoConfig() {
    out = "runs/demo-real";
    methods = {"dapo", "ucas"};
    steps = 10;
    test_problems = 100;
    test_samples = 8;
    dtype = Dtype::bf16;
  }
  void fields(Fields& f) {
    place_field(f);
    f.field("model", model, "a Hugging Face checkpoint with a chat template, such as SmolLM2-135M-Instruct");
    f.choice("task", task, "of `ucas make-task`");
    f.field("difficulty", difficulty, Range{1, static_cast<double>(kHardest)},
            "larger numbers, more steps, longer words");
    f.field("task_seed", task_seed, Range{0, 9e15}, "seed of the problems");
    f.field("shots", shots, Range{0, static_cast<double>(kWorkedExamples)},
            "worked examples before every question, in training and evaluation alike");
    f.field("max_tokens", max_tokens, Range{1, 1e6}, "of a response; one that is cut there is wrong");
    f.field("control_tokens", control_tokens, Range{0, 1e6},
            "the base is evaluated with so many, too: what of the gain is brevity; 0 = not");
    f.field("rate_problems", rate_problems, Range{1, 1e6},
            "training problems by which it is seen, before anything trains, how much the base solves");
    training_fields(f, "RLVR methods to run: METHOD or METHOD:PRESET, on the embedded config demo-pretrained");
    f.field("lora", lora, Range{0, 1024}, "rank of an adapter that is trained instead of all weights; 0 = all weights");
    evaluation_fields(f);
  }
};

}  // namespace ucas
