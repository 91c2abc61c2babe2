#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/str.h"
#include "kernels/head.h"
#include "kernels/lm_head.h"
#include "model/backend/block.h"
#include "model/head/head.h"
#include "support/signals.h"

namespace ucas {
namespace {

// Standard normal, the same in every run.
at::Tensor normal(at::IntArrayRef shape, uint64_t stream) {
  at::Tensor x = at::empty(shape, at::kFloat);
  Rng rng(23, stream);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = static_cast<float>(rng.normal());
  return x;
}

struct Reference {
  at::Tensor logprob, entropy, confidence, margin, likely;
};

// The whole thing in float64 with everything stored.
Reference reference(const at::Tensor& hidden, const at::Tensor& head, const std::vector<int32_t>& target, double tau,
                    int64_t likeliest) {
  at::Tensor z = at::mm(hidden, head.t()) / tau, lp = at::log_softmax(z, 1);
  at::Tensor index = at::tensor(std::vector<int64_t>(target.begin(), target.end())).unsqueeze(1);
  return {lp.gather(1, index).squeeze(1), -(lp.exp() * lp).sum(1), z.logsumexp(1) - z.mean(1),
          lp.gather(1, index).squeeze(1) - lp.amax(1),
          lp.gather(1, std::get<1>(lp.topk(std::min(likeliest, lp.size(1)), 1))).mean(1)};
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

using MakeHead = std::unique_ptr<Head> (*)(Matrix);

void check_against_double(MakeHead make_head, int64_t rows, int64_t width, int64_t vocab, double tau,
                          int64_t likeliest = 3) {
  at::Tensor h = normal({rows, width}, 1), w = normal({vocab, width}, 2) * 0.4;
  h.set_requires_grad(true);
  w.set_requires_grad(true);
  at::Tensor h64 = h.detach().to(at::kDouble).set_requires_grad(true);
  at::Tensor w64 = w.detach().to(at::kDouble).set_requires_grad(true);
  std::vector<int32_t> target;
  for (int64_t i = 0; i < rows; ++i) target.push_back(static_cast<int32_t>((i * 7919) % vocab));
  target[0] = static_cast<int32_t>(vocab - 1);
  HeadStats got = make_head({w, w})->stats(h, target, tau, testing::mean_of_likeliest(likeliest));
  Reference want = reference(h64, w64, target, tau, likeliest);
  EXPECT_LT(largest_difference(got.logprob, want.logprob), 2e-5);
  EXPECT_LT(largest_difference(got.entropy, want.entropy), 2e-5);
  EXPECT_LT(largest_difference(got.confidence, want.confidence), 2e-5);
  EXPECT_LT(largest_difference(got.margin, want.margin), 2e-5);
  EXPECT_LT(largest_difference(got.signals[0], want.likely), 2e-5);
  at::Tensor g = normal({rows}, 3), e = normal({rows}, 4), u = normal({rows}, 5), l = normal({rows}, 6);
  for (at::Tensor* t : {&g, &e, &u, &l}) t->narrow(0, rows / 3, rows / 4).zero_();  // rows that are skipped
  l.narrow(0, 0, rows / 2).zero_();                                                 // and rows without this part
  (got.logprob * g + got.entropy * e + got.confidence * u + got.signals[0] * l).sum().backward();
  (want.logprob * g + want.entropy * e + want.confidence * u + want.likely * l).sum().backward();
  EXPECT_LT(largest_difference(h.grad(), h64.grad()), 1e-4 * (1 + h64.grad().abs().max().item<double>()));
  EXPECT_LT(largest_difference(w.grad(), w64.grad()), 1e-4 * (1 + w64.grad().abs().max().item<double>()));
}

TEST(head_stats, agree_with_a_stored_float64_softmax_in_value_and_gradient) {
  for (MakeHead make_head : {make_native_head, make_aten_head}) {
    check_against_double(make_head, 5, 16, 58, 1.0);
    check_against_double(make_head, 16, 32, 64, 0.6);
    check_against_double(make_head, 300, 24, 1009, 1.3);                  // two chunks of rows
    check_against_double(make_head, 9, 8, 2 * kernels::kTile + 77, 1.0);  // three tiles of the vocabulary
    check_against_double(make_head, 9, 8, 2 * kernels::kTile + 77, 1.0, 700);
    check_against_double(make_head, 5, 16, 58, 1.0, 1);
    check_against_double(make_head, 5, 16, 58, 1.0, 1000);  // more than there are
  }
}

// The mean log-prob of all tokens is -C.
TEST(head_stats, the_likeliest_tokens_of_a_whole_vocabulary_say_what_the_confidence_says) {
  for (MakeHead make_head : {make_native_head, make_aten_head}) {
    std::vector<at::Tensor> gradients;
    for (const bool likely : {false, true}) {
      at::Tensor h = normal({6, 8}, 20).set_requires_grad(true), w = normal({33, 8}, 21).set_requires_grad(true);
      const HeadStats stats =
          make_head({w, w})->stats(h, {0, 5, 9, 32, 1, 2}, 0.7, testing::mean_of_likeliest(likely ? 33 : 0));
      EXPECT_EQ(stats.signals.empty(), !likely);
      (likely ? stats.signals[0] : -stats.confidence).sum().backward();
      gradients.push_back(h.grad());
    }
    EXPECT_LT(largest_difference(gradients[0], gradients[1]), 1e-5);
  }
}

TEST(head_stats, logits_that_are_kept_give_the_bits_of_those_that_are_computed_again) {
  constexpr int64_t kVocab = 8 * kernels::kTile + 100;
  const int64_t rows = kernels::rows_kept(kVocab) + 30, first = rows / 512 * 256;
  const at::Tensor h = normal({rows, 8}, 11), g = normal({rows}, 12), e = normal({rows}, 13), l = normal({rows}, 22);
  for (const at::Tensor* t : {&g, &e, &l}) t->narrow(0, 100, 300).zero_();  // some rows are skipped
  const std::vector<TokenSignal> likeliest = testing::mean_of_likeliest(3);
  for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    std::vector<at::Tensor> hidden, head;
    for (const int64_t cut : {rows, first}) {  // more rows than are kept; in two parts, both are
      at::Tensor w = normal({kVocab, 8}, 14).set_requires_grad(true), d_hidden = at::empty_like(h);
      for (int64_t at = 0; at < rows; at += cut) {
        const int64_t count = at == 0 ? cut : rows - cut;
        at::Tensor part = h.narrow(0, at, count).detach().clone().set_requires_grad(true);
        const HeadStats stats =
            make_native_head({w, w.detach().to(type)})->stats(part, std::vector<int32_t>(count, 70), 0.9, likeliest);
        const auto of = [&](const at::Tensor& x) { return x.narrow(0, at, count); };
        (stats.logprob * of(g) + stats.entropy * of(e) + stats.signals[0] * of(l)).sum().backward();
        d_hidden.narrow(0, at, count).copy_(part.grad());
        if (at > 0) break;
      }
      hidden.push_back(d_hidden);
      head.push_back(w.grad());
    }
    EXPECT_TRUE(hidden[0].equal(hidden[1]));
    if (type == at::kFloat) {
      EXPECT_TRUE(head[0].equal(head[1]));
    } else {  // sums of bf16 depend on which rows are skipped together
      EXPECT_LT(largest_difference(head[0], head[1]), 1e-4 * head[0].abs().max().item<double>());
    }
  }
}

TEST(head_stats, equal_logits_are_the_uniform_distribution_with_no_entropy_gradient) {
  at::Tensor h = normal({4, 8}, 6).set_requires_grad(true);
  at::Tensor w = normal({1, 8}, 7).repeat({33, 1});
  HeadStats stats = make_native_head({w, w})->stats(h, {0, 5, 9, 32}, 0.7);
  for (const at::Tensor& t : {-stats.logprob, stats.entropy, stats.confidence})
    EXPECT_LT(largest_difference(t, at::full({4}, std::log(33.0))), 1e-5);
  stats.entropy.sum().backward();
  EXPECT_LT(h.grad().abs().max().item<double>(), 1e-5);
}

TEST(head_stats, a_row_is_bit_equal_alone_and_in_any_batch_and_to_the_samplers_logits) {
  at::Tensor h = normal({70, 64}, 8), w = normal({kernels::kTile + 123, 64}, 9);
  std::vector<int32_t> target;
  for (int32_t i = 0; i < 70; ++i) target.push_back(i * 101);
  auto head = make_native_head({w, w});
  const std::vector<TokenSignal> likeliest = testing::mean_of_likeliest(4);
  HeadStats all = head->stats(h, target, 0.9), asked = head->stats(h, target, 0.9, likeliest);
  EXPECT_TRUE(asked.logprob.equal(all.logprob));
  at::Tensor logits = head->logits(h);
  for (int64_t row : {0, 1, 17, 42, 69}) {
    std::vector<int32_t> one{target[static_cast<size_t>(row)]};
    HeadStats alone = head->stats(h.narrow(0, row, 1), one, 0.9);
    EXPECT_EQ(alone.logprob.item<float>(), all.logprob[row].item<float>());
    EXPECT_EQ(alone.entropy.item<float>(), all.entropy[row].item<float>());
    EXPECT_EQ(alone.confidence.item<float>(), all.confidence[row].item<float>());
    EXPECT_EQ(alone.margin.item<float>(), all.margin[row].item<float>());
    EXPECT_EQ(head->stats(h.narrow(0, row, 1), one, 0.9, likeliest).signals[0].item<float>(),
              asked.signals[0][row].item<float>());
    at::Tensor own = head->logits(h.narrow(0, row, 1))[0].contiguous();
    EXPECT_TRUE(own.equal(logits[row]));
    float chosen = own.data_ptr<float>()[one[0]], inverse = static_cast<float>(1 / 0.9);
    kernels::RowStats stats = kernels::stats_of_row(own.data_ptr<float>(), own.numel(), inverse);
    EXPECT_EQ(kernels::token_stats(stats, chosen, inverse, own.numel()).logprob, alone.logprob.item<float>());
    EXPECT_EQ(kernels::token_stats(stats, chosen, inverse, own.numel()).margin, alone.margin.item<float>());
    EXPECT_EQ(chosen, alone.logit.item<float>());
    const auto most = own.argmax().item<int64_t>();
    EXPECT_LE(alone.margin.item<float>(), 0);
    EXPECT_EQ(head->stats(h.narrow(0, row, 1), {static_cast<int32_t>(most)}, 0.9).margin.item<float>(), 0);
  }
}

// The head of the Python package (kernels/head.h), on the same memory.
struct PlainHead {
  at::Tensor logprob, entropy, confidence, logit, margin, d_hidden, d_weight;
};

PlainHead plain_head(const at::Tensor& hidden, const at::Tensor& weight, const std::vector<int64_t>& target, double tau,
                     const at::Tensor& g, const at::Tensor& e, const at::Tensor& u, int64_t threads) {
  const int64_t rows = hidden.size(0);
  PlainHead out;
  at::Tensor lse;
  for (at::Tensor* t : {&out.logprob, &out.entropy, &out.confidence, &out.logit, &out.margin, &lse})
    *t = at::empty({rows}, at::kFloat);
  out.d_hidden = at::zeros_like(hidden);
  out.d_weight = at::zeros_like(weight);
  const kernels::HeadInput in{.rows = rows,
                              .vocab = weight.size(0),
                              .width = hidden.size(1),
                              .hidden = data(hidden),
                              .weight = {.f32 = data(weight)},
                              .target = target.data(),
                              .inverse_temperature = static_cast<float>(1 / tau)};
  kernels::head_stats(
      in, {data(out.logprob), data(out.entropy), data(out.confidence), data(out.logit), data(out.margin), data(lse)},
      threads);
  kernels::head_gradient(in, data(lse), data(out.entropy), {data(g), data(e), data(u)}, data(out.d_hidden),
                         data(out.d_weight), threads);
  return out;
}

TEST(head_stats, the_python_package_s_head_has_the_trainer_s_bits_in_value_and_gradient) {
  struct {
    int64_t rows, width, vocab;
  } const shapes[] = {{1, 8, 33}, {5, 16, 58}, {300, 24, 1009}, {70, 60, kernels::kTile + 123}, {530, 130, 700}};
  for (const auto& [rows, width, vocab] : shapes) {
    const at::Tensor h = normal({rows, width}, 15), w = normal({vocab, width}, 16) * 0.4;
    const at::Tensor g = normal({rows}, 17), e = normal({rows}, 18), u = normal({rows}, 19);
    for (const at::Tensor* t : {&g, &e, &u}) t->narrow(0, rows / 3, rows / 4).zero_();  // rows that are skipped
    std::vector<int64_t> target;
    for (int64_t i = 0; i < rows; ++i) target.push_back(i * 7919 % vocab);
    const at::Tensor hidden = h.clone().set_requires_grad(true), weight = w.clone().set_requires_grad(true);
    const HeadStats want = make_native_head({weight, weight})->stats(hidden, {target.begin(), target.end()}, 0.7);
    (want.logprob * g + want.entropy * e + want.confidence * u).sum().backward();
    for (int64_t threads : {1, 3}) {
      const PlainHead got = plain_head(h, w, target, 0.7, g, e, u, threads);
      const std::string where = str(rows, " x ", width, " x ", vocab, ", threads ", threads);
      EXPECT_TRUE(got.logprob.equal(want.logprob)) << where;
      EXPECT_TRUE(got.entropy.equal(want.entropy)) << where;
      EXPECT_TRUE(got.confidence.equal(want.confidence)) << where;
      EXPECT_TRUE(got.logit.equal(want.logit)) << where;
      EXPECT_TRUE(got.margin.equal(want.margin)) << where;
      EXPECT_TRUE(got.d_hidden.equal(hidden.grad())) << where;
      EXPECT_TRUE(got.d_weight.equal(weight.grad())) << where;
    }
  }
}

}  // namespace
}  // namespace ucas
