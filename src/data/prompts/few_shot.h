// Worked examples before a question: in the place {examples} of a template, or as earlier turns of a chat.
// Threads: all functions from any thread.
#pragma once

#include <string>
#include <vector>

#include "core/problem.h"
#include "data/prompts/templates.h"

namespace ucas {

// Reads `form.few_shot` into `form.examples`: the first `form.shots` rows (0: all, which it then
// says) and one more, which stands in where a problem
// is an example itself. `where` names the form; a relative path begins at `folder` ("": where the program runs).
void read_examples(Template& prompt_template, const std::string& where, const std::string& folder);
// Of this problem, in the file's order; never the problem itself.
std::vector<Template::Example> examples_for(const Template& prompt_template, const Problem& problem);

}  // namespace ucas
