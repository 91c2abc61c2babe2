// What the methods of the GRPO family share: every token of a response has the advantage of the response, which is its
// reward among those of the same prompt.
#pragma once

#include <functional>

#include "methods/method.h"
#include "objective/advantage/group_advantage.h"

namespace ucas {

// For people: Eq. 3 with these values.
Equation group_advantage_equation(const GroupAdvantageConfig& config, const std::string& where,
                                  const std::string& reward = "R");

// Eq. 3 for every token. What is left to say is the loss.
class GroupRelative : public Method {
 public:
  void fields(Fields& f) override { group_.fields(f); }
  std::vector<Equation> equations() const override { return {equation("A")}; }
  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override;

 protected:
  Equation equation(const std::string& where, const std::string& reward = "R") const {
    return group_advantage_equation(group_, where, reward);
  }

  GroupAdvantageConfig group_;
};

// Writes A_i of every response to all its tokens and records the row "A". `advantage_of` maps a group to its A_i, [G].
using AdvantageOf = std::function<std::vector<double>(std::span<const Response>)>;
void broadcast(const Batch& batch, const AdvantageOf& advantage_of, std::span<float> advantage, Recording& recording);

}  // namespace ucas
