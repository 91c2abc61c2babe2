// A model as a GPU's kernels run it (gpu_block.h), emulated on the CPU and, where there is one, on a device: against
// transformers' goldens, and against the native path in bf16.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "model/backend/gpu/gpu_block.h"
#include "model/backend/gpu/gpu_head.h"
#include "model/decoder.h"
#include "model/gemm/linear.h"
#include "model/transformer.h"
#include "support/engine/gpu_views.h"
#include "support/engine/model_goldens.h"
#include "support/engine/small_models.h"
#include "support/gpu_emulation.h"
#include "support/signals.h"

namespace ucas {
namespace {

using testing::golden;
using testing::gpu_views;
using testing::GpuView;

std::vector<GpuView> views_of(const std::string& name, const ModelOptions& options) {
  return gpu_views([&](at::Device device) { return load_model(golden(name), device, options); });
}

// A loss that every token takes part in, each by another weight.
void backward_of(Model& model, const Packed& packed) {
  const auto rows = static_cast<int64_t>(packed.token.size()) - 1;
  const std::vector<int32_t> target(packed.token.begin() + 1, packed.token.end());
  const at::Tensor hidden = model.hidden(packed).narrow(0, 0, rows);
  (-model.head().stats(hidden, target, 1.0).logprob.mean()).backward();
}

std::vector<at::Tensor> gradients_of(Model& model, const Packed& packed) {
  backward_of(model, packed);
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& p : model.trainable()) {
    gradients.push_back(p.tensor.grad().cpu().clone());
    p.tensor.mutable_grad().reset();
  }
  return gradients;
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item<double>() / (1e-12 + b.norm().item<double>());
}

TEST(gpu_model, logits_in_bf16_are_no_further_from_f32_than_those_of_transformers) {
  const c10::NoGradGuard no_grad;
  for (const char* name :
       {"gqa_tied", "mha_untied", "long", "qwen3", "llama", "mistral", "qwen2_window", "llama3", "yarn", "dynamic"}) {
    for (const GpuView& view : views_of(name, inference(Dtype::bf16))) {
      testing::expect_near_f32(*view.model, name, view.name, 1.1);
    }
  }
}

TEST(gpu_model, gradients_are_no_further_from_f32_than_the_native_paths_in_bf16) {
  for (const char* name : {"gqa_tied", "qwen3", "llama", "mistral", "qwen2_window"}) {
    const Packed packed = testing::sequence_of(golden(name));
    auto want = testing::read_all(golden(name) + "/expected.safetensors");
    const auto native = load_model(golden(name), at::kCPU, {.dtype = Dtype::bf16});
    const std::vector<at::Tensor> of_native = gradients_of(*native, packed);
    for (const GpuView& view : views_of(name, {.dtype = Dtype::bf16})) {
      const std::vector<at::Tensor> got = gradients_of(*view.model, packed);
      double ours = 0, theirs = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const at::Tensor& expected = want.at("grad." + native->trainable()[i].name);
        ours = std::max(ours, apart(got[i], expected));
        theirs = std::max(theirs, apart(of_native[i], expected));
        EXPECT_LE(apart(got[i], expected), 1.5 * apart(of_native[i], expected) + 0.01)
            << name << " " << view.name << " " << native->trainable()[i].name;
      }
      std::printf("%-14s %-6s gradients from f32, largest of a tensor: %.4f (native %.4f)\n", name, view.name, ours,
                  theirs);
    }
  }
}

TEST(gpu_model, gradients_keep_their_bits_whatever_is_made_again) {
  for (const char* name : {"gqa_tied", "qwen3"}) {
    const Packed packed = testing::sequence_of(golden(name));
    std::vector<std::vector<at::Tensor>> kept;
    for (const Recompute recompute : {Recompute::none, Recompute::keep_attention, Recompute::block}) {
      size_t i = 0;
      for (const GpuView& view : views_of(name, {.dtype = Dtype::bf16, .recompute = recompute})) {
        const std::vector<at::Tensor> got = gradients_of(*view.model, packed);
        if (recompute == Recompute::none) kept.push_back(got);
        for (size_t p = 0; p < got.size(); ++p) EXPECT_TRUE(got[p].equal(kept[i][p])) << view.name << " tensor " << p;
        ++i;
      }
    }
  }
}

