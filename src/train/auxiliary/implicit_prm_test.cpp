#include "train/auxiliary/implicit_prm.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/rng.h"
#include "support/engine/small_models.h"
#include "support/implicit_prm_loss.h"
#include "text/tokenizer/added_tokens.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/signals/logprobs.h"

namespace ucas {
namespace {

constexpr int64_t kPrmVocab = 24;

ModelConfig prm_shape() { return testing::small_shape(kPrmVocab); }

// Ragged responses, one of them empty; right ones avoid token 3.
Batch small_batch() {
  Rng rng(11, 0);
  Batch batch;
  for (int64_t g = 0; g < 3; ++g) {
    Group group{g, static_cast<int64_t>(batch.responses.size()), 4, {1, 2, static_cast<int32_t>(4 + g)}};
    for (int64_t i = 0; i < 4; ++i) {
      Response o;
      o.first = batch.token_count();
      o.length = g == 1 && i == 2 ? 0 : 1 + rng.below(6);
      o.group = g;
      o.verdict.kind = i % 2 == 0 ? VerdictKind::equal : VerdictKind::unequal;
      for (int64_t t = 0; t < o.length; ++t) {
        batch.token.push_back(i % 2 == 0 ? static_cast<int32_t>(5 + rng.below(kPrmVocab - 5)) : 3);
      }
      batch.responses.push_back(o);
    }
    batch.groups.push_back(group);
  }
  batch.rollout_logprob.assign(batch.token.size(), 0.0f);
  return batch;
}

std::vector<double> prm_gradient(Model& model) {
  std::vector<double> all;
  for (NamedTensor& p : model.parameters()) {
    for (float v : to_host(p.tensor.grad().reshape({-1}))) all.push_back(v);
    p.tensor.mutable_grad() = at::Tensor();
  }
  return all;
}

// A frozen reference that differs from phi, so that q is not 0.
std::vector<float> other_reference(const Batch& batch) {
  std::unique_ptr<Model> other = make_model(prm_shape(), 9, at::kCPU);
  return compute_logprobs(*other, batch, 1.0, 4096);
}

double loss_of(Model& phi, const Batch& batch, const std::vector<float>& ref, double beta) {
  Batch scored = batch;
  scored.signal("prm_logratio") = compute_logprobs(phi, batch, 1.0, 4096);
  for (size_t t = 0; t < ref.size(); ++t) scored.signal("prm_logratio")[t] -= ref[t];
  return testing::implicit_prm_loss(scored, beta).loss;
}

TEST(implicit_prm_gradient, does_not_depend_on_the_micro_batches) {
  std::unique_ptr<Model> phi = make_model(prm_shape(), 3, at::kCPU);
  Batch batch = small_batch();
  std::vector<float> ref = other_reference(batch);
  PrmLoss whole = accumulate_prm_gradients(*phi, batch, ref, 0.3, 4096);
  std::vector<double> one = prm_gradient(*phi);
  PrmLoss cut = accumulate_prm_gradients(*phi, batch, ref, 0.3, 16);
  std::vector<double> many = prm_gradient(*phi);
  EXPECT_NEAR(whole.loss, loss_of(*phi, batch, ref, 0.3), 1e-9);
  EXPECT_NEAR(whole.loss, cut.loss, 1e-12);
  double difference = 0, size = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference += (one[i] - many[i]) * (one[i] - many[i]);
    size += one[i] * one[i];
  }
  EXPECT_GT(size, 0);
  EXPECT_LT(std::sqrt(difference / size), 1e-5);
}

TEST(implicit_prm_gradient, is_the_slope_of_the_cross_entropy) {
  std::unique_ptr<Model> phi = make_model(prm_shape(), 3, at::kCPU);
  Batch batch = small_batch();
  std::vector<float> ref = other_reference(batch);
  accumulate_prm_gradients(*phi, batch, ref, 0.3, 4096);
  std::vector<at::Tensor> grads;
  double squares = 0;
  for (NamedTensor& p : phi->parameters()) {
    grads.push_back(p.tensor.grad().clone());
    for (float v : to_host(grads.back().reshape({-1}))) squares += static_cast<double>(v) * v;
  }
  // Along the gradient itself the slope is its squared length.
  auto move = [&](double by) {
    size_t k = 0;
    for (NamedTensor& p : phi->parameters()) {
      at::Tensor detached = p.tensor.detach();
      detached.add_(grads[k++], by);
    }
  };
  double h = 0.001 / std::sqrt(squares);
  move(h);
  double up = loss_of(*phi, batch, ref, 0.3);
  move(-2 * h);
  double down = loss_of(*phi, batch, ref, 0.3);
  EXPECT_NEAR((up - down) / (2 * h) / squares, 1, 0.003);
}

class implicit_prm_model : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("ucas-prm-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    write_tokenizer(directory_, "word");
    save_model(*make_model(prm_shape(), 3, at::kCPU), directory_.string());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static void write_tokenizer(const std::filesystem::path& to, const std::string& word) {
    std::vector<std::string> words;
    for (int i = 0; i < kPrmVocab - 2; ++i) words.push_back(word + std::string(static_cast<size_t>(i + 1), 'x'));
    write_word_level_tokenizer(to.string(), words, "<eos>", "<pad>");
  }
  std::unique_ptr<AuxiliaryModel> make(const std::string& preset, const std::string& lr = "0.01",
                                       const std::string& model = "") const {
    std::vector<Setting> settings = {{"method.name", std::string("prime"), "test", true},
                                     {"method.preset", preset, "test", true},
                                     {"method.prm.optimizer.lr", lr, "test", true},
                                     {"method.prm.model", model, "test", true},
                                     {"model", directory_.string(), "test", true}};
    return make_implicit_prm(make_train_config(settings), at::kCPU);
  }

  std::filesystem::path directory_;
};

TEST_F(implicit_prm_model, scores_before_it_learns_where_the_authors_do) {
  std::unique_ptr<AuxiliaryModel> prm = make("authors");
  Batch batch = small_batch();
  StepMetrics m;
  prm->prepare(batch, {1, 10, 0}, m);
  for (float q : batch.signal("prm_logratio")) EXPECT_EQ(q, 0.0f);  // phi is its frozen start, to the bit
  prm->learn(batch, {1, 10, 0}, m);
  EXPECT_NEAR(m.get(metric::prm_ce_loss), std::log(2.0), 1e-6);
  EXPECT_EQ(m.get(metric::prm_lr), 0.01);
  prm->prepare(batch, {2, 10, 0}, m);
  EXPECT_NE(m.get(metric::prm_logratio.mean), 0);
}

TEST_F(implicit_prm_model, learns_to_tell_right_from_wrong) {
  std::unique_ptr<AuxiliaryModel> prm = make("verl");
  Batch batch = small_batch();
  StepMetrics first, last;
  prm->prepare(batch, {1, 30, 0}, first);
  EXPECT_NE(first.get(metric::prm_logratio.max), 0);  // trained on the batch before it scored it
  for (int64_t step = 2; step <= 30; ++step) {
    last = {};
    prm->prepare(batch, {step, 30, 0}, last);
    prm->learn(batch, {step, 30, 0}, last);
  }
  EXPECT_LT(last.get(metric::prm_ce_loss), 0.9 * first.get(metric::prm_ce_loss));
  EXPECT_EQ(last.get(metric::prm_accuracy), 1);
  EXPECT_EQ(prm->optimizer()->steps(), 30);  // one update per step
}

TEST_F(implicit_prm_model, skips_an_update_that_is_not_finite_and_gives_up_after_three) {
  std::unique_ptr<AuxiliaryModel> prm = make("verl");
  prm->weights().front().tensor.detach().fill_(NAN);
  Batch batch = small_batch();
  StepMetrics m;
  prm->prepare(batch, {1, 10, 0}, m);
  EXPECT_EQ(m.get(metric::prm_skipped_updates), 1);
  prm->prepare(batch, {2, 10, 0}, m);
  std::unique_ptr<AuxiliaryModel> resumed = make("verl");
  resumed->restore(prm->state());
  resumed->weights().front().tensor.detach().fill_(NAN);
  EXPECT_THROW(resumed->prepare(batch, {3, 10, 0}, m), Error);
}

TEST_F(implicit_prm_model, refuses_a_reward_model_with_another_vocabulary) {
  std::filesystem::path other = directory_ / "other";
  std::filesystem::create_directories(other);
  write_tokenizer(other, "term");
  save_model(*make_model(prm_shape(), 4, at::kCPU), other.string());
  EXPECT_THROW(make("verl", "0.01", other.string()), Error);
  EXPECT_NE(make("verl", "0.01", directory_.string()), nullptr);
}

TEST_F(implicit_prm_model, is_not_there_where_no_method_asks_for_it) {
  std::vector<Setting> settings = {{"method.name", std::string("grpo"), "test", true}};
  EXPECT_EQ(make_implicit_prm(make_train_config(settings), at::kCPU), nullptr);
}

}  // namespace
}  // namespace ucas
