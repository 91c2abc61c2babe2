// What devices can do: GPUs by their data sheets, this machine's CPU by a measurement.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/process/machine.h"
#include "base/process/thread_pool.h"
#include "base/str.h"
#include "config/plan/step_time.h"
#include "kernels/dispatch.h"
#include "kernels/head.h"

namespace ucas {

namespace {

struct GpuRow {
  const char* name;
  double bf16, f32;  // operations a second, dense; f32 without TF32
  double bandwidth;
  double memory;
  int64_t multiprocessors;
  bool nvlink = false;
  bool pcie5 = false;
};
// Of PCIe 5 and 4 by 16 lanes others measured 47 to 55 and about 25 GB/s from pinned memory, either way.
// bf16 with f32 sums, which GeForce cards do at half of their advertised rate.
// clang-format off
constexpr GpuRow kGpus[] = {
    {"h100",       989e12,  67e12,   3.35e12,  80e9, 132, true, true},   // SXM
    {"h200",       989e12,  67e12,   4.8e12,   141e9, 132, true, true},
    {"gh200",      989e12,  67e12,   4.0e12,   96e9, 132, true, true},   // with HBM3
    {"b200",       2250e12, 75e12,   7.7e12,   180e9, 148, true, true},
    {"a100",       312e12,  19.5e12, 2.04e12,  80e9, 108, true},
    {"l4",         121e12,  30.3e12, 0.3e12,   24e9, 58},
    {"l40s",       362e12,  91.6e12, 0.864e12, 48e9, 142},
    {"a6000",      154.8e12, 38.7e12, 0.768e12, 48e9, 84},
    {"rtxpro6000", 503.8e12, 126e12, 1.79e12,  96e9, 188, false, true},
    {"rtx3060",    25.5e12, 12.7e12, 0.36e12,  12e9, 28},
    {"rtx3070",    40.6e12, 20.3e12, 0.448e12, 8e9, 46},
    {"rtx4070",    58.3e12, 29.1e12, 0.504e12, 12e9, 46},
    {"rtx4080",    97.5e12, 48.7e12, 0.717e12, 16e9, 76},
    {"rtx5080",    112.6e12, 56.3e12, 0.96e12, 16e9, 84, false, true},
    {"rtx3090",    71e12,   35.6e12, 0.936e12, 24e9, 82},
    {"rtx4090",    165e12,  82.6e12, 1.01e12,  24e9, 128},
    {"rtx5090",    209.5e12, 104.8e12, 1.79e12, 32e9, 170, false, true}};
// clang-format on

// Bus bandwidth of a rank in the collectives of c10d, bytes a second. Assumptions, from what others measured: eight
// H100 by NVLink some hundreds of GB/s, two hosts of them 310 and four 180 (NVIDIA/nccl#1031), PCIe 4 15 to 25,
// Ethernet of 100 Gbit/s 10.
struct Link {
  const char* said;
  double bytes;
};
constexpr Link kOfCard[] = {{" of PCIe", 20e9}, {" of NVLink", 300e9}};  // by `nvlink`
constexpr Link kOfHosts[] = {{" of Ethernet of 100 Gbit/s", 10e9}, {" of InfiniBand", 180e9}};
constexpr int64_t kRanksOfHost = 8;

// Besides tensors, as others measured it. A context with kernels loaded on demand: about 400 MB
// (pytorch/pytorch#109888). A workspace of 32 MiB each for cuBLAS and cuBLASLt on Hopper and later (cuBLAS's
// documentation of cublasSetWorkspace; 4 MiB before). A communicator of NCCL over NVLink: 688 MB of four A100
// (NVIDIA/nccl#964). Its connections for an all-to-all: 1.06 to 4.34 GB on each of eight H100 (NVIDIA/nccl#1685), so
// 0.47 GB for each other one of the host; what those between hosts take is not known.
constexpr int64_t kContext = 400'000'000, kWorkspaces = int64_t{64} << 20;
constexpr int64_t kCommunicator = 688'000'000, kAllToAllPeer = 470'000'000;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
// Seconds of the quickest call within a sixth of a second: others may share this machine, and its clock takes its time
// to rise.
double least_seconds(const std::function<void()>& work) {
  double least = 1e9;
  for (const double end = now() + 1.0 / 6; now() < end;) {
    const double began = now();
    work();
    least = std::min(least, now() - began);
  }
  return least;
}

// Seconds of statistics of R rows under a head of V by D.
double head_seconds(int64_t R, int64_t V, int64_t D, int64_t threads) {
  const std::vector<float> hidden(static_cast<size_t>(R * D), 0.5F), weight(static_cast<size_t>(V * D), 0.01F);
  const std::vector<int64_t> target(static_cast<size_t>(R));
  std::vector<float> out(static_cast<size_t>(6 * R));
  const auto at = [&](int64_t i) { return out.data() + i * R; };
  const kernels::HeadOutput to{at(0), at(1), at(2), at(3), at(4), at(5)};
  return least_seconds(
      [&] { kernels::head_stats({R, V, D, hidden.data(), {weight.data(), nullptr}, target.data(), 1}, to, threads); });
}

// Bytes a second from beyond the caches: each call reads on in a block too large for them.
double read_bandwidth(int64_t threads) {
  constexpr int64_t kPart = 4096, kCall = 256, kCalls = 64;  // numbers, parts, blocks: 256 MiB
  const std::vector<float> block(static_cast<size_t>(kPart * kCall * kCalls), 0.01F);
  int64_t call = 0;
  const double seconds = least_seconds([&] {
    const float* at = block.data() + call++ % kCalls * kPart * kCall;
    share_out(kCall, 16, threads, [&](size_t first, size_t last) {
      float sum[kPart] = {};
      for (size_t part = first; part < last; ++part) kernels::table().add(at + part * kPart, kPart, sum);
    });
  });
  return 4.0 * kPart * kCall / seconds;
}

}  // namespace

Device gpu_named(const std::string& name, Dtype dtype) {
  std::vector<std::string> names = {"cpu"};
  for (const GpuRow& row : kGpus) {
    names.emplace_back(row.name);
    if (name != row.name) continue;
    Device d{.name = row.name,
             .operations = dtype == Dtype::bf16 ? row.bf16 : row.f32,
             .bandwidth = row.bandwidth,
             .memory = static_cast<int64_t>(row.memory),
             .multiprocessors = row.multiprocessors,
             .nvlink = row.nvlink,
             .host_link = row.pcie5 ? 50e9 : 25e9};
    // Of an H100 (docs/gpu.md), which every other one is taken to be like.
    d.forward = 0.53, d.update = 0.47, d.decode = 0.64, d.read = 0.71, d.optimizer = 0.71, d.layer_seconds = 25e-6;
    d.note = str(fixed(d.operations * 1e-12, 0), " TFLOP/s and ", fixed(d.bandwidth * 1e-12, 2),
                 " TB/s by its data sheet; shares reached as measured on an H100");
    return d;
  }
  throw Error(ErrorKind::usage,
              str("--gpu ", printable(name), ": expected one of ", join(names, ", "), did_you_mean(name, names)));
}

void set_link(Device& device, int64_t ranks) {
  if (ranks == 1) return;
  const Link* of_gpu = ranks <= kRanksOfHost ? kOfCard : kOfHosts;
  const Link link = device.memory == 0 ? Link{"", 1e9} : of_gpu[device.nvlink ? 1 : 0];
  device.link = link.bytes;
  device.note +=
      str("; between ranks ", fixed(link.bytes * 1e-9, link.bytes < 10e9 ? 1 : 0), " GB/s, assumed", link.said);
}

int64_t driver_memory(const Device& device, int64_t ranks, bool by_owner) {
  if (device.memory == 0) return 0;
  int64_t bytes = kContext + kWorkspaces;
  if (ranks > 1) bytes += kCommunicator;
  if (by_owner) bytes += (std::min(ranks, kRanksOfHost) - 1) * kAllToAllPeer;
  return bytes;
}

Device here_device(Dtype dtype, int64_t threads) {
  constexpr int64_t kRows = 64, kWide = 1024, kNarrow = 16;
  threads = threads > 0 ? threads : usable_cores();
  const int64_t outputs = 512 * threads, many = 4 * outputs;
  Device d{.name = "cpu"};
  const auto logits = static_cast<double>(kRows * outputs);
  const double wide = head_seconds(kRows, outputs, kWide, threads) / logits;
  // Of a machine that was held up in one of the two the difference says nothing: at least half of the wide one is
  // GEMMs.
  const double narrow = std::min(head_seconds(4 * kRows, many, kNarrow, threads) / (16 * logits), wide / 2);
  d.operations = 2 * kWide / (wide - narrow);
  d.logit_seconds = std::max(narrow - 2 * kNarrow / d.operations, 0.0);
  d.bandwidth = read_bandwidth(threads);
  // GEMMs of bf16 are LibTorch's, which is not loaded here: AVX512-BF16 takes two numbers where f32 takes one.
  const bool pairs = dtype == Dtype::bf16 && kernels::bf16_gemm().pairs;
  if (pairs) d.operations *= 2;
  d.forward = 0.91, d.update = 0.96, d.head = 1.7, d.decode = 1.04, d.read = 1, d.optimizer = 0.5;
  d.half_width = 46, d.layer_seconds = 13e-6, d.cache = 32e6, d.token_seconds = 2.3e-6, d.number_seconds = 0.5e-9;
  d.note = str(threads, threads == 1 ? " thread" : " threads", ", measured now: ", fixed(d.operations * 1e-9, 0),
               " GFLOP/s of ", pairs ? "bf16 (twice f32, assumed)" : "f32", ", ", fixed(d.bandwidth * 1e-9, 1),
               " GB/s, ", fixed(d.logit_seconds * 1e9, 2), " ns a logit");
  return d;
}

}  // namespace ucas
