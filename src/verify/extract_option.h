// Where an answer is looked for, as options say it: one of Extract, or "auto", which the prompt decides
// (config/prompt_choice.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "verify/grader.h"

namespace ucas {

enum class ExtractOption : uint8_t { automatic, strict, lenient, answer_tag };
constexpr std::array<const char*, 4> names(ExtractOption) { return {"auto", "strict", "lenient", "answer_tag"}; }

// nullopt: auto.
constexpr std::optional<Extract> said(ExtractOption option) {
  if (option == ExtractOption::automatic) return std::nullopt;
  return static_cast<Extract>(static_cast<int>(option) - 1);
}
constexpr ExtractOption option_of(Extract extract) {
  return static_cast<ExtractOption>(static_cast<int>(extract) + 1);  // bare is no option
}

}  // namespace ucas
