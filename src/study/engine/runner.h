// Runs a study: base, every run over every seed (in a pool that studies share), evaluation, tables, figures, report.
// `words`: what `ucas study` was called with, for the table. Returns an exit code.
#pragma once

#include <string>

#include "study/config.h"

namespace ucas {

int run_study(Study study, const Words& words);
// One run alone, `id` = ROW/SEED or base-SEED.
int run_one_of(Study study, const Words& words, const std::string& id);

}  // namespace ucas
