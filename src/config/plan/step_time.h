// How long a step of a training will take, by a roofline: what each phase computes and reads (hf/parameters.h), over
// what a device can do and the share of it that this program was measured to reach. Where responses are as long as
// said; validation, checkpoints, grading and what is fetched over a network are not in it.
// Fed by config/plan/plan.h's models; read by `ucas plan --gpu`.
// Threads: any; here_device() uses several.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/plan/plan.h"

namespace ucas {

// Shares of `operations` and `bandwidth` that a phase reaches.
struct Device {
  std::string name, note;
  double operations = 0;                       // a second, in dense GEMMs of the run's type; a multiply-add is two
  double bandwidth = 0;                        // bytes a second
  int64_t memory = 0;                          // bytes; 0: of the host
  int64_t multiprocessors = 0;                 // of a GPU
  bool nvlink = false;                         // to the others of its host
  double link = 0;                             // bytes a second that a rank sends to another (set_link)
  double host_link = 0;                        // bytes a second from a GPU to its host
  double forward = 0, update = 0, decode = 0;  // of operations
  double head = 0;                             // of operations: the LM head of a pass; 0: as the pass
  double read = 0, optimizer = 0;              // of bandwidth: weights, keys and values while decoding; moments
  double half_width = 0;                       // GEMMs of models of so many columns reach half of these shares
  double cache = 0;                            // bytes: weights that fit are read at four times the bandwidth
  double layer_seconds = 0;                    // of a layer in each round of decoding, whatever is computed
  double token_seconds = 0;                    // of a sampled token: sampling and recording it
  double number_seconds = 0;                   // of a number that a pass makes outside of GEMMs: norms, SwiGLU ..
  double logit_seconds = 0;                    // of a logit: softmax, statistics, sampling; 0: within the shares
};
// "h100", "rtx4090" and the like (devices.cpp). Error(ErrorKind::usage) for others.
Device gpu_named(const std::string& name, Dtype dtype);
// This machine's CPU, measured by the program's own kernels. Half a second.
Device here_device(Dtype dtype, int64_t threads);

// How ranks are linked, as the card has it: NVLink or PCIe up to 8 ranks, InfiniBand or Ethernet between hosts beyond.
// Assumptions (devices.cpp).
void set_link(Device& device, int64_t ranks);

// Bytes of a GPU besides its tensors: CUDA context, cuBLAS workspaces, NCCL's buffers of one of `ranks`. What others
// published (devices.cpp), not measured here. `by_owner`: ranks exchange by all-to-all. 0 on the CPU.
int64_t driver_memory(const Device& device, int64_t ranks, bool by_owner);

// Mean tokens; 0: as long as the config allows.
struct MeanLengths {
  double prompt = 0, response = 0;
};

struct TimePlan {
  struct Phase {
    std::string name;
    double seconds = 0;
    std::string note;
  };
  std::vector<Phase> phases;
  int64_t steps = 0;  // of the run; 0: not known before the data
  int64_t ranks = 1;
  double step() const;
  double device_hours() const { return step() * static_cast<double>(steps * ranks) / 3600; }
};
TimePlan plan_time(const TrainConfig& config, const PlannedModels& models, const Device& device, MeanLengths lengths);

std::string time_text(const TimePlan& time, const Device& device);

}  // namespace ucas
