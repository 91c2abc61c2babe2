// The budget against what passes really call: a table of kernels that notes each call's bytes from its arguments, in
// CPU emulation; and its GEMMs against the operations that a model counts (hf/work.h).
#include "model/backend/gpu/gpu_budget.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <map>

#include "base/str.h"
#include "hf/families.h"
#include "hf/work.h"
#include "model/backend/gpu/gpu_forward.h"
#include "model/backend/gpu/gpu_head.h"
#include "model/decoder.h"
#include "model/transformer.h"
#include "support/engine/small_models.h"

namespace ucas {
namespace {

struct Counted {
  double calls = 0, bytes = 0;
};
std::map<std::string, Counted> counted;  // by kernel

void note(const char* kernel, double bytes) {
  Counted& of = counted[kernel];
  ++of.calls;
  of.bytes += bytes;
}
// Bytes of `count` numbers of this size that a pointer stands for; none where it is null.
double at(const void* pointer, double count, double size) { return pointer == nullptr ? 0 : count * size; }

void count_blocks(gpu::Table& t) {
  t.embed = [](gpu::Stream s, const gpu::Embed& a) {
    note("embed", static_cast<double>(a.rows * (4 + 6 * a.width)));
    gpu::host().embed(s, a);
  };
  t.add_norm = [](gpu::Stream s, const gpu::AddNorm& a) {
    const auto n = static_cast<double>(a.rows * a.width);
    const double sum = a.y == nullptr ? 0 : at(a.sum, n, 4);
    note("add_norm",
         4 * n + at(a.y, n, 2) + sum + at(a.out, n, 2) + at(a.out_float, n, 4) + 4 * static_cast<double>(a.width));
    gpu::host().add_norm(s, a);
  };
  t.norm_backward = [](gpu::Stream s, const gpu::NormBackward& a) {
    const auto n = static_cast<double>(a.rows * a.width), width = static_cast<double>(a.width);
    note("norm_backward", 4 * n + at(a.d_out, n, 2) + at(a.d_out_float, n, 4) + 8 * n + at(a.dx_narrow, n, 2) +
                              4 * width + at(a.dw, width * static_cast<double>(gpu::norm_parts(a.rows)), 4));
    gpu::host().norm_backward(s, a);
  };
  t.apply_rope_and_store_kv = [](gpu::Stream s, const gpu::RopeAndStoreKv& a) {
    const auto R = static_cast<double>(a.rows), heads = static_cast<double>((a.H + a.K) * a.d),
               key = static_cast<double>(a.K * a.d), d = static_cast<double>(a.d);
    const bool values = a.bias != nullptr || a.slot != nullptr;
    note("apply_rope_and_store_kv", R * (4 * (heads + (values ? key : 0)) + 4 * d + 4) + at(a.unnormed, R * heads, 2) +
                                        at(a.slot, R, 4 + 4 * key) + at(a.bias, heads + key, 4) + at(a.q_norm, d, 4) +
                                        at(a.k_norm, d, 4));
    gpu::host().apply_rope_and_store_kv(s, a);
  };
  t.apply_rope_and_store_kv_backward = [](gpu::Stream s, const gpu::RopeAndStoreKvBackward& a) {
    const auto R = static_cast<double>(a.rows), heads = static_cast<double>((a.H + a.K) * a.d),
               d = static_cast<double>(a.d);
    const double all = heads + static_cast<double>(a.K * a.d);
    note("apply_rope_and_store_kv_backward", R * (4 * all + 4 * d + 4) + at(a.unnormed, R * heads, 2) +
                                                 at(a.dw, R * 2 * d, 4) + at(a.q_norm, d, 4) + at(a.k_norm, d, 4));
    gpu::host().apply_rope_and_store_kv_backward(s, a);
  };
  t.swiglu = [](gpu::Stream s, const gpu::Swiglu& a) {
    note("swiglu", static_cast<double>(6 * a.rows * a.width));
    gpu::host().swiglu(s, a);
  };
  t.swiglu_backward = [](gpu::Stream s, const gpu::SwigluBackward& a) {
    const auto n = static_cast<double>(a.rows * a.width);
    note("swiglu_backward", 10 * n + at(a.act, n, 2));
    gpu::host().swiglu_backward(s, a);
  };
  t.add_parts = [](gpu::Stream s, const gpu::AddParts& a) {
    const auto n = static_cast<double>(a.parts * a.width), width = static_cast<double>(a.width);
    note("add_parts", at(a.part, n, 4) + at(a.part_narrow, n, 2) + at(a.before, width, 4) + 4 * width);
    gpu::host().add_parts(s, a);
  };
}

void count_head_and_decoding(gpu::Table& t) {
  t.head_stats_of_tiles = [](gpu::Stream s, const gpu::HeadStatsOfTiles& a) {
    const auto R = static_cast<double>(a.rows), tiles = static_cast<double>(gpu::head_tiles(a.columns));
    note("head_stats_of_tiles",
         R * (4 * static_cast<double>(a.columns) + tiles * sizeof(gpu::TileStats)) + at(a.target, R, 4));
    gpu::host().head_stats_of_tiles(s, a);
  };
  t.head_stats_of_rows = [](gpu::Stream s, const gpu::HeadStatsOfRows& a) {
    const auto R = static_cast<double>(a.rows);
    note("head_stats_of_rows", R * (static_cast<double>(a.tiles) * sizeof(gpu::TileStats) + 6 * 4));
    gpu::host().head_stats_of_rows(s, a);
  };
  t.head_gradient = [](gpu::Stream s, const gpu::HeadGradient& a) {
    const auto R = static_cast<double>(a.rows);
    note("head_gradient", R * (6 * static_cast<double>(a.columns) + 6 * 4));
    gpu::host().head_gradient(s, a);
  };
  t.sample = [](gpu::Stream s, const gpu::SampleToken& a) {
    const auto columns = static_cast<double>(std::min(a.vocab, gpu::kHeadTile));
    note("sample", static_cast<double>(a.rows) * (static_cast<double>(a.tiles) * sizeof(gpu::TileStats) + 4 * columns));
    gpu::host().sample(s, a);
  };
  t.attend_decode = [](gpu::Stream s, const gpu::AttendDecode& a) {
    const auto query = static_cast<double>(a.H * a.d), key = static_cast<double>(a.K * a.d);
    double bytes = 0;
    for (int64_t r = 0; r < a.rows; ++r) {
      const auto keys = static_cast<double>(a.position[r] + 1);
      const auto blocks = static_cast<double>(a.position[r] / gpu::kBlockTokens + 1);
      bytes += 4 * key * keys + 4 * query;
      if (blocks > 1) bytes += 2 * blocks * (4 * query + 8 * static_cast<double>(a.H));
    }
    note("attend_decode", bytes);
    gpu::host().attend_decode(s, a);
  };
}

const gpu::Table& counting_table() {
  static const gpu::Table table = [] {
    gpu::Table t = gpu::host();
    count_blocks(t);
    count_head_and_decoding(t);
    return t;
  }();
  return table;
}

// Of kernels, their calls under other names included.
std::map<std::string, Counted> of_kernels(const std::vector<BudgetPart>& budget) {
  std::map<std::string, Counted> all;
  for (const BudgetPart& part : budget) {
    const std::string name = part.name == "add_norm again" ? "add_norm" : part.name;
    const bool is_kernel = part.group.find("GEMM") == name.npos && part.name != "logits" && name.find(' ') == name.npos;
    if (!is_kernel) continue;
    all[name].calls += part.calls;
    all[name].bytes += part.bytes;
  }
  return all;
}

void expect_counted(const std::vector<BudgetPart>& budget, const std::string& where) {
  const std::map<std::string, Counted> planned = of_kernels(budget);
  for (const auto& [name, of] : counted) {
    ASSERT_TRUE(planned.contains(name)) << where << ": " << name << " is called, and not in the budget";
    EXPECT_EQ(planned.at(name).calls, of.calls) << where << ": " << name;
    EXPECT_DOUBLE_EQ(planned.at(name).bytes, of.bytes) << where << ": " << name;
  }
  for (const auto& [name, of] : planned) EXPECT_TRUE(counted.contains(name)) << where << ": " << name;
}

double gemm_operations(const std::vector<BudgetPart>& budget, const std::string& group, const std::string& pass) {
  double operations = 0;
  for (const BudgetPart& part : budget) {
    if (part.group == group && part.name.find(pass) != std::string::npos) operations += part.operations;
  }
  return operations;
}

std::vector<ModelConfig> shapes() {
  ModelConfig biased = testing::small_shape(2 * gpu::kHeadTile + 8);
  biased.num_hidden_layers = 3;
  ModelConfig normed = biased;
  normed.family = find_family("qwen3");
  return {biased, normed};
}

TEST(gpu_budget, of_a_training_pass_is_what_its_kernels_are_asked_for) {
  for (const ModelConfig& config : shapes()) {
    for (const HeadLogits how : {HeadLogits::again, HeadLogits::kept, HeadLogits::whole}) {
      const VariantsForTest variant({.head = how});
      const auto native = make_model(config, 3, at::kCPU, {.dtype = Dtype::bf16});
      GpuForward forward(native->config(), native->weights(), native->options(), {counting_table(), at::kCPU});
      const auto head = make_gpu_head(native->weights().head, &counting_table());
      Packed packed;
      std::vector<int32_t> target;
      for (int32_t sequence = 0; sequence < 2; ++sequence) {
        packed.append(std::vector<int32_t>(24, sequence + 1));
        target.insert(target.end(), 24, 7);
      }
      counted.clear();
      head->stats(forward.hidden(packed), target, 1.0).logprob.sum().backward();
      const auto budget = training_budget(config, 48, 24, how);
      expect_counted(budget, str(config.family->model_type, " ", static_cast<int>(how)));
      for (const char* pass : {"forward", "input gradient", "weight gradient"}) {
        EXPECT_DOUBLE_EQ(gemm_operations(budget, "GEMMs of blocks", pass), 2 * 48 * block_multiply_adds(config))
            << pass;
      }
      const double of_head = 2 * 48 * head_multiply_adds(config);
      EXPECT_DOUBLE_EQ(gemm_operations(budget, "LM head GEMMs", ""), (how == HeadLogits::again ? 4 : 3) * of_head);
    }
  }
}

TEST(gpu_budget, of_a_pass_for_log_probs_is_what_its_kernels_are_asked_for) {
  const c10::NoGradGuard no_grad;
  for (const ModelConfig& config : shapes()) {
    const auto native = make_model(config, 3, at::kCPU, {.dtype = Dtype::bf16});
    GpuForward forward(native->config(), native->weights(), native->options(), {counting_table(), at::kCPU});
    const auto head = make_gpu_head(native->weights().head, &counting_table());
    Packed packed;
    packed.append(std::vector<int32_t>(32, 3));
    counted.clear();
    head->stats(forward.hidden(packed), std::vector<int32_t>(32, 7), 1.0);
    expect_counted(scoring_budget(config, 32, 32), config.family->model_type);
  }
}

void expect_decoding(const ModelConfig& config, int32_t prompt) {
  const c10::NoGradGuard no_grad;
  const auto native = make_model(config, 3, at::kCPU, inference(Dtype::bf16));
  GpuForward forward(native->config(), native->weights(), native->options(), {counting_table(), at::kCPU});
  const auto head = make_gpu_head(native->weights().head, &counting_table());
  const auto cache = forward.make_cache({.slots = 16, .length = 300});
  std::vector<Lane> lanes;
  for (int64_t slot = 0; slot < 16; ++slot) {
    Packed packed;
    packed.append(std::vector<int32_t>(static_cast<size_t>(prompt), 5));
    forward.prefill(packed, *cache, std::span(&slot, 1));
    lanes.push_back({slot, 5, prompt, 1, {1, 2, static_cast<uint32_t>(slot), 0, 0}, false});
  }
  const auto decoder = forward.make_decoder(*head, *cache, {});
  counted.clear();
  decoder->next(lanes);
  const auto budget = decoding_budget(config, 16, prompt + 1, false);
  expect_counted(budget, str(config.family->model_type, ", ", prompt));
  EXPECT_DOUBLE_EQ(gemm_operations(budget, "GEMMs of blocks", ""), 2 * 16 * block_multiply_adds(config));
}

TEST(gpu_budget, of_a_decoding_step_is_what_its_kernels_are_asked_for) {
  for (const ModelConfig& config : shapes()) {
    expect_decoding(config, 100);
    expect_decoding(config, 270);  // two blocks of keys
  }
}

TEST(gpu_budget, of_an_update_counts_every_parameter_once) {
  for (ModelConfig config : shapes()) {
    for (const bool tied : {true, false}) {
      config.tie_word_embeddings = tied;
      const auto model = make_model(config, 3, at::kCPU, {.dtype = Dtype::bf16});
      double parameters = 0;
      for (const NamedTensor& p : model->parameters()) parameters += static_cast<double>(p.tensor.numel());
      EXPECT_DOUBLE_EQ(update_budget(config, 32)[0].bytes, 4 * parameters);
      EXPECT_EQ(update_budget(config, 32)[1].calls, static_cast<double>(model->parameters().size()));
      EXPECT_DOUBLE_EQ(update_budget(config, 32)[1].bytes, 34 * parameters);
      EXPECT_DOUBLE_EQ(update_budget(config, 16)[1].bytes, 26 * parameters);
      EXPECT_NEAR(update_budget(config, 8)[1].bytes, 22 * parameters, parameters / 8);
    }
  }
}

}  // namespace
}  // namespace ucas
