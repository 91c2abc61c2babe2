// A method that the program does not have: half of the response's reward, for every token. This file and one row of
// registry.h are all that it takes; main() below only looks whether it is there.
#include <cstdio>
#include <string>
#include <vector>

#include "methods/apply.h"
#include "methods/registry.h"

namespace ucas {

namespace {

class Example final : public Method {
 public:
  explicit Example(std::string_view preset) : share_(preset == "half" ? 0.5 : 1) {}
  void fields(Fields& f) override { f.field("share", share_, Range{0, 1}, "of the reward"); }
  void advantages(const Batch& batch, std::span<float> advantage, Recording&) const override {
    for (const Response& o : batch.responses) {
      for (int64_t t = 0; t < o.length; ++t) {
        advantage[o.first + t] = static_cast<float>(share_ * o.reward);
      }
    }
  }

 private:
  double share_;
};

}  // namespace

MethodRow example_row() {
  return {.title = "Example", .paper = "no paper", .presets = {"half", "whole"}, .create = create<Example>};
}

}  // namespace ucas

#include "base/error.h"

namespace ucas {

namespace {

// The method with a signal of its own: it says so, refuses a batch without it and reads one that has it.
bool reads_its_signal(Batch batch) {
  const std::vector<TokenSignal> signals = make_method("uncertain")->needs().signals;
  bool refused = false;
  try {
    compute_advantages("uncertain", batch);
  } catch (const Error& failure) {
    refused = std::string(failure.what()).find("\"top_entropy\"") != std::string::npos;
  }
  batch.signal("top_entropy") = {0.5f, 0, 2};
  return refused && signals.size() == 1 && signals[0].reads.count == 20 &&
         compute_advantages("uncertain", batch).advantage == std::vector<float>{2, 0, -16};
}

}  // namespace

}  // namespace ucas

int main() {
  using namespace ucas;
  Batch batch;
  batch.groups.push_back({0, 0, 2, {}});
  batch.token.resize(3);
  for (auto [first, length, reward] : {std::tuple{0, 1, 4.0f}, {1, 2, -8.0f}}) {
    Response o;
    o.first = first;
    o.length = length;
    o.reward = reward;
    batch.responses.push_back(o);
  }
  std::vector<float> advantage =
      compute_advantages("example", batch, "", {{"share", 0.25, "example", false}}).advantage;
  bool right = find_method("example").title == "Example" && advantage == std::vector<float>{1, -2, -2};
  right &= compute_advantages("example", batch).advantage == std::vector<float>{2, -4, -4};  // under its first preset
  bool others = find_method("grpo").title == "GRPO" && method_rows().back().name == "example";
  std::printf("%zu methods, the last is %s; its advantages are %g %g %g\n", method_rows().size(),
              method_rows().back().name.c_str(), advantage[0], advantage[1], advantage[2]);
  return right && others && reads_its_signal(batch) ? 0 : 1;
}