// Three prompts with responses each, laid whole and with each prompt once. Where the rows of `once` lie in `whole`, the
// prompt's in its first copy; those of responses alone count.
struct Prompts {
  Packed whole, once;
  std::vector<int64_t> where;
  std::vector<float> counts;
};
Prompts prompts_with_responses(int64_t vocab) {
  Prompts p;
  Rng rng(17, 0);
  const auto note = [&](int64_t first, int64_t rows, float counts) {
    for (int64_t i = 0; i < rows; ++i) p.where.push_back(first + i);
    p.counts.insert(p.counts.end(), rows, counts);
  };
  const auto random = [&](int64_t length) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<int32_t>(rng.below(vocab)));
    return tokens;
  };
  for (const int64_t length : {1, 13, 40}) {
    const std::vector<int32_t> prompt = random(length);
    const int64_t from = p.once.append(prompt);
    note(static_cast<int64_t>(p.whole.token.size()), length, 0);
    for (const int64_t own : {1, 9, 30}) {
      const std::vector<int32_t> response = random(own);
      p.once.append(response, {}, from);
      p.whole.append(prompt, response);
      note(static_cast<int64_t>(p.whole.token.size()) - own, own, 1);
    }
  }
  return p;
}

// Of a random loss over the rows of responses.
std::vector<at::Tensor> gradients_of_rows(Model& model, const Prompts& p, bool once) {
  at::Tensor hidden = model.hidden(once ? p.once : p.whole);
  if (!once) hidden = hidden.index_select(0, at::tensor(p.where, at::kLong).to(hidden.device()));
  at::Tensor weight = at::empty(hidden.sizes(), at::kFloat);
  Rng rng(19, 0);
  for (int64_t i = 0; i < weight.numel(); ++i) {
    weight.data_ptr<float>()[i] = p.counts[i / weight.size(1)] * static_cast<float>(rng.normal());
  }
  (hidden * weight.to(hidden.device())).sum().backward();
  std::vector<at::Tensor> gradients = {hidden.detach().cpu()};
  for (const NamedTensor& parameter : model.trainable()) {
    if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad().cpu().clone());
    parameter.tensor.mutable_grad().reset();
  }
  return gradients;
}

TEST(gpu_model, prompts_computed_once_give_hidden_states_and_gradients_that_are_as_near_to_f32) {
  for (const char* name : {"gqa_tied", "qwen3", "qwen2_window"}) {
    const auto f32 = load_model(golden(name), at::kCPU, {});
    const Prompts p = prompts_with_responses(f32->config().vocab_size);
    const std::vector<at::Tensor> want = gradients_of_rows(*f32, p, false);
    for (const GpuView& view : views_of(name, {.dtype = Dtype::bf16})) {
      ASSERT_TRUE(view.model->shares_prefixes());
      const std::vector<at::Tensor> whole = gradients_of_rows(*view.model, p, false);
      const std::vector<at::Tensor> once = gradients_of_rows(*view.model, p, true);
      ASSERT_EQ(once.size(), want.size());
      double worst = 0, of_whole = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_LE(apart(once[i], want[i]), 1.2 * apart(whole[i], want[i]) + 1e-3)
            << name << " " << view.name << " " << i;
        worst = std::max(worst, apart(once[i], want[i]));
        of_whole = std::max(of_whole, apart(whole[i], want[i]));
      }
      std::printf("%-14s %-6s from f32, largest of a tensor: %.4f with prompts once, %.4f whole\n", name, view.name,
                  worst, of_whole);
      if (view.model->device().is_cpu()) {
        const std::vector<at::Tensor> again = gradients_of_rows(*view.model, p, true);
        for (size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(once[i].equal(again[i])) << i;
      }
    }
  }
}

TEST(gpu_model, rows_of_a_prompt_know_who_sees_their_keys) {
  Packed packed;
  const std::vector<int32_t> prompt = {5, 6}, first = {7}, second = {8, 9};
  packed.append(prompt);
  packed.append(first, {}, 0);
  packed.append(second, {}, 0);
  const GpuRows rows(packed, at::kCPU);
  EXPECT_EQ(rows.most_rows, 11) << "of padding";
  EXPECT_EQ(rows.begin, (std::vector<int64_t>{0, 2, 3, 5, 16}));
  EXPECT_EQ(rows.begin_keys, (std::vector<int64_t>{0, 2, 5, 9, 20}));
  const auto first_of = [](const at::Tensor& x, int64_t n) {
    return std::vector<int32_t>(x.const_data_ptr<int32_t>(), x.const_data_ptr<int32_t>() + n);
  };
  EXPECT_EQ(first_of(rows.key_row, 10), (std::vector<int32_t>{0, 1, 0, 1, 2, 0, 1, 3, 4, 5}));
  EXPECT_EQ(first_of(rows.first_seen, 7), (std::vector<int32_t>{0, 3, 6, 7, 8, 9, 10}));
  EXPECT_EQ(first_of(rows.seen, 10), (std::vector<int32_t>{0, 2, 5, 1, 3, 6, 4, 7, 8, 9})) << "in order of sequences";
}

