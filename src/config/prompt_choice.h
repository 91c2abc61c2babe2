// What "auto", the default of the options template and extract, comes to: the checkpoint's own chat template where it
// has one; and answers read leniently where a chat template is used and no prompt asks for a box, since instruct models
// then write "The answer is 2." or "#### 2". What was decided is said in one line, and a run's config.toml has the
// result.
#pragma once

#include <span>
#include <string>

#include "core/problem.h"
#include "data/prompts/templates.h"
#include "verify/extract_option.h"
#include "verify/registry.h"

namespace ucas {

inline constexpr const char* kAutoTemplate = "auto";

// `asked`, or for "auto" chat where the tokenizer's directory `checkpoint` has a chat template, else `otherwise`.
std::string choose_template(const std::string& asked, const std::string& checkpoint, const std::string& otherwise);

// Whether the template of that name can be a chat template: auto, chat.., a file.
bool may_be_chat(const std::string& name);

// Whether most of the first prompts hold a \boxed, from the template or from the question.
bool asks_for_box(const Template& prompt_template, std::span<const Problem> problems);

// `asked`, or for auto lenient where the template is a chat template, no prompt asks for a box, and the grader is one
// of answers in text (math, numeric); else strict.
Extract choose_extract(ExtractOption asked, const Template& prompt_template, std::span<const Problem> problems,
                       GraderKind grader);

// "template chat (the checkpoint's own)", of what "auto" came to.
std::string template_in_words(const std::string& chosen);

struct PromptChoice {
  std::string asked_template, prompt_template;
  ExtractOption asked_extract = ExtractOption::automatic;
  Extract extract = Extract::strict;
  bool boxed = false;  // asks_for_box()
  // "template chat (the checkpoint's own), extract lenient (no prompt asks for \boxed{})": of what was left to auto; ""
  // where nothing was.
  std::string in_words() const;
};

}  // namespace ucas
