#include "sharding/sharded_gradients.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "model/transformer.h"
#include "support/engine/small_models.h"
#include "support/patience.h"

namespace ucas {
namespace {

// Rank 0 of two, whose wire carries what it is given once the pass is at the next block.
class LateRanks final : public Ranks {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 2; }
  void barrier(const char* /*what*/) override {}
  std::vector<std::string> all_gather(const char* /*what*/, const std::string& bytes) override {
    return {bytes, bytes};
  }
  void all_reduce(const char* /*what*/, std::span<const at::Tensor> /*tensors*/) override {}
  void reduce(const char* /*what*/, OfRanks /*to*/) override { carry(); }
  void add_in_order(const char* /*what*/, OfRanks /*to*/, std::span<const at::Tensor> /*sums*/,
                    int64_t /*givers*/) override {
    carry();
  }
  void broadcast(const char* /*what*/, OfRanks /*from*/) override {}
  void send(const char* /*what*/, std::span<const at::Tensor> /*tensors*/, int64_t /*from*/, int64_t /*to*/) override {}
  int64_t add_to_counter(const std::string& /*name*/, int64_t more) override { return more; }

  std::unique_ptr<Ranks> open_channel() override { return nullptr; }

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

}  // namespace
}  // namespace ucas