TEST(gpu_model, an_adapter_learns_as_on_the_native_path) {
  const ModelOptions options{.dtype = Dtype::bf16, .trained = Trained::adapter, .lora = {.rank = 4}, .seed = 3};
  const auto make = [&](at::Device device) {
    auto model = make_model(testing::small_shape(), 3, device, options);
    const at::NoGradGuard no_grad;
    int64_t seed = 0;
    for (const NamedTensor& p : model->adapter()) {
      Rng rng(11, static_cast<uint64_t>(seed++));
      at::Tensor host = at::empty(p.tensor.sizes(), at::kFloat);
      for (int64_t i = 0; i < host.numel(); ++i) host.data_ptr<float>()[i] = 0.1f * static_cast<float>(rng.normal());
      p.tensor.detach().copy_(host);
    }
    model->refresh();
    return model;
  };
  Packed packed;
  const std::vector<int32_t> first = {1, 5, 9, 2, 30, 31, 7}, second = {3, 3, 17};
  packed.append(first);
  packed.append(second);
  const std::vector<at::Tensor> want = gradients_of(*make(at::Device(at::kCPU)), packed);
  for (const GpuView& view : gpu_views(make)) {
    const std::vector<at::Tensor> got = gradients_of(*view.model, packed);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(apart(got[i], want[i]), 0.05) << view.name << " " << i;
  }
}

// A head over random rows: its figures, then the gradients of rows and matrix.
class HeadTrial {
 public:
  HeadTrial(int64_t rows, int64_t vocab)
      : weight_(at::randn({vocab, 64}).to(at::kBFloat16)), hidden_(at::randn({rows, 64})) {
    for (int64_t i = 0; i < rows; ++i) target_.push_back(static_cast<int32_t>(i * 135 % vocab));
    target_[5] = static_cast<int32_t>(vocab - 1);
  }
  Matrix matrix(at::Device device) const {
    Matrix m;
    m.parameter = weight_.to(at::kFloat).to(device).requires_grad_(true);
    m.compute = weight_.to(device);
    return m;
  }
  std::vector<at::Tensor> gradients(const Head& head, at::Device device, int64_t likeliest = 0) const {
    const at::Tensor h = hidden_.detach().clone().to(device).requires_grad_(true);
    const HeadStats s = head.stats(h, target_, 0.7, testing::mean_of_likeliest(likeliest));
    at::Tensor sum = s.logprob.sum() * 0.3 + s.entropy.sum() * 0.2 - s.confidence.sum() * 0.1;
    if (likeliest > 0) sum = sum + s.signals[0].sum() * 0.4;
    sum.backward();
    std::vector<at::Tensor> out;
    for (const at::Tensor& t : {s.logprob, s.entropy, s.confidence, s.logit, s.margin}) out.push_back(t.detach().cpu());
    out.push_back(h.grad().cpu());
    out.push_back(head.weight().parameter.grad().cpu());
    if (likeliest > 0) out.push_back(s.signals[0].detach().cpu());
    return out;
  }
  std::vector<at::Tensor> of_gpu(at::Device device) const { return gradients(*make_gpu_head(matrix(device)), device); }

 private:
  const at::Tensor weight_, hidden_;
  std::vector<int32_t> target_;
};

TEST(gpu_model, the_head_says_of_rows_what_the_native_one_says) {
  const HeadTrial trial(37, 5000);
  const std::vector<at::Tensor> want = trial.gradients(*make_native_head(trial.matrix(at::kCPU)), at::kCPU);
  const auto compare = [&](at::Device device) {
    const std::vector<at::Tensor> got = trial.of_gpu(device);
    for (size_t i = 0; i < 5; ++i) EXPECT_LE((got[i] - want[i]).abs().max().item<double>(), 1e-4) << i;
    for (size_t i = 5; i < 7; ++i) EXPECT_LE(apart(got[i], want[i]), 0.01) << i;
  };
  compare(at::kCPU);
  if (testing::has_cuda()) compare(at::Device(at::kCUDA, 0));
}

