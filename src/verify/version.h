// Which grader gave a verdict. Run cards state it (records/card.h), so that verdicts of different times can be told
// apart from tampered ones.
#pragma once

namespace ucas {

// Raised whenever the verdict on any answer may change.
constexpr int kGraderVersion = 5;

}  // namespace ucas
