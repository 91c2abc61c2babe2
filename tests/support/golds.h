// Gold answers for tests of the verifier, each text once.
#pragma once

#include <string>
#include <vector>

namespace ucas::math_golds {

std::vector<std::string> own();     // tests/goldens/verify/golds.jsonl
std::vector<std::string> shared();  // of the shared data sets (UCAS_SHARED_DATA); empty where they are not

}  // namespace ucas::math_golds
