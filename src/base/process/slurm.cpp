#include "base/process/slurm.h"

#include <algorithm>

namespace ucas {

std::vector<std::pair<std::string, std::string>> variables_of_slurm(const Variables& variable) {
  const auto text = [&](const char* name) {
    const char* value = variable(name);
    return std::string(value != nullptr ? value : "");
  };
  if (!text("RANK").empty() || !text("WORLD_SIZE").empty()) return {};
  const std::string tasks = text("SLURM_STEP_NUM_TASKS"), task = text("SLURM_PROCID");
  if (tasks.empty() || tasks == "1" || task.empty()) return {};
  std::vector<std::pair<std::string, std::string>> set = {{"RANK", task}, {"WORLD_SIZE", tasks}};
  if (const std::string local = text("SLURM_LOCALID"); !local.empty()) set.emplace_back("LOCAL_RANK", local);
  const std::string host = first_host(text("SLURM_STEP_NODELIST"));
  if (text("MASTER_ADDR").empty() && !host.empty()) set.emplace_back("MASTER_ADDR", host);
  std::string job = text("SLURM_JOB_ID");
  if (text("MASTER_PORT").empty() && !job.empty() &&
      std::ranges::all_of(job, [](char c) { return c >= '0' && c <= '9'; })) {
    job = job.substr(job.size() - std::min<size_t>(job.size(), 4));
    set.emplace_back("MASTER_PORT", std::to_string(20000 + std::stoi(job)));
  }
  return set;
}

std::string first_host(const std::string& node_list) {
  const size_t open = node_list.find('['), comma = node_list.find(',');
  if (open == std::string::npos || comma < open) return node_list.substr(0, comma);
  const size_t end = node_list.find_first_of(",-]", open);
  if (end == std::string::npos) return "";
  const size_t close = node_list.find(']', open);
  const size_t after = node_list.find(',', close);
  if (close == std::string::npos) return "";
  const std::string tail = node_list.substr(close + 1, after == std::string::npos ? after : after - close - 1);
  return node_list.substr(0, open) + node_list.substr(open + 1, end - open - 1) + tail;
}

}  // namespace ucas
