// Options of `ucas demo`, LibTorch-free for --help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/model_options.h"
#include "data/tasks/register_chains.h"
#include "data/tasks/task.h"

namespace ucas {

// Options of both demonstrations.
struct DemoOptions {
  std::string out;
  std::vector<std::string> methods;
  int64_t seeds = 1;
  int64_t steps = 40;
  int64_t test_problems = 256;
  int64_t test_samples = 64;
  std::string device = "cpu";
  Dtype dtype = Dtype::automatic;
  int64_t threads = 0;

 protected:
  void place_field(Fields& f) { f.field("out", out, "output directory; finished parts found there are reused"); }
  void training_fields(Fields& f, const char* methods_help) {
    f.field("methods", methods, methods_help);
    f.field("seeds", seeds, Range{1, 100}, "RL seeds per method");
    f.field("steps", steps, Range{1, 1000000}, "RL steps per run");
  }
  void evaluation_fields(Fields& f) {
    f.field("test_problems", test_problems, Range{1, 100000}, "held-out problems");
    f.field("test_samples", test_samples, Range{1, 4096}, "samples per held-out problem for mean@k and pass@k");
    f.field("device", device, "device to run on: cpu, cuda or cuda:N");
    f.choice("dtype", dtype, kDtypeHelp);
    f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores");
  }
};

// On the embedded task: a tiny model that is made here.
struct DemoConfig : DemoOptions {
  int64_t sft_worked_steps = 608;
  int64_t sft_mixed_steps = 152;
  int64_t sft_seed = 0;

  DemoConfig() {
    out = "runs/demo";
    methods = {"dapo", "ucas", "ucas-logprob"};
  }
  void fields(Fields& f) {
    place_field(f);
    training_fields(f, "RLVR methods to run, each as embedded config NAME-tiny");
    f.field("sft_worked_steps", sft_worked_steps, Range{0, 1000000}, "warm-up updates on worked demonstrations");
    f.field("sft_mixed_steps", sft_mixed_steps, Range{1, 1000000},
            "warm-up updates on mixed demonstrations, after the worked ones");
    evaluation_fields(f);
    f.field("sft_seed", sft_seed, Range{0, 9e15}, "random seed of task, initial weights and warm-up");
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
    f.field("model", model, OptionNames::checkpoint,
            "Hugging Face checkpoint with a chat template, such as SmolLM2-135M-Instruct");
    f.choice("task", task, "task of `ucas make-task`");
    f.field("difficulty", difficulty, Range{1, static_cast<double>(kHardest)},
            "difficulty of the problems: larger numbers, more steps, longer words");
    f.field("task_seed", task_seed, Range{0, 9e15}, "random seed of the problems");
    f.field("shots", shots, Range{0, static_cast<double>(kWorkedExamples)},
            "worked examples before every question, in training and evaluation");
    f.field("max_tokens", max_tokens, Range{1, 1e6},
            "maximum response length in tokens; responses cut there are wrong");
    training_fields(f, "RLVR methods to run, METHOD or METHOD:PRESET, with the embedded config demo-pretrained");
    f.field("lora", lora, Range{0, 1024}, "LoRA rank; 0 = train all weights");
    evaluation_fields(f);
  }
};

}  // namespace ucas
