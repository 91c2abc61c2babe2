// Does confidence know when an answer is right? Reliability of stated probabilities (ECE), and ranking (AUROC).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ucas {

// Chance that a random right answer scores above a random wrong one, ties counting half (Mann-Whitney U / (n1 n0)).
// Unknown (NaN) unless there are both right and wrong answers.
double auroc(std::span<const double> score, const std::vector<bool>& right);

struct ReliabilityBin {
  double low = 0, high = 0;  // of the stated probability; a value on an inner border belongs to the lower bin
  int64_t count = 0;
  double stated = 0, right = 0;  // means over the bin; 0 where it is empty
};
// Equal-width bins over [0, 1] (Guo et al. 2017): (0, 1/M], (1/M, 2/M] ...; 0 itself lies in the first.
std::vector<ReliabilityBin> reliability(std::span<const double> probability, const std::vector<bool>& right,
                                        int64_t bins = 10);
// Expected calibration error: sum over bins of count / n |right - stated|. Unknown without values.
double expected_calibration_error(std::span<const ReliabilityBin> bins);

}  // namespace ucas
