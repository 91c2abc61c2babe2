// The guard of docs/numerics.md: on the CPU a token's numbers are bit-equal however it is computed, in f32 and in bf16.
// If bf16 fails after an update of LibTorch, its micro-kernel no longer sums as model/gemm/gemm.cpp says.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/rng.h"
#include "kernels/lm_head.h"
#include "model/decoder.h"
#include "model/transformer.h"
#include "support/engine/emulation.h"
#include "support/engine/small_models.h"
#include "support/engine/threads.h"

namespace ucas {
namespace {

using testing::Threads;

struct Shape {
  const char* name;
  int64_t D, layers, H, K, d, F, V;
  const char* family = "qwen2";
  int64_t window = 0;  // of every layer but the first
  Dtype dtype = Dtype::f32;
  int64_t lora = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.name; }

ModelConfig config_of(const Shape& s) {
  ModelConfig c;
  c.hidden_size = s.D;
  c.num_hidden_layers = s.layers;
  c.num_attention_heads = s.H;
  c.num_key_value_heads = s.K;
  c.head_dim = s.d;
  c.intermediate_size = s.F;
  c.vocab_size = s.V;
  testing::use_family(c, s.family);
  if (s.window > 0) {
    c.windows.assign(static_cast<size_t>(s.layers), s.window);
    c.windows[0] = 0;
  }
  return c;
}

// With an adapter, one that does something.
std::unique_ptr<Model> model_of(const Shape& s) {
  ModelOptions options;
  options.dtype = s.dtype;
  options.lora.rank = s.lora;
  if (s.lora > 0) options.trained = Trained::adapter;
  auto model = make_model(config_of(s), 3, at::kCPU, options);
  testing::fill_adapter(*model);
  return model;
}

using Sequence = std::vector<int32_t>;

std::vector<Sequence> random_sequences(int64_t vocab) {
  Rng rng(11, 0);
  std::vector<Sequence> sequences;
  for (int64_t length : {1, 5, 16, 17, 40, 33, 2, 49, 9, 31, 3, 26}) {
    Sequence sequence;
    for (int64_t i = 0; i < length; ++i) sequence.push_back(static_cast<int32_t>(rng.below(vocab)));
    sequences.push_back(sequence);
  }
  return sequences;
}

Packed pack(const std::vector<Sequence>& sequences) {
  Packed packed;
  packed.begin = {0};
  for (const Sequence& sequence : sequences) {
    for (size_t i = 0; i < sequence.size(); ++i) {
      packed.token.push_back(sequence[i]);
      packed.position.push_back(static_cast<int32_t>(i));
    }
    packed.begin.push_back(static_cast<int64_t>(packed.token.size()));
  }
  return packed;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.sizes() == y.sizes() &&
         std::memcmp(x.data_ptr<float>(), y.data_ptr<float>(), static_cast<size_t>(x.numel()) * 4) == 0;
}

// Decodes every sequence from its prompt of `prompt` tokens on, `width` slots at once, in the order of `order`;
// gives the hidden states from the last prompt token on.
std::vector<at::Tensor> decode_all(Model& model, const std::vector<Sequence>& sequences, size_t prompt, size_t width) {
  std::vector<at::Tensor> out(sequences.size());
  for (size_t first = 0; first < sequences.size(); first += width) {
    size_t count = std::min(width, sequences.size() - first);
    auto cache = model.make_cache(static_cast<int64_t>(width) + 1, 96);
    std::vector<std::vector<at::Tensor>> rows(count);
    size_t longest = 0;
    for (size_t i = 0; i < count; ++i) {
      const Sequence& sequence = sequences[first + i];
      Sequence head(sequence.begin(), sequence.begin() + static_cast<int64_t>(std::min(prompt, sequence.size())));
      auto slot = static_cast<int64_t>(width);  // prefilled elsewhere, then copied
      at::Tensor hidden = model.prefill(pack({head}), *cache, {&slot, 1});
      cache->copy(slot, static_cast<int64_t>(i), static_cast<int64_t>(head.size()));
      rows[i].push_back(hidden.narrow(0, hidden.size(0) - 1, 1));
      longest = std::max(longest, sequence.size());
    }
    for (size_t at = prompt; at < longest; ++at) {
      std::vector<int32_t> token, position;
      std::vector<int64_t> slot;
      for (size_t i = 0; i < count; ++i)
        if (at < sequences[first + i].size()) {
          token.push_back(sequences[first + i][at]);
          position.push_back(static_cast<int32_t>(at));
          slot.push_back(static_cast<int64_t>(i));
        }
      at::Tensor hidden = model.decode(token, position, slot, *cache);
      for (size_t r = 0; r < slot.size(); ++r)
        rows[static_cast<size_t>(slot[r])].push_back(hidden.narrow(0, static_cast<int64_t>(r), 1));
    }
    for (size_t i = 0; i < count; ++i) out[first + i] = at::cat(rows[i]);
  }
  return out;
}

class BitEquality : public ::testing::TestWithParam<Shape> {};

// Responses to prompts of these lengths, three to each and side by side, over a cache in which they share them. Gives
// the hidden states of whole sequences, from the last token of the prompt on.
std::vector<at::Tensor> decode_shared(Model& model, const std::vector<Sequence>& sequences,
                                      const std::vector<int64_t>& prompts, KvCache& cache, int64_t prompt_slot) {
  std::vector<at::Tensor> out;
  for (size_t first = 0; first < sequences.size(); first += 3) {
    const int64_t prompt = prompts[first / 3];
    const Sequence head(sequences[first].begin(), sequences[first].begin() + prompt);
    const at::Tensor hidden = model.prefill(pack({head}), cache, {&prompt_slot, 1});
    std::vector<at::Tensor> rows[3];
    for (int64_t slot = 0; slot < 3; ++slot) {
      rows[slot].push_back(hidden.narrow(0, prompt - 1, 1));
      cache.copy(prompt_slot, slot, prompt);
    }
    for (size_t at = static_cast<size_t>(prompt);; ++at) {
      std::vector<int32_t> token, position;
      std::vector<int64_t> slots;
      for (int64_t slot = 0; slot < 3; ++slot) {
        const Sequence& sequence = sequences[first + static_cast<size_t>(slot)];
        if (at >= sequence.size()) continue;
        token.push_back(sequence[at]);
        position.push_back(static_cast<int32_t>(at));
        slots.push_back(slot);
      }
      if (slots.empty()) break;
      const at::Tensor next = model.decode(token, position, slots, cache);
      for (size_t r = 0; r < slots.size(); ++r) rows[slots[r]].push_back(next.narrow(0, static_cast<int64_t>(r), 1));
    }
    for (int64_t slot = 0; slot < 3; ++slot) out.push_back(at::cat(rows[slot]));
  }
  return out;
}

TEST_P(BitEquality, responses_that_read_one_prompt_in_the_cache_have_the_bits_of_whole_sequences) {
  const int64_t vocab = config_of(GetParam()).vocab_size;
  auto model = model_of(GetParam());
  const std::vector<int64_t> prompts = {33, 1, 15, 16, 17, 64, 100, 48, 5};
  Rng rng(14, 0);
  std::vector<Sequence> sequences;
  for (const int64_t prompt : prompts) {
    Sequence head;
    for (int64_t i = 0; i < prompt; ++i) head.push_back(static_cast<int32_t>(rng.below(vocab)));
    for (const int64_t own : {1, 16, 21}) {
      sequences.push_back(head);
      for (int64_t i = 0; i < own; ++i) sequences.back().push_back(static_cast<int32_t>(rng.below(vocab)));
    }
  }
  c10::NoGradGuard no_grad;
  std::vector<at::Tensor> whole;
  for (size_t s = 0; s < sequences.size(); ++s) {
    const int64_t prompt = prompts[s / 3], rows = static_cast<int64_t>(sequences[s].size()) - prompt + 1;
    whole.push_back(model->hidden(pack({sequences[s]})).narrow(0, prompt - 1, rows));
  }
  // A place for a prompt is taken again once the last response of its group is released: a prompt whose first token
  // comes while the one before has its responses needs another.
  const KvBudget room{.slots = 3, .prompt_slots = 1, .length = 121, .own = 21 + 15, .prompts = 2, .prompt = 100};
  for (int threads : {1, 2}) {
    Threads set(threads);
    for (const bool shares : {true, false}) {
      const auto cache = shares ? model->make_cache(room) : model->make_cache(4, 121);
      const std::vector<at::Tensor> decoded = decode_shared(*model, sequences, prompts, *cache, 3);
      ASSERT_EQ(decoded.size(), whole.size());
      for (size_t s = 0; s < whole.size(); ++s)
        EXPECT_TRUE(same_bits(decoded[s], whole[s])) << "sequence " << s << ", shares " << shares;
    }
  }
}

// Sequences with a beginning in common, once as they are and once shared: where[r] is the row of whole sequences that
// row r of the shared ones is.
struct SharedRows {
  Packed whole, shared;
  std::vector<int64_t> where;
};

SharedRows share_beginnings(int64_t vocab) {
  Rng rng(12, 0);
  const auto random = [&](int64_t length) {
    Sequence sequence;
    for (int64_t i = 0; i < length; ++i) sequence.push_back(static_cast<int32_t>(rng.below(vocab)));
    return sequence;
  };
  SharedRows rows;
  const auto note = [&](int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) rows.where.push_back(first + i);
  };
  for (int64_t prefix : {1, 15, 16, 33, 50}) {
    const Sequence before = random(prefix);
    const int64_t from = rows.shared.append(before);
    note(static_cast<int64_t>(rows.whole.token.size()), prefix);
    for (int64_t own : {1, 4, 17, 30}) {
      const Sequence after = random(own);
      rows.shared.append(after, {}, from);
      rows.whole.append(before, after);
      note(static_cast<int64_t>(rows.whole.token.size()) - own, own);
    }
    const Sequence alone = random(7);
    rows.shared.append(alone);
    rows.whole.append(alone);
    note(static_cast<int64_t>(rows.whole.token.size()) - 7, 7);
  }
  return rows;
}

TEST_P(BitEquality, a_shared_beginning_gives_the_same_numbers_and_the_same_gradient) {
  const SharedRows rows = share_beginnings(config_of(GetParam()).vocab_size);
  auto model = model_of(GetParam());
  ASSERT_TRUE(model->shares_prefixes());
  const at::Tensor where = at::tensor(rows.where, at::kLong);
  const at::Tensor whole = model->hidden(rows.whole).index_select(0, where), shared = model->hidden(rows.shared);
  EXPECT_TRUE(same_bits(whole, shared));

  // The loss reads no row of a beginning: those of whole sequences have a copy each.
  at::Tensor weight = at::empty(shared.sizes());
  Rng rng(13, 0);
  for (int64_t i = 0; i < weight.numel(); ++i) weight.data_ptr<float>()[i] = static_cast<float>(rng.normal());
  for (int64_t s = 0; s < rows.shared.sequences(); ++s) {
    const bool followed = std::ranges::count(rows.shared.after, s) > 0;
    if (followed) weight.narrow(0, rows.shared.begin[s], rows.shared.rows_of(s)).zero_();
  }
  const auto gradients = [&](const at::Tensor& hidden) {
    for (NamedTensor& p : model->trainable()) p.tensor.mutable_grad() = at::Tensor();
    (hidden * weight).sum().backward();
    std::vector<NamedTensor> list;
    for (NamedTensor& p : model->trainable())
      if (p.tensor.grad().defined()) list.push_back({p.name, p.tensor.grad().clone()});
    return list;
  };
  const auto of_whole = gradients(whole), of_shared = gradients(shared);
  ASSERT_EQ(of_whole.size(), of_shared.size());
  ASSERT_FALSE(of_whole.empty());
  const double bound = GetParam().dtype == Dtype::f32 ? 2e-5 : 2e-2;
  for (size_t i = 0; i < of_whole.size(); ++i) {
    const at::Tensor a = of_whole[i].tensor.to(at::kDouble), b = of_shared[i].tensor.to(at::kDouble);
    EXPECT_LT((a - b).norm().item<double>(), bound * a.norm().item<double>() + 1e-12) << of_whole[i].name;
  }
  Threads two(2);
  const auto again = gradients(model->hidden(rows.shared));
  for (size_t i = 0; i < again.size(); ++i)
    EXPECT_TRUE(same_bits(again[i].tensor, of_shared[i].tensor)) << again[i].name;
}

TEST_P(BitEquality, a_tokens_numbers_do_not_depend_on_batch_slots_packing_or_threads) {
  ModelConfig config = config_of(GetParam());
  auto model = model_of(GetParam());
  std::vector<Sequence> sequences = random_sequences(config.vocab_size);
  Packed packed = pack(sequences);
  at::Tensor reference, head_reference;
  std::vector<int32_t> target;
  for (size_t i = 0; i < packed.token.size(); ++i)
    target.push_back(static_cast<int32_t>((i * 31) % static_cast<size_t>(config.vocab_size)));
  {
    Threads one(1);
    reference = model->hidden(packed).detach();  // training's pass: gradients are on
    head_reference = model->head().stats(reference, target, 0.7).logprob;
  }
  c10::NoGradGuard no_grad;
  for (int threads : {1, 2}) {
    Threads set(threads);
    EXPECT_TRUE(same_bits(model->hidden(packed), reference)) << "packed, threads " << threads;
    for (size_t s = 0; s < sequences.size(); s += static_cast<size_t>(threads)) {
      int64_t first = packed.begin[s], count = packed.begin[s + 1] - first;
      EXPECT_TRUE(same_bits(model->hidden(pack({sequences[s]})), reference.narrow(0, first, count)))
          << "alone, sequence " << s << ", threads " << threads;
    }
    std::vector<Sequence> reversed(sequences.rbegin(), sequences.rend());
    at::Tensor other = model->hidden(pack(reversed));
    EXPECT_TRUE(same_bits(other.narrow(0, other.size(0) - packed.begin[1], packed.begin[1]),
                          reference.narrow(0, 0, packed.begin[1])));
    for (size_t width : threads == 1 ? std::vector<size_t>{1, 3, 12} : std::vector<size_t>{5, 12}) {
      std::vector<at::Tensor> decoded = decode_all(*model, sequences, 6, width);
      for (size_t s = 0; s < sequences.size(); ++s) {
        int64_t rows = decoded[s].size(0);
        EXPECT_TRUE(same_bits(decoded[s], reference.narrow(0, packed.begin[s + 1] - rows, rows)))
            << "decoded, sequence " << s << ", slots " << width << ", threads " << threads;
      }
    }
    HeadStats all = model->head().stats(reference, target, 0.7);
    EXPECT_TRUE(same_bits(all.logprob, head_reference)) << "head, threads " << threads;
    for (int64_t row : {0L, 5L, 100L, reference.size(0) - 1}) {
      HeadStats one = model->head().stats(reference.narrow(0, row, 1), {target[static_cast<size_t>(row)]}, 0.7);
      EXPECT_TRUE(same_bits(one.logprob, all.logprob.narrow(0, row, 1)));
      EXPECT_TRUE(same_bits(one.entropy, all.entropy.narrow(0, row, 1)));
      at::Tensor logits = model->head().logits(reference.narrow(0, row, 1)).contiguous();
      auto inverse = static_cast<float>(1 / 0.7);
      kernels::RowStats stats = kernels::stats_of_row(logits.data_ptr<float>(), config.vocab_size, inverse);
      float chosen = logits.data_ptr<float>()[target[static_cast<size_t>(row)]];
      EXPECT_EQ(kernels::token_stats(stats, chosen, inverse, config.vocab_size).logprob, all.logprob[row].item<float>())
          << "sampler's row " << row;
    }
  }
}

// Of all trained parameters, of a loss that reads hidden states and the LM head's three statistics.
std::vector<at::Tensor> gradients_of(Model& model, const Packed& packed, const std::vector<int32_t>& target) {
  HeadStats stats = model.head().stats(model.hidden(packed), target, 0.7);
  (stats.logprob.sum() + stats.entropy.sum() * 0.3 - stats.confidence.sum() * 0.2).backward();
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& p : model.trainable()) {
    if (!p.tensor.grad().defined()) continue;
    gradients.push_back(p.tensor.grad().clone());
    p.tensor.mutable_grad().reset();
  }
  return gradients;
}

