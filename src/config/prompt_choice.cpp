#include "config/prompt_choice.h"

#include <algorithm>

#include "base/str.h"
#include "data/prompts/chat.h"

namespace ucas {

std::string choose_template(const std::string& asked, const std::string& checkpoint, const std::string& otherwise) {
  if (asked != kAutoTemplate) return asked;
  return has_chat_template(checkpoint) ? "chat" : otherwise;
}

bool may_be_chat(const std::string& name) {
  const bool file = name.find('/') != std::string::npos || name.find('.') != std::string::npos;
  return name == kAutoTemplate || name.starts_with("chat") || file;
}

bool asks_for_box(const Template& prompt_template, std::span<const Problem> problems) {
  constexpr size_t kLookedAt = 32;
  const std::span<const Problem> first = problems.first(std::min(problems.size(), kLookedAt));
  const auto boxed = std::ranges::count_if(first, [&](const Problem& problem) {
    const std::string prompt = render(prompt_template, problem);
    return prompt.find("\\boxed") != std::string::npos || prompt.find("\\fbox") != std::string::npos;
  });
  return 2 * static_cast<size_t>(boxed) > first.size();
}

Extract choose_extract(ExtractOption asked, const Template& prompt_template, std::span<const Problem> problems,
                       GraderKind grader) {
  if (const std::optional<Extract> extract = said(asked)) return *extract;
  const bool of_text = grader == GraderKind::math || grader == GraderKind::numeric;
  return prompt_template.chat && of_text && !asks_for_box(prompt_template, problems) ? Extract::lenient
                                                                                     : Extract::strict;
}

std::string template_in_words(const std::string& chosen) {
  return str("template ", chosen,
             chosen == "chat" ? " (the checkpoint's own)" : " (the checkpoint has no chat template)");
}

std::string PromptChoice::in_words() const {
  std::string text;
  if (asked_template == kAutoTemplate) text = template_in_words(prompt_template);
  // A template that was named and answers in boxes: as ever.
  if (asked_extract != ExtractOption::automatic || (text.empty() && extract == Extract::strict)) return text;
  return str(text, text.empty() ? "" : ", ", "extract ", word_of(extract),
             extract == Extract::lenient ? " (no prompt asks for \\boxed{})"
             : boxed                     ? " (the prompts ask for \\boxed{})"
                                         : "");
}

}  // namespace ucas
