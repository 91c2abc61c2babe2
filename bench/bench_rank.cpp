// One rank of N without the others: what its update takes of memory and CPU time, beside the plan. The other ranks
// answer nothing: what they would send keeps the values that are here, so sizes and calls are those of N ranks and
// numbers are not. Random weights, sequences of one length; a rank's own micro-batches alone. Buffers of the network
// are not there.
//   build/bench_rank base=DIR [shape=m25] [rank=1] [ranks=16] [dtype=bf16] [shard=moments|gradients]
//   [reduce=sum|micro]
//                    [sequences=2] (of this rank) [length=256] [micro=256] [recompute=0] [threads=1] [device=cpu]
// The first call makes a checkpoint of the shape in DIR, and the next ones measure.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <malloc.h>

#include <fstream>
#include <map>
#include <memory>

#include "base/files/file.h"
#include "base/process/machine.h"
#include "bench_model.h"
#include "config/plan/plan.h"
#include "config/train_config.h"
#include "model/stored.h"
#include "model/tensor/stream.h"
#include "rollout/sampling/kv_budget.h"
#include "sharding/gradient_schedule.h"
#include "sharding/sharded_gradients.h"
#include "train/optimizer/optimizer.h"

using namespace ucas;

namespace {

// Rank `rank` of `size` whose calls find nobody.
class LoneRank final : public Ranks {
 public:
  LoneRank(int64_t rank, int64_t size) : Ranks(rank, size) {}
  void barrier(const char* /*what*/) override {}
  std::vector<std::string> all_gather(const char* /*what*/, const std::string& bytes) override {
    return std::vector<std::string>(static_cast<size_t>(size()), bytes);
  }
  void all_reduce(const char* /*what*/, std::span<const at::Tensor> tensors) override { count(tensors); }
  void reduce(const char* /*what*/, OfRanks to) override { count_all(to); }
  void add_in_order(const char* /*what*/, OfRanks to, std::span<const at::Tensor> sums, int64_t givers) override {
    const at::NoGradGuard no_grad;
    count_all(to);
    for (int64_t giver = 0; giver < givers; ++giver)
      for (size_t i = 0; i < sums.size(); ++i) sums[i].add_(to[static_cast<size_t>(rank())][i]);
  }
  using Ranks::broadcast;
  void broadcast(const char* /*what*/, OfRanks from) override { count_all(from); }

 private:
  void count(std::span<const at::Tensor> tensors) {
    for (const at::Tensor& tensor : tensors) bytes_ += static_cast<int64_t>(tensor.nbytes());
  }
  void count_all(OfRanks lists) {
    for (const std::vector<at::Tensor>& list : lists) count(list);
  }
};

// Most memory since the last call, MiB: of the process on the CPU, of tensors on a GPU.
double most_memory(at::Device device) {
  if (!device.is_cpu()) return static_cast<double>(peak_memory(device, true)) / 1048576;
  double kilobytes = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) kilobytes = std::stod(line.substr(6));
  std::ofstream("/proc/self/clear_refs") << "5";
  return kilobytes / 1024;
}

struct Asked {
  explicit Asked(const Arguments& args)
      : config(config_of(args.word("shape", "m25"))),
        rank(args.number("rank", 1)),
        ranks(args.number("ranks", 16)),
        sequences(args.number("sequences", 2)),
        length(args.number("length", 256)),
        micro(args.number("micro", 256)),
        device(args.word("device", "cpu") == "cuda" ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU)),
        base(args.word("base", "")) {
    train.dtype = args.word("dtype", "bf16") == "f32" ? Dtype::f32 : Dtype::bf16;
    train.threads = args.number("threads", 1);
    if (args.word("shard", "moments") == "gradients") train.update.shard = Shard::gradients;
    train.update.reduce = args.word("reduce", "sum") == "micro" ? Reduce::micro : Reduce::sum;
    train.update.micro_batch_tokens = micro;
    train.data.max_prompt_length = 1;
    train.rollout.response_length = length - 1;
    if (args.number("recompute", 0) != 0) train.update.recompute = Recompute::block;
  }
  ModelConfig config;
  int64_t rank, ranks, sequences, length, micro;
  at::Device device;
  std::string base;
  TrainConfig train = {};
};