TEST_P(BitEquality, gradients_do_not_depend_on_the_number_of_threads) {
  const ModelConfig config = config_of(GetParam());
  auto model = model_of(GetParam());
  const Packed packed = pack(random_sequences(config.vocab_size));
  std::vector<int32_t> target;
  for (size_t i = 0; i < packed.token.size(); ++i)
    target.push_back(static_cast<int32_t>((i * 31) % static_cast<size_t>(config.vocab_size)));
  std::vector<at::Tensor> one, more;
  {
    Threads set(1);
    one = gradients_of(*model, packed, target);
  }
  for (int threads : {2, 3}) {
    Threads set(threads);
    more = gradients_of(*model, packed, target);
    ASSERT_EQ(one.size(), more.size());
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], more[i])) << i << ", threads " << threads;
  }
}

TEST_P(BitEquality, both_paths_agree_closely_in_value_and_gradient) {
  ModelConfig config = config_of(GetParam());
  auto model = model_of(GetParam());
  auto aten = aten_view(*model);
  std::vector<Sequence> sequences = random_sequences(config.vocab_size);
  sequences.resize(9);
  Packed packed = pack(sequences);
  std::vector<at::Tensor> native_gradients;
  // bf16: roundings to 8 bits at different places of the two paths.
  const double bound = GetParam().dtype == Dtype::bf16 ? 0.1 : 2e-5;
  at::Tensor native = model->hidden(packed);
  at::Tensor weight = at::empty(native.sizes(), native.options());
  Rng rng(2, 0);
  for (int64_t i = 0; i < weight.numel(); ++i) weight.data_ptr<float>()[i] = static_cast<float>(rng.normal());
  (native * weight).sum().backward();
  for (const NamedTensor& p : model->trainable()) {
    if (p.name == "lm_head.weight") continue;
    native_gradients.push_back(p.tensor.grad().clone());
    p.tensor.mutable_grad().reset();
  }
  at::Tensor reference = aten->hidden(packed);
  EXPECT_LT((native - reference).abs().max().item<float>(), bound);
  (reference * weight).sum().backward();
  size_t i = 0;
  for (const NamedTensor& p : aten->trainable()) {
    if (p.name == "lm_head.weight") continue;
    double scale = p.tensor.grad().abs().max().item<double>();
    EXPECT_LT((native_gradients[i++] - p.tensor.grad()).abs().max().item<double>(), bound * scale + 1e-5) << p.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    shapes, BitEquality,
    ::testing::Values(Shape{"task", 64, 2, 4, 2, 16, 192, 58}, Shape{"tiny", 128, 4, 4, 2, 32, 352, 512},
                      Shape{"odd", 60, 2, 6, 2, 10, 90, 33}, Shape{"mha", 48, 1, 3, 3, 16, 100, 64},
                      Shape{"wide", 256, 2, 8, 2, 32, 704, 9000}, Shape{"wide_384", 384, 1, 6, 2, 64, 1024, 600},
                      Shape{"wide_896", 896, 2, 14, 2, 64, 1200, 9000},
                      Shape{"wide_1536", 1536, 1, 4, 2, 128, 640, 300}, Shape{"wide_3584", 3584, 1, 4, 1, 64, 500, 300},
                      Shape{"qwen3", 64, 2, 4, 2, 24, 96, 58, "qwen3"},
                      Shape{"llama", 48, 2, 4, 1, 12, 72, 41, "llama"},
                      Shape{"window", 48, 3, 4, 2, 12, 72, 41, "qwen2", 7},
                      Shape{"gemma3", 64, 3, 4, 2, 24, 96, 58, "gemma3_text", 11},
                      Shape{"gemma3_bf16", 64, 3, 4, 2, 24, 96, 58, "gemma3_text", 11, Dtype::bf16},
                      Shape{"gemma3_lora_bf16", 64, 2, 4, 1, 16, 80, 58, "gemma3_text", 16, Dtype::bf16, 5},
                      Shape{"smollm3", 64, 3, 4, 2, 24, 96, 58, "smollm3"},
                      Shape{"smollm3_lora_bf16", 64, 2, 4, 2, 16, 96, 58, "smollm3", 0, Dtype::bf16, 4},
                      Shape{"granite", 64, 3, 4, 2, 24, 96, 58, "granite"},
                      Shape{"granite_bf16", 64, 2, 4, 2, 16, 96, 58, "granite", 0, Dtype::bf16},
                      Shape{"granite_lora_bf16", 64, 2, 4, 2, 16, 96, 58, "granite", 0, Dtype::bf16, 4},
                      Shape{"olmo2", 64, 3, 4, 2, 24, 96, 58, "olmo2"},
                      Shape{"olmo2_bf16", 64, 2, 4, 2, 16, 96, 58, "olmo2", 0, Dtype::bf16},
                      Shape{"olmo3_lora_bf16", 64, 3, 4, 2, 16, 96, 58, "olmo3", 11, Dtype::bf16, 4},
                      Shape{"window_of_a_tile", 32, 2, 2, 1, 16, 40, 33, "qwen3", 16},
                      Shape{"window_of_one", 32, 2, 2, 2, 16, 40, 33, "llama", 1},
                      Shape{"tiny_bf16", 128, 4, 4, 2, 32, 352, 512, "qwen2", 0, Dtype::bf16},
                      Shape{"odd_bf16", 60, 2, 6, 2, 10, 91, 33, "qwen2", 0, Dtype::bf16},
                      Shape{"wide_bf16", 896, 1, 14, 2, 64, 1200, 9000, "qwen2", 0, Dtype::bf16},
                      Shape{"qwen3_bf16", 64, 2, 4, 2, 24, 96, 58, "qwen3", 0, Dtype::bf16},
                      Shape{"lora", 64, 2, 4, 2, 16, 192, 58, "qwen2", 0, Dtype::f32, 4},
                      Shape{"lora_bf16", 64, 2, 4, 2, 16, 192, 58, "llama", 0, Dtype::bf16, 6},
                      Shape{"lora_odd_bf16", 64, 2, 4, 2, 16, 192, 58, "qwen2", 0, Dtype::bf16, 3},
                      Shape{"window_bf16", 48, 3, 4, 2, 12, 72, 41, "qwen2", 7, Dtype::bf16}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ucas
