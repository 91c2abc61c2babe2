// `ucas train CONFIG .. --ranks N` and `--gpus all|N`: the processes of one host, started and watched without torchrun;
// those of `ucas sft`, `evaluate`, `generate` and `score`, too. Each rank is this program again with
// torchrun's variables (sharding/ranks.h). This process loads no LibTorch. It forwards SIGINT, SIGTERM and SIGUSR1 to
// all ranks. Where a rank fails the others get ten seconds, and what is said then is what that one said which failed
// first by itself.
#pragma once

#include <optional>

#include "base/text/fields.h"

namespace ucas {

// Takes --ranks and --gpus out of the words of `command`. The exit code of all ranks where they ask for several;
// nullopt where there is to be one process. Error(ErrorKind::usage) for a number that cannot be.
//   0 where all ended with 0; 75 where they were stopped and saved; else that of the rank that failed first by itself,
//   70 where a signal ended it.
std::optional<int> launch_ranks(const std::string& command, Words& words);

}  // namespace ucas