std::vector<Packed> micro_batches(const Asked& asked) {
  Rng rng(1, 2);
  std::vector<Packed> micros;
  for (int64_t s = 0; s < asked.sequences; ++s) {
    if (micros.empty() || micros.back().begin.back() + asked.length > asked.micro) micros.emplace_back();
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < asked.length; ++i)
      tokens.push_back(static_cast<int32_t>(rng.below(asked.config.vocab_size)));
    micros.back().append(tokens);
  }
  return micros;
}

void measure(const Asked& asked) {
  std::vector<std::pair<std::string, double>> peaks;
  std::vector<double> seconds;
  double began = cpu_seconds();
  const auto phase_ends = [&](const char* phase) {
    peaks.emplace_back(phase, most_memory(asked.device));
    seconds.push_back(cpu_seconds() - began);
    began = cpu_seconds();
  };
  LoneRank ranks(asked.rank, asked.ranks);
  const auto model =
      load_model(asked.base, asked.device,
                 {.dtype = asked.train.dtype, .trained = Trained::all, .recompute = asked.train.update.recompute},
                 own_masters(asked.rank, asked.ranks));
  const bool by_owner = asked.train.update.gradients_by_owner();
  Optimizer optimizer(model->trainable(), {}, Optimizer::Path::by_device, {.rank = asked.rank, .ranks = asked.ranks});
  optimizer.shard_over(ranks, by_owner ? Shard::gradients : Shard::moments, model->bf16_copies());
  phase_ends("load");

  const std::vector<Packed> micros = micro_batches(asked);
  const auto count = static_cast<int64_t>(micros.size());
  std::vector<double> metrics(1);
  for (int update = 0; update < 2; ++update) {
    const auto schedule = make_schedule({.ranks = &ranks,
                                         .reduce = asked.train.update.reduce,
                                         .shard = asked.train.update.shard,
                                         .owners = optimizer.owners()},
                                        *model, model->trainable(), metrics);
    schedule->learn(count * asked.ranks, [&](int64_t micro) {
      const Packed& packed = micros[static_cast<size_t>(micro % count)];
      const HeadStats stats = model->head().stats(model->hidden(packed), packed.token, 1.0);
      (-(stats.logprob.sum() + stats.entropy.sum() * 1e-3)).backward();
      metrics[0] += 1;
    });
    schedule->finish();
    optimizer.step(1e-6);
    model->refresh();
    phase_ends(update == 0 ? "update" : "update 2");
  }
  PlannedModels planned = planned_models(asked.train, asked.config);
  planned.ranks = asked.ranks;
  if (!asked.device.is_cpu()) planned.gpu = usable_gpu(cuda_memory(0));
  const MemoryPlan plan = plan_memory(asked.train, planned);
  std::printf("rank %ld of %ld, %s, %ld micro-batches of at most %ld tokens, given to calls %.1f MB\n",
              static_cast<long>(asked.rank), static_cast<long>(asked.ranks), word_of(asked.train.dtype),
              static_cast<long>(count), static_cast<long>(asked.micro), static_cast<double>(ranks.bytes()) * 1e-6);
  for (size_t i = 0; i < peaks.size(); ++i) {
    const std::string phase = peaks[i].first.substr(0, peaks[i].first.find(' '));
    const auto found = std::ranges::find(plan.phases, phase);
    const double of_plan = static_cast<double>(plan.total(static_cast<size_t>(found - plan.phases.begin()))) / 1048576;
    std::printf("%-9s %8.0f MiB, planned %8.0f   %6.2f s\n", peaks[i].first.c_str(), peaks[i].second, of_plan,
                seconds[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // what is freed goes back, as the tensors of a large model do
  const Arguments args(argc, argv);
  args.set_threads();
  const Asked asked(args);
  if (exists(path_join(asked.base, "config.json"))) {
    measure(asked);
  } else {
    make_directories(asked.base);
    save_model(*make_model(asked.config, 1, at::kCPU, {.dtype = Dtype::bf16, .trained = Trained::none}), asked.base);
    std::printf("made %s: call it again\n", asked.base.c_str());
  }
  return 0;
}
