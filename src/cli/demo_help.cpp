#include "cli/command.h"
#include "cli/demo_config.h"
#include "progress/train_progress.h"

namespace ucas {

std::string help_demo() {
  return "ucas demo - the main job on the embedded task, in minutes on two cores\n\n"
         "Makes a reasoning task and its tokenizer, warms up a 0.1 M parameter Qwen2 model on it from scratch, then "
         "runs\n"
         "RLVR with each method from that one checkpoint, evaluates all on held-out problems, and writes one HTML "
         "report.\n"
         "Run again to reuse finished parts; more --seeds adds runs.\n\n"
         "  ucas demo [--seeds 4] [--methods grpo,dapo,ucas] [--out DIR]\n\n" +
         options_help(DemoConfig{}) + kProgressHelp;
}

}  // namespace ucas
