// Numbers as readers see them: what every table and every sentence about results prints. An unknown number is "-".
// Threads: any; pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/text/json.h"
#include "stats/spread.h"

namespace ucas {

// Percent with one digit for shares, three significant digits otherwise: "84.4", "18.1", "0.693".
std::string number_text(double value, bool share);
std::string bounds_text(const Figure& figure, bool share);  // "[81.7, 84.3]", "" without bounds
// Percentage points of a share with a sign: "+1.7", "-0.04", "0"; another quantity in its own unit.
std::string change_text(double value, bool share);
std::string interval_text(const Figure& change, bool share);  // "-2.4 to +0.1", "" without bounds
std::string p_text(double p);                                 // "0.012", "< 0.001"
std::string measure_text(double value);                       // of any size: "0.693", "123.4", "1.2e-05"

std::string decimal_text(double value, int digits);  // "0.693"
std::string signed_text(double value, int digits);   // "+0.693", "-0.693", "0.000"
std::string share_text(double share);                // "12.5 %"
std::string share_text(int64_t part, int64_t of);    // the same of two counts; "-" of none

OrderedJson json_of(const Figure& figure);  // {"value": .., "low": .., "high": ..}; null where unknown

}  // namespace ucas
