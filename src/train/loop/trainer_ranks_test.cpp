// Trainings of several ranks, as threads of this process (tests/support/engine/thread_ranks.h).
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "core/metrics.h"
#include "records/run/steps.h"
#include "support/engine/thread_ranks.h"
#include "support/engine/tiny_training.h"

namespace ucas {
namespace {

using testing::result_of;
using testing::ThreadRanks;
using testing::TinyTraining;

TEST(thread_ranks, gather_sum_and_broadcast_reach_every_rank) {
  for (int64_t size : {2, 3}) {
    ThreadRanks::run(size, [&](const std::shared_ptr<Ranks>& ranks) {
      const double rank = static_cast<double>(ranks->rank());
      EXPECT_EQ(ranks->all_gather("texts", str(ranks->rank())).back(), str(size - 1));
      const at::Tensor sum = at::full({5}, rank + 1);
      ranks->all_reduce("sum", {{sum}});
      EXPECT_EQ(sum[0].item<double>(), size * (size + 1) / 2);
      const at::Tensor given = at::full({3}, rank);
      ranks->broadcast("given", {{given}}, size - 1);
      EXPECT_EQ(given[2].item<double>(), size - 1);
      // 2^24 + 1 is 2^24 in f32: the order shows.
      const std::vector<std::vector<at::Tensor>> to(static_cast<size_t>(size),
                                                    {at::full({4}, rank == 0 ? 16777216 : 1)});
      const at::Tensor added = at::full({4}, 1.0);
      ranks->add_in_order("in order", to, {{added}}, size);
      EXPECT_EQ(added[3].item<double>(), 16777216);
      ranks->add_in_order("of the first", to, {{added}}, 1);
      EXPECT_EQ(added[0].item<double>(), 2 * 16777216);
      EXPECT_TRUE(ranks->any("one", ranks->rank() == 1));
      EXPECT_FALSE(ranks->any("none", false));
    });
  }
}

TEST(thread_ranks, a_rank_that_fails_ends_the_others_and_ranks_at_different_calls_say_so) {
  EXPECT_THROW(ThreadRanks::run(2,
                                [](const std::shared_ptr<Ranks>& ranks) {
                                  if (ranks->leads()) throw Error(ErrorKind::io, "no room");
                                  ranks->barrier("waiting");
                                }),
               Error);
  try {
    ThreadRanks::run(2, [](const std::shared_ptr<Ranks>& ranks) { ranks->barrier(ranks->leads() ? "one" : "other"); });
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::ranks);
  }
}

std::string bytes_of(Model& model) {
  std::string bytes;
  for (const NamedTensor& p : model.parameters()) {
    const at::Tensor values = p.tensor.detach().contiguous();
    bytes.append(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
  }
  return bytes;
}

// The weights that each rank ends with.
std::vector<std::string> train_on_ranks(const TinyTraining& tiny, int64_t size, const std::string& more,
                                        const std::string& out) {
  std::mutex mutex;
  std::vector<std::string> weights(static_cast<size_t>(size));
  ThreadRanks::run(size, [&](const std::shared_ptr<Ranks>& ranks) {
    Training training = open_training(tiny.config(more), out, "test", false, ranks);
    EXPECT_EQ(testing::train(training), kDone);
    const std::lock_guard lock(mutex);
    weights[static_cast<size_t>(ranks->rank())] = bytes_of(*training.policy.model);
  });
  return weights;
}

TEST(trainer_of_ranks, all_ranks_end_with_the_same_weights_and_one_log) {
  const TinyTraining tiny;
  const std::vector<std::string> weights = train_on_ranks(tiny, 2, "", tiny.out());
  EXPECT_EQ(weights[0], weights[1]);
  std::vector<std::string> remarks;
  const StepTable steps = read_steps(path_join(tiny.out(), "steps.jsonl"), remarks);
  EXPECT_EQ(steps.step, (std::vector<double>{1, 2, 3}));
  EXPECT_GT(steps.last(metric::perf_ranks_bytes.key), 0);
}

// Shards are summed after each micro-batch and not at the end: the order of sums differs, and nothing else.
TEST(trainer_of_ranks, shards_of_gradients_learn_the_same_but_for_the_order_of_sums) {
  const TinyTraining tiny;
  for (const char* shard : {"moments", "gradients"}) {
    const std::string more = str("train.steps = 1\nupdate.shard = \"", shard, "\"");
    const std::vector<std::string> weights = train_on_ranks(tiny, 2, more, tiny.out(shard));
    EXPECT_EQ(weights[0], weights[1]) << shard;
  }
  std::vector<std::string> remarks;
  const StepTable moments = read_steps(path_join(tiny.out("moments"), "steps.jsonl"), remarks);
  const StepTable gradients = read_steps(path_join(tiny.out("gradients"), "steps.jsonl"), remarks);
  for (const Metric* each : {&metric::actor_grad_norm, &metric::actor_pg_loss, &metric::actor_ppo_kl}) {
    const double expected = moments.last(each->key);
    EXPECT_NEAR(gradients.last(each->key), expected, 1e-4 * (1 + std::abs(expected))) << each->key;
  }
  EXPECT_GT(moments.last(metric::actor_grad_norm.key), 0);
}

TEST(trainer_of_ranks, the_responses_are_those_of_one_process) {
  const TinyTraining tiny;
  train_on_ranks(tiny, 2, "train.steps = 1", tiny.out("two"));
  testing::train(tiny.config("train.steps = 1"), tiny.out("one"));
  const std::string one = read_file(RunDirectory::watch(tiny.out("one")).rollout_file(1), 1 << 20);
  EXPECT_EQ(read_file(RunDirectory::watch(tiny.out("two")).rollout_file(1), 1 << 20), one);
}

TEST(trainer_of_ranks, ranks_with_other_options_are_refused_before_a_directory_is_made) {
  const TinyTraining tiny;
  try {
    ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& ranks) {
      open_training(tiny.config(ranks->leads() ? "" : "seed = 1"), tiny.out(), "test", false, ranks);
    });
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("seed = 0 at rank 0, 1 at rank 1"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(exists(tiny.out()));
}

TEST(trainer_of_ranks, a_run_of_ranks_goes_on_as_if_it_had_not_stopped) {
  const TinyTraining tiny;
  train_on_ranks(tiny, 2, "train.steps = 4", tiny.out("whole"));
  train_on_ranks(tiny, 2, "train.steps = 2", tiny.out("parts"));
  ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& ranks) {
    Training training = resume_training(tiny.out("parts"), {{"train.steps", int64_t{4}, "test"}}, ranks);
    EXPECT_EQ(testing::train(training), kDone);
  });
  EXPECT_EQ(result_of(tiny.out("parts")), result_of(tiny.out("whole")));
}

}  // namespace
}  // namespace ucas
