// What a recorded step of decoding may not do, found without a device: what goes into a kernel by value is recorded
// with it, so that no seed, step, length or key may be among it; and no number may be read before it is written, which
// a replay would find in memory that was another's.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/str.h"
#include "model/backend/gpu/gpu_forward.h"
#include "model/backend/gpu/gpu_head.h"
#include "model/decoder.h"
#include "support/engine/emulation.h"
#include "support/engine/small_models.h"
#include "support/gpu_emulation.h"

namespace ucas {
namespace {

std::vector<std::string> calls;  // of the table below: a kernel's name and what it was given by value

template <class... Values>
void note(const char* kernel, const Values&... values) {
  std::string line = kernel;
  ((line += str(" ", values)), ...);
  calls.push_back(line);
}

// The emulation, each call noted first.
gpu::Table noting_table() {
  gpu::Table t = gpu::host();
  t.embed = [](gpu::Stream s, const gpu::Embed& a) {
    note("embed", a.rows, a.width);
    gpu::host().embed(s, a);
  };
  t.add_norm = [](gpu::Stream s, const gpu::AddNorm& a) {
    note("add_norm", a.rows, a.width, a.eps, a.y != nullptr, a.out != nullptr);
    gpu::host().add_norm(s, a);
  };
  t.apply_rope_and_store_kv = [](gpu::Stream s, const gpu::RopeAndStoreKv& a) {
    note("rope", a.rows, a.H, a.K, a.d, a.eps, a.slot != nullptr, a.cache.block_stride, a.cache.blocks_of_slot);
    gpu::host().apply_rope_and_store_kv(s, a);
  };
  t.swiglu = [](gpu::Stream s, const gpu::Swiglu& a) {
    note("swiglu", a.rows, a.width);
    gpu::host().swiglu(s, a);
  };
  t.head_stats_of_tiles = [](gpu::Stream s, const gpu::HeadStatsOfTiles& a) {
    note("tiles", a.rows, a.columns, a.stride, a.first_tile, a.tiles, a.inverse_temperature);
    gpu::host().head_stats_of_tiles(s, a);
  };
  t.sample = [](gpu::Stream s, const gpu::SampleToken& a) {
    note("sample", a.rows, a.vocab, a.stride, a.tiles, a.inverse_temperature, a.top_k, a.top_p, a.min_p);
    gpu::host().sample(s, a);
  };
  t.attend_decode = [](gpu::Stream s, const gpu::AttendDecode& a) {
    note("attend", a.rows, a.H, a.K, a.d, a.window, a.most_blocks, a.scale, a.q_stride, a.cache.block_stride,
         a.cache.blocks_of_slot);
    gpu::host().attend_decode(s, a);
  };
  return t;
}

struct Decoded {
  std::vector<std::string> calls;
  std::vector<SampledToken> tokens;
};

// Sixteen tokens of three rows that begin behind a prompt of so many tokens.
Decoded decode(int32_t prompt, const SampleKey& key, const SamplingConfig& sampling) {
  const c10::NoGradGuard no_grad;
  const auto native = make_model(testing::small_shape(), 3, at::kCPU, inference(Dtype::bf16));
  static const gpu::Table table = noting_table();
  const ModelConfig& config = native->config();
  const gpu::Table* usual = std::exchange(emulation().table, &table);
  GpuForward forward(config, native->weights(), native->options());
  emulation().table = usual;
  const auto head = make_gpu_head(native->weights().head);
  const auto cache = forward.make_cache({.slots = 3, .length = 120});
  std::vector<Lane> lanes;
  std::vector<int64_t> slots;
  Packed packed;
  for (int64_t i = 0; i < 3; ++i) {
    packed.append(std::vector<int32_t>(static_cast<size_t>(prompt), static_cast<int32_t>(i + 1)));
    slots.push_back(i);
    SampleKey own = key;
    own.response = static_cast<uint32_t>(i);
    lanes.push_back({i, 5, prompt, 16, own, false});
  }
  forward.prefill(packed, *cache, slots);
  const auto decoder = forward.make_decoder(*head, *cache, sampling);
  Decoded decoded;
  calls.clear();
  for (int round = 0; round < 2; ++round) {
    const std::vector<SampledToken> some = decoder->next(lanes);
    decoded.tokens.insert(decoded.tokens.end(), some.begin(), some.end());
    for (size_t i = 0; i < lanes.size(); ++i) {
      lanes[i].token = some[some.size() - 3 + i].token;
      lanes[i].position += kStepsAhead;
      lanes[i].key.position += kStepsAhead;
      lanes[i].left -= kStepsAhead;
    }
  }
  decoded.calls = calls;
  return decoded;
}

TEST(gpu_recording, a_step_holds_no_seed_step_length_or_key) {
  for (const SamplingConfig& sampling : {SamplingConfig{}, SamplingConfig{.top_p = 0.9, .top_k = 20}}) {
    const Decoded one = decode(20, {1, 2, 3, 0, 0}, sampling), other = decode(31, {9, 8, 7, 0, 40}, sampling);
    ASSERT_FALSE(one.calls.empty());
    EXPECT_EQ(one.calls, other.calls);
    const size_t of_step = one.calls.size() / 16;
    for (size_t i = of_step; i < one.calls.size(); ++i) ASSERT_EQ(one.calls[i], one.calls[i - of_step]) << i;
    bool differ = false;
    for (size_t i = 0; i < one.tokens.size(); ++i) differ = differ || one.tokens[i].token != other.tokens[i].token;
    EXPECT_TRUE(differ) << "other keys sample other tokens";
  }
}

// LibTorch fills what it allocates with NaN and the largest integers then.
class Poison {
 public:
  Poison() {
    at::globalContext().setDeterministicAlgorithms(true, true);
    at::globalContext().setDeterministicFillUninitializedMemory(true);
  }
  ~Poison() { at::globalContext().setDeterministicAlgorithms(false, false); }
};

TEST(gpu_recording, nothing_is_read_that_was_not_written) {
  for (const SamplingConfig& sampling : {SamplingConfig{}, SamplingConfig{.top_p = 0.9, .min_p = 0.01}}) {
    const Decoded usual = decode(20, {1, 2, 3, 0, 0}, sampling);
    const Poison poison;
    ASSERT_TRUE(at::empty({3}).isnan().all().item<bool>()) << "else this test finds nothing";
    const Decoded poisoned = decode(20, {1, 2, 3, 0, 0}, sampling);
    ASSERT_EQ(usual.tokens.size(), poisoned.tokens.size());
    for (size_t i = 0; i < usual.tokens.size(); ++i) {
      EXPECT_EQ(usual.tokens[i].token, poisoned.tokens[i].token) << i;
      EXPECT_EQ(usual.tokens[i].logprob, poisoned.tokens[i].logprob) << i;
    }
  }
}

}  // namespace
}  // namespace ucas
