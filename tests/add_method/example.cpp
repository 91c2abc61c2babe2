// A method that the program does not have: half of the response's reward, for every token. This file and one row of
// registry.h are all that it takes; main() below only looks whether it is there.
#include <cstdio>
#include <vector>

#include "methods/registry.h"

namespace ucas {

namespace {

class Example final : public Method {
 public:
  std::string title() const override { return "Example"; }
  std::string paper() const override { return "nobody, never"; }
  void fields(Fields& f) override { f.field("share", share_, Range{0, 1}, "of the reward"); }
  void advantages(const Batch& batch, std::span<float> advantage, Trace&) const override {
    for (const Response& o : batch.responses) {
      for (int64_t t = 0; t < o.length; ++t) {
        advantage[static_cast<size_t>(o.first + t)] = static_cast<float>(share_ * o.reward);
      }
    }
  }

 private:
  double share_ = 0.5;
};

}  // namespace

std::unique_ptr<Method> make_example() { return std::make_unique<Example>(); }

}  // namespace ucas

int main() {
  using namespace ucas;
  std::unique_ptr<Method> method = make_method("example");
  ucas::apply(*method, {{"share", 0.25, "example", false}});
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
  std::vector<float> advantage(3);
  Trace trace;
  method->advantages(batch, advantage, trace);
  bool right = method->title() == "Example" && advantage == std::vector<float>{1, -2, -2};
  bool others = make_method("grpo")->title() == "GRPO" && method_rows().back().name == std::string("example");
  std::printf("%zu methods, the last is %s; its advantages are %g %g %g\n", method_rows().size(),
              method_rows().back().name, advantage[0], advantage[1], advantage[2]);
  return right && others ? 0 : 1;
}
