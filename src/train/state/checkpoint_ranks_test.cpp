// Checkpoints that several ranks write together and any number of ranks reads, as threads of this process.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "hf/parameters.h"
#include "records/run/manifest.h"
#include "sharding/sharded_gradients.h"
#include "support/engine/counted_memory.h"
#include "support/engine/process_ranks.h"
#include "support/engine/thread_ranks.h"
#include "support/temporary_directory.h"
#include "train/state/checkpoint.h"

namespace ucas {
namespace {

using testing::CountedMemory;
using testing::in_processes;
using testing::TemporaryDirectory;
using testing::ThreadRanks;

ModelConfig shape_of_ranks(const std::string& dtype, int64_t width = 32) {
  ModelConfig config;
  config.hidden_size = width;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  config.intermediate_size = 5 * width;
  config.vocab_size = 161;
  config.torch_dtype = dtype;
  return config;
}

std::string bytes_of_tensor(const at::Tensor& t) {
  const at::Tensor host = t.detach().contiguous();
  return {static_cast<const char*>(host.const_data_ptr()), host.nbytes()};
}

// A policy of one of several ranks, or of a process alone, loaded as a training loads it.
struct RankPolicy {
  RankPolicy(const std::string& directory, const ModelOptions& options, const OptimizerConfig& config,
             Ranks* ranks = nullptr, bool on_host = false)
      : placement{.rank = ranks == nullptr ? 0 : ranks->rank(),
                  .ranks = ranks == nullptr ? 1 : ranks->size(),
                  .on_host = on_host},
        model(load_model(directory, at::kCPU, options, own_masters(placement.rank, placement.ranks))),
        optimizer(model->trainable(), config, Optimizer::Path::by_device, with_copies()) {
    if (ranks != nullptr && !ranks->alone()) optimizer.shard_over(*ranks, Shard::moments, model->bf16_copies());
  }
  void train(int64_t step) {
    for (const NamedTensor& p : model->trainable()) {
      const at::Tensor x = at::arange(p.tensor.numel(), at::kFloat).view(p.tensor.sizes());
      p.tensor.mutable_grad() = (x * 0.7 + static_cast<double>(step)).sin();
    }
    optimizer.step(0.01);
    model->refresh();
  }
  // All that is here, by name: moments, f32 weights, and what passes read.
  std::map<std::string, std::string> here() {
    std::map<std::string, std::string> all;
    for (const NamedTensor& t : optimizer.state()) all[t.name] = bytes_of_tensor(t.tensor);
    for (const NamedTensor& p : model->trainable()) {
      if (const at::Tensor values = optimizer.values_of(p.tensor); values.defined())
        all[p.name] = bytes_of_tensor(values);
    }
    size_t i = 0;
    for (const Bf16Copy& copy : model->bf16_copies()) all[str("copy ", i++)] = bytes_of_tensor(copy.compute);
    return all;
  }

  Placement with_copies() const {
    Placement with = placement;
    with.copies = model->bf16_copies();
    return with;
  }

