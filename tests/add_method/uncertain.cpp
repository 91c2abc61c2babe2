// A method with a signal of its own: rewards count where the next token was open. This file, top_entropy.h and a row of
// registry.h are all that it takes: the LM head computes the signal, batch, stored steps and Python carry it.
#include "methods/registry.h"
#include "top_entropy.h"

namespace ucas {

namespace {

class Uncertain final : public Method {
 public:
  explicit Uncertain(std::string_view) {}
  Needs needs() const override { return {.signals = {top_entropy(20)}}; }
  void advantages(const Batch& batch, std::span<float> advantage, Recording&) const override {
    const std::vector<float>& H = batch.signal("top_entropy");
    for (const Response& o : batch.responses) {
      for (int64_t t = o.first; t < o.first + o.length; ++t) advantage[t] = o.reward * H[t];
    }
  }
};

}  // namespace

MethodRow uncertain_row() { return {.title = "Uncertain", .paper = "no paper", .create = create<Uncertain>}; }

}  // namespace ucas
