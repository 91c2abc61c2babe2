// Which grader gave a verdict. Evaluations state it (records/asked.h), so that verdicts of different times can be told
// apart.
#pragma once

namespace ucas {

// Raised whenever the verdict on any answer may change.
constexpr int kGraderVersion = 6;

}  // namespace ucas
