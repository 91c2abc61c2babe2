#include "methods/group_relative.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

void broadcast(const Batch& batch, const AdvantageOf& advantage_of, std::span<float> advantage, Recording& recording) {
  std::vector<float> recorded(batch.responses.size());
  for (const Group& group : batch.groups) {
    auto o = batch.of(group);
    std::vector<double> A = advantage_of(o);
    UCAS_CHECK(A.size() == o.size(), "expected one advantage per response");
    for (size_t i = 0; i < o.size(); ++i) {
      recorded[group.first + i] = static_cast<float>(A[i]);
      std::ranges::fill(advantage.subspan(o[i].first, o[i].length), static_cast<float>(A[i]));
    }
  }
  recording.record_responses("A", std::move(recorded));
}

void GroupRelative::advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const {
  auto A = [&](std::span<const Response> group) { return group_advantage(group, group_); };
  broadcast(batch, A, advantage, recording);
}

Equation group_advantage_equation(const GroupAdvantageConfig& config, const std::string& where,
                                  const std::string& reward) {
  return {where,
          str("A_i = (", reward, "_i - mean(", reward, ")) / (std(", reward, ") + ", config.eps, "), std over G",
              config.ddof == 1 ? " - 1" : ""),
          str("a response's reward against those of the same prompt; the same for all its tokens; 0 where all rewards "
              "are equal; alone in its group: ",
              config.group_of_one == GroupOfOne::reward ? "its reward" : "0")};
}

}  // namespace ucas
