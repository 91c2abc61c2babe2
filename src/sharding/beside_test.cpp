// What travels beside a pass: gradients of the block before, weights of the next one.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/transformer.h"
#include "sharding/sharded_gradients.h"
#include "sharding/sharded_weights.h"
#include "support/engine/small_models.h"
#include "support/patience.h"

namespace ucas {
namespace {

// Rank 0 of two, whose calls do nothing.
class QuietRanks : public Ranks {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 2; }
  void barrier(const char* /*what*/) override {}
  std::vector<std::string> all_gather(const char* /*what*/, const std::string& bytes) override {
    return {bytes, bytes};
  }
  void all_reduce(const char* /*what*/, std::span<const at::Tensor> /*tensors*/) override {}
  void reduce(const char* /*what*/, OfRanks /*to*/) override {}
  void add_in_order(const char* /*what*/, OfRanks /*to*/, std::span<const at::Tensor> /*sums*/,
                    int64_t /*givers*/) override {}
  void broadcast(const char* /*what*/, OfRanks /*from*/) override {}
  void send(const char* /*what*/, std::span<const at::Tensor> /*tensors*/, int64_t /*from*/, int64_t /*to*/) override {}
  int64_t add_to_counter(const std::string& /*name*/, int64_t more) override { return more; }
  std::unique_ptr<Ranks> open_channel() override { return nullptr; }
};

// Its wire carries what it is given once the pass is at the next block.
class LateRanks final : public QuietRanks {
 public:
  void reduce(const char* /*what*/, OfRanks /*to*/) override { carry(); }
  void add_in_order(const char* /*what*/, OfRanks /*to*/, std::span<const at::Tensor> /*sums*/,
                    int64_t /*givers*/) override {
    carry();
  }

  std::atomic<int64_t> begun = 0;  // passes of blocks that have begun
  std::vector<int64_t> carried;    // how many had when the wire was free again

 private:
  void carry() {
    const auto needed = static_cast<int64_t>(carried.size()) + 2;
    if (std::ssize(carried) < 1) testing::wait_until([&] { return begun >= needed; });
    carried.push_back(begun);
  }
};

// Were the call made before the pass goes on, it would wait for ever.
TEST(sharded_gradients, of_a_block_travel_beside_the_backward_pass_of_the_next_one) {
  for (const Reduce reduce : {Reduce::sum, Reduce::micro}) {
    const auto model = make_model(testing::small_shape(), 3, at::kCPU, {});
    const std::vector<NamedTensor> parameters = model->trainable();
    std::vector<int64_t> owners;
    for (size_t i = 0; i < parameters.size(); ++i) owners.push_back(static_cast<int64_t>(i % 2));
    LateRanks ranks;
    ShardedGradients shards(*model, parameters, owners, ranks, {reduce, Shard::gradients});
    shards.begin();
    const auto layers = static_cast<size_t>(model->config().num_hidden_layers);
    ASSERT_GE(layers, 2u);
    shards.pass(
        [&] {
          for (size_t layer = layers; layer-- > 0;) {
            shards.before(layer);
            ++ranks.begun;
            shards.after(layer);
          }
        },
        2);
    // Every block, and what stands outside of them; the first had to wait for the second to begin.
    EXPECT_EQ(ranks.carried.size(), layers + 1);
    EXPECT_GE(ranks.carried.front(), 2);
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ(parameters[i].tensor.grad().defined(), owners[i] == 0) << parameters[i].name;
    }
  }
}

// The same of weights: none but the first block's comes in the call that asks for it.
class LateWeights final : public QuietRanks {
 public:
  LateWeights(std::atomic<int64_t>& asked, std::function<void()> look, std::vector<int64_t> when)
      : asked_(asked), look_(std::move(look)), when_(std::move(when)) {}
  void broadcast(const char* /*what*/, OfRanks /*from*/) override {
    const int64_t after = when_.at(calls_++);
    testing::wait_until([&] { return asked_ >= after; });
    look_();
  }

 private:
  std::atomic<int64_t>& asked_;
  const std::function<void()> look_;
  const std::vector<int64_t> when_;  // a call's: how many blocks were asked for and are being computed
  size_t calls_ = 0;
};

// Two passes there, one back: each block comes while the one before is computed, and never a third one is there.
TEST(sharded_weights, of_the_next_block_travel_while_a_block_is_computed) {
  ModelConfig shape = testing::small_shape();
  shape.num_hidden_layers = 4;
  const auto model = make_model(shape, 3, at::kCPU, {.blocks_apart = true});
  const int64_t layers = shape.num_hidden_layers;
  std::vector<int64_t> when{0};
  const auto expect = [&](int64_t first) {
    for (int64_t layer = 1; layer < layers; ++layer) when.push_back(first + layer);
  };
  expect(0);
  when.push_back(layers);  // the second pass begins with a block that is not there, and no one knew
  expect(layers);
  expect(2 * layers);
  std::atomic<int64_t> asked = 0;
  std::vector<int64_t> whole;  // blocks that were, in each call
  const auto look = [&] {
    const auto& blocks = model->weights().layers;
    whole.push_back(std::ranges::count_if(blocks, [](const Layer& layer) { return has_values(layer.qkv.weight); }));
  };
  ShardedWeights weights(*model, std::make_unique<LateWeights>(asked, look, when), false);
  weights.drop();
  const auto pass = [&](bool back) {
    for (int64_t i = 0; i < layers; ++i) {
      weights.need(static_cast<size_t>(back ? layers - 1 - i : i), back);
      ++asked;
    }
  };
  pass(false);
  pass(false);
  pass(true);
  EXPECT_EQ(whole.size(), when.size()) << "and none is got in vain";
  for (size_t i = 0; i < whole.size(); ++i) {
    const bool alone = i == 0 || static_cast<int64_t>(i) == layers;
    EXPECT_EQ(whole[i], alone ? 1 : 2) << i;
  }
}

}  // namespace
}  // namespace ucas
