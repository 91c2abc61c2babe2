// Does the model know when it is right? One answer from the same responses as the other figures.
// Fed by evaluate/score; feeds NAME.json and the report. LibTorch-free. Threads: any.
#pragma once

#include <span>

#include "records/evaluation.h"

namespace ucas {

struct Judged {
  bool right = false;
  double mean_logprob = 0;  // over the response's tokens
  double confidence = 0;    // C(o|q) of Eq. 6
};

// Responses whose numbers are not finite (none was measured) are left out of what needs the number.
Calibration calibrate(std::span<const Judged> responses);

}  // namespace ucas
