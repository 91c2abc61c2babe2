// Evaluations as compare/ takes them, and how each was made, for people. Threads: any.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compare/answers.h"
#include "evaluate/card.h"
#include "evaluate/result.h"

namespace ucas {

RunAnswers answers_of(const EvalResult& result);

std::vector<std::pair<std::string, std::string>> settings_of(const Card& card);
// Of DIRECTORY/NAME.card.json where there is one, else of NAME.json.
std::vector<std::pair<std::string, std::string>> recorded_settings(const std::string& directory,
                                                                   const std::string& name);

}  // namespace ucas
