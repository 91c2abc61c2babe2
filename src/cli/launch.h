// `ucas train CONFIG .. --ranks N` and `--gpus all|N`: the processes of one host, started and watched without torchrun;
// those of `ucas sft`, `evaluate`, `generate`, `score` and `doctor`, too.
// Each rank is this program again with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (sharding/ranks.h).
// This process loads no LibTorch. It forwards SIGINT, SIGTERM and SIGUSR1 to all ranks. Where a rank fails it says what
// that one said, and ends the others kGrace later at most.
#pragma once

#include <optional>

#include "base/text/fields.h"

namespace ucas {

// Takes --ranks, --gpus and --restarts out of the words of `command`. The exit code of all ranks where they ask for
// several; nullopt where there is to be one process. Error(ErrorKind::usage) for a number that cannot be.
//   0 where all ended with 0; 75 where they were stopped and saved; else that of the first rank that failed, 70 where a
//   signal ended it.
std::optional<int> launch_ranks(const std::string& command, Words& words);

}  // namespace ucas
