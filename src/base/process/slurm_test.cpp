#include "base/process/slurm.h"

#include <gtest/gtest.h>

#include <map>

namespace ucas::slurm_tests {  // a folder's tests are compiled together
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs of(std::map<std::string, std::string> set) {
  return variables_of_slurm([&](const char* name) { return set.contains(name) ? set.at(name).c_str() : nullptr; });
}

TEST(slurm, a_task_of_srun_is_a_rank) {
  EXPECT_EQ(of({{"SLURM_STEP_NUM_TASKS", "16"},
                {"SLURM_PROCID", "9"},
                {"SLURM_LOCALID", "1"},
                {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                {"SLURM_JOB_ID", "1234567"}}),
            (Pairs{{"RANK", "9"},
                   {"WORLD_SIZE", "16"},
                   {"LOCAL_RANK", "1"},
                   {"MASTER_ADDR", "gpu07"},
                   {"MASTER_PORT", "24567"}}));
}

TEST(slurm, what_is_set_already_stands) {
  std::map<std::string, std::string> step = {{"SLURM_STEP_NUM_TASKS", "2"},  {"SLURM_PROCID", "1"},
                                             {"SLURM_STEP_NODELIST", "a,b"}, {"SLURM_JOB_ID", "5"},
                                             {"MASTER_ADDR", "10.0.0.1"},    {"MASTER_PORT", "29500"}};
  EXPECT_EQ(of(step), (Pairs{{"RANK", "1"}, {"WORLD_SIZE", "2"}}));
  step["RANK"] = "0";
  EXPECT_EQ(of(step), Pairs{});
}

TEST(slurm, one_task_and_a_batch_script_are_one_process) {
  EXPECT_EQ(of({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}), Pairs{});
  EXPECT_EQ(of({{"SLURM_NTASKS", "16"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}), Pairs{});
  EXPECT_EQ(of({}), Pairs{});
}

TEST(slurm, the_first_host_of_a_list_of_nodes) {
  for (const auto& [list, host] : std::map<std::string, std::string>{{"a", "a"},
                                                                     {"a,b", "a"},
                                                                     {"n[1-4]", "n1"},
                                                                     {"n[007,9-12],m", "n007"},
                                                                     {"m,n[1-2]", "m"},
                                                                     {"r[2-3]-ib,x", "r2-ib"},
                                                                     {"", ""},
                                                                     {"n[", ""},
                                                                     {"n[1", ""},
                                                                     {"n[1-", ""}}) {
    EXPECT_EQ(first_host(list), host) << list;
  }
}

}  // namespace
}  // namespace ucas::slurm_tests