  const Placement placement;
  std::unique_ptr<Model> model;
  Optimizer optimizer;
};

struct SavedKind {
  std::string stored;  // the type of the base's file
  ModelOptions options = {};
  OptimizerConfig optimizer = {.lr = 0.01};
};
std::vector<SavedKind> saved_kinds() {
  const LoraConfig lora{.rank = 3, .modules_to_save = {"embed_tokens"}};
  const OptimizerConfig muon{.lr = 0.01, .kind = OptimizerKind::muon, .moments = MomentType::int8};
  return {{"float32", {.dtype = Dtype::bf16}},
          {"bfloat16", {.dtype = Dtype::bf16}, muon},
          {"float16", {.dtype = Dtype::bf16}, {.lr = 0.01, .moments = MomentType::bf16}},
          {"float32", {.dtype = Dtype::f32}, muon},
          {"bfloat16", {.dtype = Dtype::f32}},
          {"float32", {.dtype = Dtype::bf16, .trained = Trained::adapter, .lora = lora}}};
}

std::string make_base(const TemporaryDirectory& directory, const SavedKind& kind, int64_t width = 32) {
  const std::string base = path_join(directory.path(), str("base-", kind.stored, "-", width));
  if (exists(base)) return base;
  make_directories(base);
  save_model(*make_model(shape_of_ranks(kind.stored, width), 3, at::kCPU), base);
  return base;
}

// What differs between a rank's part and the whole; "" if it is of it.
std::string difference_of_part(const std::map<std::string, std::string>& part,
                               const std::map<std::string, std::string>& whole) {
  for (const auto& [name, bytes] : part) {
    const auto found = whole.find(name);
    if (found == whole.end()) return name + " is too much";
    if (found->second != bytes) return name + " differs";
  }
  return "";
}

// Offloaded or not.
TEST(checkpoint_ranks, any_number_of_ranks_goes_on_from_what_any_number_has_saved) {
  for (const SavedKind& kind : saved_kinds()) {
    const TemporaryDirectory directory;
    const std::string base = make_base(directory, kind);
    RankPolicy one(base, kind.options, kind.optimizer);
    const RunDirectory run = RunDirectory::create(path_join(directory.path(), "run"), "", {});
    int64_t step = 0;
    for (const int64_t size : {4, 1, 3, 2, 2}) {
      const FoundCheckpoint found{run.checkpoint(step), step};
      ++step;
      one.train(step);
      const auto whole = one.here();
      std::mutex mutex;
      std::map<std::string, std::string> all;
      ThreadRanks::run(size, [&](const std::shared_ptr<Ranks>& ranks) {
        RankPolicy policy(step > 1 ? found.path : base, kind.options, kind.optimizer, ranks.get(), step % 2 == 0);
        if (step > 1) load_checkpoint(found, *policy.model, policy.optimizer, {});
        policy.train(step);
        save_checkpoint(run, step, *policy.model, policy.optimizer, {}, "{}\n", "", 9);
        EXPECT_EQ(policy.optimizer.steps(), step);
        const auto part = policy.here();
        EXPECT_EQ(difference_of_part(part, whole), "")
            << kind.stored << " by " << word_of(kind.options.dtype) << ", step " << step << ", " << size << " ranks";
        const std::lock_guard lock(mutex);
        all.insert(part.begin(), part.end());
      });
      EXPECT_EQ(all.size(), whole.size()) << "together they have all of it";
      const std::vector<std::string> files = list_directory(path_join(run.checkpoint(step), "state"));
      EXPECT_EQ(std::ranges::count(files, str("optimizer-", size - 1, "-of-", size, ".safetensors")), size > 1 ? 1 : 0);
      EXPECT_EQ(std::ranges::count(files, "optimizer.safetensors"), size > 1 ? 0 : 1);
    }
    const auto found = newest_checkpoint(run);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->step, step) << "rank 0 finds it good";
  }
}

// Each file call of any rank fails in turn: all ranks say so, nothing of the save stays, and the one before is good.
TEST(checkpoint_ranks, a_disk_that_is_full_for_one_ends_the_save_of_all) {
  const SavedKind kind = saved_kinds().front();
  const TemporaryDirectory directory;
  const std::string base = make_base(directory, kind);
  const LogSink before = set_log_sink([](LogLevel, const std::string&) {});
  int64_t failed = 0;
  ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& ranks) {
    RankPolicy policy(base, kind.options, kind.optimizer, ranks.get());
    std::optional<RunDirectory> own;
    if (ranks->leads()) own = RunDirectory::create(path_join(directory.path(), "run"), "", {});
    ranks->barrier("the run is there");
    if (!own) own = RunDirectory::watch(path_join(directory.path(), "run"));
    policy.train(1);
    const auto save = [&](int64_t step) {
      save_checkpoint(*own, step, *policy.model, policy.optimizer, {}, "{}\n", "", 2);
    };
    save(1);
    policy.train(2);
    bool fails = true;
    for (int64_t n = 1; fails; n += 3) {
      ranks->barrier("before");
      if (ranks->leads()) set_fault(str("write:", n, ":28"));
      ranks->barrier("a fault is set");
      fails = false;
      try {
        save(2);
      } catch (const Error& error) {
        fails = true;
        EXPECT_EQ(error.word(), "io") << error.what();
        EXPECT_EQ(error.exit_code(), kIoFailure);
        EXPECT_NE(std::string(error.what()).find("checkpoint of step 2 not saved"), std::string::npos);
      }
      EXPECT_EQ(ranks->any("who fails", fails), fails) << "all or none";
      if (!ranks->leads()) continue;
      set_fault("");
      failed += fails ? 1 : 0;
      EXPECT_EQ(newest_checkpoint(*own)->step, fails ? 1 : 2);
      EXPECT_EQ(list_directory(own->checkpoints()).size(), fails ? 1U : 2U);
    }
  });
  set_log_sink(before);
  EXPECT_GT(failed, 5);
}

