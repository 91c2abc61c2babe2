// Runs a study: base, every run over every seed (in a pool that studies share), evaluation, tables, figures, report.
// `words`: what `ucas study` was called with, for its worker processes and for the table. Returns an exit code.
#pragma once

#include <string>

#include "study/config.h"

namespace ucas {

int run_study(Study study, const Words& words);
// One run alone, `id` = ROW/SEED: what a worker does, and anyone who spreads a study over machines that share the pool.
int run_one_of(Study study, const Words& words, const std::string& id);

}  // namespace ucas
