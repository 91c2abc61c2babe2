// calculator: the model writes <calc>12*34</calc>, the environment <result>408</result>. + - * / and parentheses over
// whole numbers, evaluated by exact fractions: 7/2 is <result>7/2</result>. What is none is <result>error:
// ...</result>.
#include "base/str.h"
#include "rollout/environment/environment.h"
#include "verify/text/arithmetic.h"

namespace ucas {

namespace {

constexpr std::string_view kOpen = "<calc>", kClose = "</calc>";
constexpr size_t kLongest = 512;  // bytes of an expression

std::string value_of(std::string_view expression) {
  if (expression.size() > kLongest) return "error: too long";
  const std::optional<std::string> symbols = arithmetic::symbols_of(expression);
  if (!symbols) return "error: not an arithmetic expression";
  arithmetic::Evaluation evaluation(*symbols);
  const std::optional<arithmetic::Fraction> value = evaluation.run();
  if (!value) return str("error: ", evaluation.problem());
  return value->below == 1 ? str(value->above) : str(value->above, "/", value->below);
}

class Calculator final : public Environment {
 public:
  void reset(const Problem& /*problem*/) override {}
  std::optional<std::string> step(std::string_view text) override {
    const size_t close = text.rfind(kClose);
    if (close == std::string_view::npos) return std::nullopt;
    const size_t open = text.substr(0, close).rfind(kOpen);
    if (open == std::string_view::npos) return "<result>error: no <calc></result>";
    const size_t begin = open + kOpen.size();
    return str("<result>", value_of(text.substr(begin, close - begin)), "</result>");
  }
};

}  // namespace

EnvironmentRow row_of_calculator() {
  return {.turn_ends = {std::string(kClose)},
          .says = "<result>0123456789-/error: abcdefghijklmnopqrstuvwxyz<calc></result>",
          .make = [] { return std::unique_ptr<Environment>(std::make_unique<Calculator>()); }};
}

}  // namespace ucas
