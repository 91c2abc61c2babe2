// Ranks that srun starts: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT out of Slurm's own variables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ucas {

// A variable of the environment; nullptr: not set.
using Variables = std::function<const char*(const char*)>;

// What is to be set; empty where RANK or WORLD_SIZE is set, and outside a step of several tasks (in the batch script,
// too). The port is 20000 and the last four digits of the job's number. Throws nothing.
std::vector<std::pair<std::string, std::string>> variables_of_slurm(const Variables& variable);

// "node[07-09,12],login1" -> "node07"; "" where it cannot be read.
std::string first_host(const std::string& node_list);

}  // namespace ucas