TEST(gpu_model, the_head_of_a_device_gives_the_likeliest_tokens_by_the_operations_of_libtorch) {
  const HeadTrial trial(37, 9000);
  const auto of = [&](const std::unique_ptr<Head>& head, at::Device device) {
    return trial.gradients(*head, device, 3);
  };
  const std::vector<at::Tensor> want = of(make_native_head(trial.matrix(at::kCPU)), at::kCPU);
  const auto compare = [&](at::Device device) {
    const std::vector<at::Tensor> got = of(make_gpu_head(trial.matrix(device)), device);
    for (size_t i : {0, 1, 2, 3, 4, 7}) EXPECT_LE((got[i] - want[i]).abs().max().item<double>(), 1e-4) << i;
    for (size_t i : {5, 6}) EXPECT_LE(apart(got[i], want[i]), 0.01) << i;
  };
  compare(at::kCPU);
  if (testing::has_cuda()) compare(at::Device(at::kCUDA, 0));
}

TEST(gpu_model, parts_of_many_rows_are_equal_and_say_the_same) {
  const HeadTrial trial(4100, 70);
  const std::vector<at::Tensor> want = trial.gradients(*make_native_head(trial.matrix(at::kCPU)), at::kCPU);
  const std::vector<at::Tensor> got = trial.of_gpu(at::kCPU);
  for (size_t i = 0; i < 5; ++i) EXPECT_LE((got[i] - want[i]).abs().max().item<double>(), 1e-4) << i;
  for (size_t i = 5; i < 7; ++i) EXPECT_LE(apart(got[i], want[i]), 0.01) << i;
}

TEST(gpu_model, a_slow_path_says_why_and_what_it_costs) {
  ModelConfig config;
  config.vocab_size = 151936;
  const std::string f32 = slow_path(config, {.dtype = Dtype::f32}, "cuda");
  EXPECT_NE(f32.find("(they are for dtype = \"bf16\")"), std::string::npos) << f32;
  EXPECT_NE(f32.find("594 KiB of logits copied"), std::string::npos) << f32;
  config.hidden_size = 100;
  EXPECT_NE(slow_path(config, {.dtype = Dtype::bf16}, "cuda").find("no multiple of 8"), std::string::npos);
  config.hidden_size = 128;
  EXPECT_NE(slow_path(config, {.dtype = Dtype::bf16}, "cuda").find("UCAS_GPU_KERNELS=off"), std::string::npos);
}

// A recorded step reads where the table was when it was recorded, also after another pass has gone further.
TEST(gpu_model, a_table_of_positions_that_has_grown_stands_where_it_was) {
  ModelConfig config;
  config.head_dim = 64;
  GpuRope rope(config, at::kCPU);
  rope.reach(10);
  const float *cosines = rope.cosines(), *sines = rope.sines();
  const int64_t numbers = 1024 * config.head_dim / 2;  // the first table's
  rope.reach(5000);
  rope.reach(50000);
  ASSERT_NE(rope.cosines(), cosines);
  for (int64_t i = 0; i < numbers; ++i) {
    ASSERT_EQ(cosines[i], rope.cosines()[i]) << i;
    ASSERT_EQ(sines[i], rope.sines()[i]) << i;
  }
}

TEST(gpu_model, decoding_gives_the_logits_of_the_whole_sequence) {
  const c10::NoGradGuard no_grad;
  for (const char* name : {"gqa_tied", "qwen3", "mistral"}) {
    for (const GpuView& view : views_of(name, inference(Dtype::bf16))) {
      Model& model = *view.model;
      const auto ids = static_cast<int32_t>(model.config().vocab_size);
      std::vector<int32_t> tokens;
      for (int32_t i = 0; i < 300; ++i) tokens.push_back(i * 7 % ids);
      const int64_t prompt = 270, length = 300;
      Packed packed, whole;
      packed.append(std::span(tokens).first(prompt));
      whole.append(tokens);
      const at::Tensor want = model.head().logits(model.hidden(whole)).cpu();
      const auto cache = model.make_cache(4, length);
      const std::vector<int64_t> slots = {3};
      model.prefill(packed, *cache, slots);
      cache->copy(3, 1, prompt);
      const auto decoder = model.make_decoder(*cache, {});
      double worst = 0;
      for (int64_t i = prompt; i < length; ++i) {
        const auto place = static_cast<uint32_t>(i);
        const Lane lane{1, tokens[i], static_cast<int32_t>(i), 1, {9, 1, 0, 0, place}, i % 2 == 0};
        const SampledToken got = decoder->next({&lane, 1}).front();
        worst = std::max(
            worst, std::abs(static_cast<double>(got.logit) - want.select(0, i).const_data_ptr<float>()[got.token]));
      }
      const double largest = want.abs().max().item<double>();
      std::printf("%-12s %-6s decoded against whole: %.4f of the largest logit\n", name, view.name, worst / largest);
      EXPECT_LE(worst, testing::kBf16Bound * largest) << name << " " << view.name;
    }
  }
}

}  // namespace
}  // namespace ucas
