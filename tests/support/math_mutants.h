// Right answers with one thing changed, for the question what a verifier pays that it should not. A kind of change
// finds a place for it in a gold answer, or none; what it makes is another answer, apart from the few that happen to
// say the same (0 negated). Texts only: nothing of the verifier is used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"

namespace ucas::math_mutants {

struct MutantKind {
  const char* name;
  std::optional<std::string> (*change)(const std::string& gold, Rng& rng);
};

// Whether all of the text counts: no sentences, no calculation or formula in front of a value, no integral or limit.
bool says_one_thing(const std::string& gold);

const std::vector<MutantKind>& mutant_kinds();

}  // namespace ucas::math_mutants
