// Prompts by the chat template of a checkpoint (text/jinja/jinja.h): the messages of a problem as its Jinja writes
// them. Threads: all functions from any thread.
#pragma once

#include <string>
#include <vector>

#include "core/problem.h"
#include "data/prompts/templates.h"
#include "text/unicode/unicode.h"

namespace ucas {

// Fills in what a checkpoint's files say: `text`, where the form has none of its own, and `tokens`. `checkpoint` is the
// directory of a tokenizer, "" if there is none; `where` names the form. Then reads `text` as a program.
void prepare_chat(Template& prompt_template, const std::string& checkpoint, const std::string& where);
// Whether a checkpoint's files bring one of its own; "" does not.
bool has_chat_template(const std::string& checkpoint);
// The system message, the earlier turns and `question`, then what begins the answer.
MarkedText render_chat(const Template& prompt_template, const Problem& problem, const std::string& question);

// Worked examples before a question: in the place {examples} of a template, or as earlier turns of a chat.
// Threads: all functions from any thread.

// Reads `form.few_shot` into `form.examples`: the first `form.shots` rows (0: all, which it then
// says) and one more, which stands in where a problem
// is an example itself. `where` names the form; a relative path begins at `folder` ("": where the program runs).
void read_examples(Template& prompt_template, const std::string& where, const std::string& folder);
// Of this problem, in the file's order; never the problem itself.
std::vector<Template::Example> examples_for(const Template& prompt_template, const Problem& problem);

}  // namespace ucas
