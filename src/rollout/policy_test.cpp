#include "rollout/policy.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/process/machine.h"

namespace ucas {
namespace {

TEST(device_of_rank, cuda_is_the_device_with_the_ranks_number_on_its_host) {
  EXPECT_EQ(device_of_rank("cuda", 0, 8), "cuda:0");
  EXPECT_EQ(device_of_rank("cuda", 7, 8), "cuda:7");
  EXPECT_EQ(device_of_rank("cuda", 3, 1), "cuda");  // --gpus-per-task=1 shows each rank its own
  EXPECT_EQ(device_of_rank("cuda", 3, 0), "cuda");  // parse_device() refuses it
  EXPECT_EQ(device_of_rank("cuda:2", 5, 8), "cuda:2");
  EXPECT_EQ(device_of_rank("cpu", 5, 8), "cpu");
  try {
    device_of_rank("cuda", 2, 2);
    FAIL() << "a third rank of two devices";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kBadInput);
    EXPECT_NE(std::string(error.what()).find("rank number 2 of this host, counted from 0, has no CUDA device: 2 are"),
              std::string::npos)
        << error.what();
  }
}

TEST(no_cuda_device, names_both_versions_and_what_to_install) {
  EXPECT_EQ(no_cuda_device(13000, 12080),
            "this LibTorch is for CUDA 13.0 and the driver for CUDA 12.8: update the driver to one for CUDA 13.0 or "
            "later, or install a LibTorch for CUDA 12");
  EXPECT_EQ(no_cuda_device(13000, 0), "this LibTorch is for CUDA 13.0, and there is no NVIDIA driver (libcuda.so.1)");
  EXPECT_EQ(no_cuda_device(0, 0), "this LibTorch is a build for CPUs");
  EXPECT_EQ(no_cuda_device(0, 12080),
            "this LibTorch is a build for CPUs, and the driver is for CUDA 12.8: install a build of LibTorch for CUDA "
            "12");
  // The same major version serves, whichever is the later one.
  EXPECT_NE(no_cuda_device(13010, 13000).find("shows no device"), std::string::npos);
  EXPECT_NE(no_cuda_device(12060, 13000).find("shows no device"), std::string::npos);
}

TEST(cuda_in_words, says_what_a_build_lacks) {
  EXPECT_EQ(cuda_in_words(0, false, {}), "none: this LibTorch is a build for CPUs");
  EXPECT_EQ(
      cuda_in_words(13000, false, {}),
      "LibTorch for CUDA 13.0, no kernels: built without nvcc; GPUs take LibTorch's operations, which are slower");
  EXPECT_EQ(cuda_in_words(13000, true, {}), "LibTorch for CUDA 13.0, kernels; no GPU is usable here");
  EXPECT_EQ(cuda_in_words(13000, true, true), "LibTorch for CUDA 13.0, kernels, NCCL");
  EXPECT_NE(cuda_in_words(13000, true, false).find("no NCCL: built without nccl.h"), std::string::npos);
}

TEST(cores, are_divided_among_processes_that_share_them) {
  const int64_t all = usable_cores();
  EXPECT_EQ(all, all_cores());
  EXPECT_FALSE(cores_are_divided(0));
  share_cores(2 * all);
  EXPECT_EQ(usable_cores(), 1);
  EXPECT_EQ(all_cores(), all);
  EXPECT_FALSE(cores_are_divided(3));
  share_cores(1);
  EXPECT_EQ(usable_cores(), all);
}

}  // namespace
}  // namespace ucas