TEST(checkpoint_ranks, a_part_that_is_gone_or_stands_twice_is_named) {
  const SavedKind kind = saved_kinds().front();
  const TemporaryDirectory directory;
  const std::string base = make_base(directory, kind);
  const RunDirectory run = RunDirectory::create(path_join(directory.path(), "run"), "", {});
  ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& ranks) {
    RankPolicy policy(base, kind.options, kind.optimizer, ranks.get());
    policy.train(1);
    save_checkpoint(run, 1, *policy.model, policy.optimizer, {}, "{}\n", "", 2);
  });
  const std::string state = path_join(run.checkpoint(1), "state"),
                    part = path_join(state, "optimizer-1-of-2.safetensors");
  const auto refusal = [&] {
    RankPolicy policy(base, kind.options, kind.optimizer);
    try {
      load_checkpoint({run.checkpoint(1), 1}, *policy.model, policy.optimizer, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(), "");
  write_file(path_join(state, "optimizer-2-of-3.safetensors"), read_file(part, 1 << 24));
  EXPECT_NE(refusal().find(" is in "), std::string::npos) << refusal();
  remove_all(path_join(state, "optimizer-2-of-3.safetensors"));
  remove_all(part);
  EXPECT_NE(refusal().find("optimizer-*-of-*.safetensors: tensor "), std::string::npos) << refusal();
  EXPECT_NE(check_seal(run.checkpoint(1), false).problem.find("optimizer-1-of-2.safetensors is missing"),
            std::string::npos);
}

int64_t largest_of(Model& model) {
  int64_t largest = 0;
  for (const NamedTensor& p : model.parameters()) largest = std::max(largest, p.tensor.numel());
  return largest;
}

// A rank's bf16 weights, its masters and moments, and one tensor in f32 on its way, with the copy in which small ones
// travel: at no instant of loading, restoring and saving it has more, where one process has all of them.
TEST(checkpoint_ranks, masters_and_moments_are_never_whole_on_any_rank) {
  SavedKind kind = saved_kinds().front();
  const TemporaryDirectory directory;
  const std::string base = make_base(directory, kind, 64);
  const RunDirectory run = RunDirectory::create(path_join(directory.path(), "run"), "", {});
  constexpr int64_t kSize = 3;
  const auto said = in_processes(kSize, [&](Ranks& ranks) -> std::string {
    CountedMemory memory;
    const int64_t before = memory.now();
    int64_t all = 0, mine = 0, narrow = 0, most = 0;
    for (int64_t step = 1; step < 3; ++step) {
      memory.begin();
      RankPolicy policy(step == 1 ? base : run.checkpoint(1), kind.options, kind.optimizer, &ranks);
      if (step == 2) load_checkpoint({run.checkpoint(1), 1}, *policy.model, policy.optimizer, {});
      const std::vector<NamedTensor> trained = policy.model->trainable();
      const std::vector<int64_t> owners = policy.optimizer.owners();
      all = mine = narrow = 0;
      for (const Bf16Copy& copy : policy.model->bf16_copies()) narrow += copy.compute.numel();
      for (size_t i = 0; i < trained.size(); ++i) {
        all += trained[i].tensor.numel();
        mine += owners[i] == ranks.rank() ? trained[i].tensor.numel() : 0;
      }
      // Vectors are f32 on every rank; of what is owned a master and two moments.
      const int64_t kept = 2 * narrow + 4 * (all - narrow) + 12 * mine;
      most = kept + 2 * 4 * largest_of(*policy.model) + 4096;
      if (memory.peak() - before > most) return str("loading takes ", memory.peak() - before, " of ", most);
      if (memory.now() - before > kept + 4096) return str("keeps ", memory.now() - before, " of ", kept);
      policy.train(step);
      for (const NamedTensor& p : trained) p.tensor.mutable_grad().reset();
      memory.begin();
      save_checkpoint(run, step, *policy.model, policy.optimizer, {}, "{}\n", "", 9);
      if (memory.peak() - before > most) return str("saving takes ", memory.peak() - before, " of ", most);
    }
    const int64_t whole = 2 * narrow + 4 * all + 8 * mine;
    return most < whole ? "" : str("the test shows nothing: ", most, " of ", whole);
  });
  EXPECT_EQ(said, std::vector<std::string>(kSize));
}

}  // namespace
}  // namespace ucas
