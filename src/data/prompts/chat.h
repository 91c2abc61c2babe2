// Prompts by the chat template of a checkpoint (text/jinja/jinja.h): the messages of a problem as its Jinja writes
// them. Threads: all functions from any thread.
#pragma once

#include <string>

#include "data/prompts/templates.h"
#include "text/unicode/marked_text.h"

namespace ucas {

// Fills in what a checkpoint's files say: `text`, where the form has none of its own, and `tokens`. `checkpoint` is the
// directory of a tokenizer, "" if there is none; `where` names the form. Then reads `text` as a program.
void prepare_chat(Template& prompt_template, const std::string& checkpoint, const std::string& where);
// Whether a checkpoint's files bring one of its own; "" does not.
bool has_chat_template(const std::string& checkpoint);
// The system message, the earlier turns and `question`, then what begins the answer.
MarkedText render_chat(const Template& prompt_template, const Problem& problem, const std::string& question);

}  // namespace ucas
