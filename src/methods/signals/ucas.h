// UCAS as the paper has it (Algorithm 1; signals/ucas.cpp). Each equation is a function of its own, which
// signals/ucas_variants.cpp overrides for the released code's departures and for study. Shapes: B responses, G of a
// group, N packed tokens (core/batch.h); advantages have no unit, C and l are nats.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "methods/group_relative.h"

namespace ucas {

// What Algorithm 1 computes on its way, for the report.
struct UcasSteps {
  struct OfResponse {
    double A = 0, C = 0, C_hat = 0, W = 1, A_mod = 0;
  };
  std::vector<OfResponse> response;  // [B]
  std::vector<double> l_hat;         // [N]
};

// The numbers of signals/ucas_metrics.cpp, of a step's advantages.
void record_ucas_metrics(const Batch& batch, std::span<const float> A_final, const UcasSteps& steps,
                         Recording& recording);
std::vector<const Metric*> ucas_metrics();
// The article's method with the options of signals/ucas_variants.cpp at their defaults, or another preset.
std::unique_ptr<Method> make_ucas(std::string_view preset);

class Ucas : public Method {
 public:
  Ucas();
  void fields(Fields& f) override;
  Needs needs() const override { return {.signals = {signals::confidence(), signals::logit()}}; }
  std::vector<Equation> equations() const override;
  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override;

 protected:
  // All of Algorithm 1: the advantage of every token, [N].
  void algorithm_1(const Batch& batch, std::span<float> A_final, UcasSteps& steps) const;

  // Of one group, o_1 .. o_G, [G].
  virtual std::vector<double> advantage_of(std::span<const Response> o) const;                             // Eq. 3
  virtual std::vector<double> confidence_of(const Batch& batch, std::span<const Response> o) const;        // Eq. 6
  virtual std::vector<double> standardized(std::span<const double> C, std::span<const Response> o) const;  // Eq. 7
  // Of one response.
  virtual double weight_of(double A, double C_hat, const Response& o_i) const;  // Eq. 8
  // Of every token, [N].
  virtual std::vector<double> scaled_certainty(const Batch& batch) const;  // Eq. 9
  // Of one token.
  virtual double token_advantage(double A, double A_mod, double l_hat, const Response& o_i) const;  // Eq. 10

  double alpha_ = 0.25;  // Eq. 8; 0 = token-level shaping only
  double beta_ = 0.01;   // Eq. 10; 0 = response-level shaping only
  GroupAdvantageConfig group_;
};

// max(0, x), by which a NaN stays one: std::max(0.0, NaN) is 0, and a token of advantage 0 has zero gradient.
inline double not_below_zero(double x) { return x < 0 ? 0 : x; }

}  // namespace ucas
