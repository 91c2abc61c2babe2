#include "methods/gae.h"

#include "base/error.h"

namespace ucas {

void gae(const Batch& batch, std::span<const double> reward, double gamma, double lambda, std::span<double> advantage) {
  UCAS_CHECK(batch.value.size() == batch.token.size() && reward.size() == batch.token.size() &&
                 advantage.size() == batch.token.size(),
             "GAE needs the value and the reward of every token");
  for (const Response& o : batch.responses) {
    auto first = static_cast<size_t>(o.first);
    double V_next = 0, A_next = 0;
    for (size_t t = first + static_cast<size_t>(o.length); t-- > first;) {
      double V = batch.value[t];
      double delta = reward[t] + gamma * V_next - V;
      A_next = advantage[t] = delta + gamma * lambda * A_next;
      V_next = V;
    }
  }
}

}  // namespace ucas
