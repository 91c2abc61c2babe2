// Options of `ucas demo`, LibTorch-free for --help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "core/model_options.h"
#include "data/register_chains.h"

namespace ucas {

struct DemoConfig {
  std::string out = "runs/demo";
  TaskKind task = TaskKind::hidden_rule;
  std::vector<std::string> methods = {"dapo", "ucas", "ucas-logprob"};  // each names an embedded config METHOD-tiny
  int64_t seeds = 1;
  int64_t steps = 40;
  int64_t sft_worked_steps = 608;
  int64_t sft_mixed_steps = 152;
  int64_t test_problems = 256;
  int64_t test_samples = 64;
  std::string device = "cpu";
  Dtype dtype = Dtype::f32;
  int64_t threads = 0;
  int64_t sft_seed = 0;

  void fields(Fields& f) {
    f.field("out", out, "where everything goes; finished parts found there are reused");
    f.choice("task", task,
             "of `ucas make-task`: what becomes of right strategies that are rarely asked for (hidden_rule), are rare "
             "right steps found (hidden_steps), is working it out (chains, length; --steps 24 is enough)");
    f.field("methods", methods, "RLVR methods to run, each an embedded config NAME-tiny");
    f.field("seeds", seeds, Range{1, 100}, "RL seeds per method");
    f.field("steps", steps, Range{1, 1000000}, "RL steps per run");
    f.field("sft_worked_steps", sft_worked_steps, Range{0, 1000000}, "warm-up updates on worked demonstrations");
    f.field("sft_mixed_steps", sft_mixed_steps, Range{1, 1000000}, "then on mixed ones");
    f.field("test_problems", test_problems, Range{1, 100000}, "held-out problems");
    f.field("test_samples", test_samples, Range{1, 4096}, "samples of each, for mean@k and pass@k");
    f.field("device", device, "cpu, cuda or cuda:N");
    f.choice("dtype", dtype, "of products, activations, keys and values; a GPU's own kernels are for bf16");
    f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores");
    f.field("sft_seed", sft_seed, Range{0, 9e15}, "seed of the task, the initial weights and the warm-up");
  }
};

}  // namespace ucas
