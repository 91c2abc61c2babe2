// A Model without a network: the hidden state after a token is a pure function of the whole sequence up to it, so any
// mistake with slots, positions or copies changes what is generated. Counts what the engine asks for.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "model/model.h"
#include "model/transformer.h"

namespace ucas::testing {

class FakeForward final : public Forward {
 public:
  struct Counts {
    std::vector<int64_t> prefill_tokens, decode_rows;  // per call
    int64_t copies = 0, slots = 0;
  };
  Counts counts;
  bool broken = false;  // hidden states become NaN
  static constexpr int64_t kWidth = 16;

  at::Tensor hidden(const Packed& packed) override {
    at::Tensor rows = at::empty({static_cast<int64_t>(packed.token.size()), kWidth});
    for (size_t s = 0; s + 1 < packed.begin.size(); ++s) {
      std::vector<int32_t> sequence;
      for (int64_t i = packed.begin[s]; i < packed.begin[s + 1]; ++i) {
        sequence.push_back(packed.token[static_cast<size_t>(i)]);
        write(sequence, rows, i);
      }
    }
    return rows;
  }

  std::unique_ptr<KvCache> make_cache(const KvBudget& room) override {
    counts.slots = room.slots + room.prompt_slots;
    return std::make_unique<Cache>(*this, counts.slots, room.length);
  }

  at::Tensor prefill(const Packed& packed, KvCache& cache, std::span<const int64_t> slots) override {
    counts.prefill_tokens.push_back(static_cast<int64_t>(packed.token.size()));
    for (size_t s = 0; s < slots.size(); ++s) {
      sequence_of(cache, slots[s])
          .assign(packed.token.begin() + packed.begin[s], packed.token.begin() + packed.begin[s + 1]);
    }
    return hidden(packed);
  }

  at::Tensor decode(std::span<const int32_t> token, std::span<const int32_t> position, std::span<const int64_t> slot,
                    KvCache& cache) override {
    counts.decode_rows.push_back(static_cast<int64_t>(token.size()));
    at::Tensor rows = at::empty({static_cast<int64_t>(token.size()), kWidth});
    for (size_t i = 0; i < token.size(); ++i) {
      std::vector<int32_t>& sequence = sequence_of(cache, slot[i]);
      UCAS_CHECK(position[i] == static_cast<int32_t>(sequence.size()), "a token follows those in its slot");
      UCAS_CHECK(position[i] < cache.length(), "the slot is long enough");
      sequence.push_back(token[i]);
      write(sequence, rows, static_cast<int64_t>(i));
    }
    return rows;
  }

 private:
  struct Cache final : KvCache {
    Cache(FakeForward& model, int64_t slots, int64_t length)
        : owner(model), sequence(static_cast<size_t>(slots)), most(length) {}
    int64_t slots() const override { return static_cast<int64_t>(sequence.size()); }
    int64_t length() const override { return most; }
    void copy(int64_t from, int64_t to, int64_t tokens) override {
      ++owner.counts.copies;
      const auto& source = sequence.at(static_cast<size_t>(from));
      sequence.at(static_cast<size_t>(to)).assign(source.begin(), source.begin() + tokens);
    }
    FakeForward& owner;
    std::vector<std::vector<int32_t>> sequence;
    int64_t most;
  };

  static std::vector<int32_t>& sequence_of(KvCache& cache, int64_t slot) {
    return static_cast<Cache&>(cache).sequence.at(static_cast<size_t>(slot));
  }

  void write(const std::vector<int32_t>& sequence, at::Tensor& rows, int64_t row) const {
    uint64_t hash = 14695981039346656037u;
    for (int32_t token : sequence) hash = (hash ^ static_cast<uint64_t>(token + 1)) * 1099511628211u;
    Rng rng(hash, 1);
    float* out = rows.data_ptr<float>() + row * kWidth;
    for (int64_t i = 0; i < kWidth; ++i) out[i] = broken ? 0.0f / 0.0f : static_cast<float>(0.5 * rng.normal());
  }
};

struct FakeParts {
  static ModelConfig config(int64_t vocab) {
    ModelConfig config;
    config.vocab_size = vocab;
    config.hidden_size = FakeForward::kWidth;
    config.max_position_embeddings = 256;
    return config;
  }
  static Weights weights() {
    Weights weights;
    weights.norm = at::empty({FakeForward::kWidth});
    return weights;
  }
  static std::unique_ptr<Head> head(int64_t vocab) {
    at::Tensor weight = at::empty({vocab, FakeForward::kWidth});
    Rng rng(5, 5);
    for (int64_t i = 0; i < weight.numel(); ++i) weight.data_ptr<float>()[i] = static_cast<float>(rng.normal());
    return make_native_head({weight, weight});
  }
};

class FakeModel final : public Model {
 public:
  explicit FakeModel(int64_t vocab = 23) : FakeModel(vocab, new FakeForward) {}

  FakeForward::Counts& counts;
  bool& broken;

 private:
  FakeModel(int64_t vocab, FakeForward* fake)  // which the model owns
      : Model(FakeParts::config(vocab), FakeParts::weights(), {},
              [&](const ModelConfig&, const Weights&, const ModelOptions&) {
                return Parts{std::unique_ptr<Forward>(fake), FakeParts::head(vocab)};
              }),
        counts(fake->counts),
        broken(fake->broken) {}
};

}  // namespace ucas::testing
