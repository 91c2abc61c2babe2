// Options of an evaluation, shared by `ucas evaluate` and the trainer's validation.
#pragma once

#include <cstdint>
#include <vector>

#include "base/text/fields.h"
#include "core/model_options.h"
#include "core/verdict.h"

namespace ucas {

struct EvalConfig {
  bool greedy = true;        // one greedy response per problem
  int64_t samples = 16;      // n sampled responses per problem; 0 = greedy only
  double temperature = 1.0;  // of the samples
  double top_p = 1.0;
  int64_t top_k = 0;
  double min_p = 0;
  int64_t max_tokens = 1024;                           // response limit, end token included
  std::vector<int64_t> ks = {1, 2, 4, 8, 16, 32, 64};  // of pass@k; those above n are left out
  int64_t seed = 0;
  Dtype dtype = Dtype::f32;
  Truncated truncated = Truncated::grade;
  int64_t stored_responses = 4;    // sampled responses kept per problem
  int64_t bootstrap_draws = 2000;  // resamplings of the problems behind each interval
  double confidence_level = 0.95;
  void fields(Fields& f);
};

}  // namespace ucas
