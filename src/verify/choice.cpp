#include "verify/choice.h"

#include <algorithm>
#include <cctype>

#include "verify/math/extract.h"

namespace ucas {

namespace {

bool is_word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 || c == '\''; }

std::optional<char> first_letter(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c < 'A' || c > 'Z') continue;
    if (i > 0 && is_word_byte(text[i - 1])) continue;
    if (i + 1 < text.size() && is_word_byte(text[i + 1])) continue;
    bool before_word =
        i + 2 < text.size() && text[i + 1] == ' ' && std::islower(static_cast<unsigned char>(text[i + 2]));
    if ((c == 'I' || c == 'A') && before_word) continue;
    return c;
  }
  return std::nullopt;
}

}  // namespace

std::optional<char> choice_letter(std::string_view text) {
  if (const Extracted box = extract_answer(text, Extract::strict); box.found) {
    if (auto letter = first_letter(box.answer)) return letter;
  }
  constexpr std::string_view kWord = "nswer";
  if (size_t at = text.rfind(kWord); at != std::string_view::npos) {
    if (auto letter = first_letter(text.substr(at + kWord.size()))) return letter;
  }
  return first_letter(text);
}

}  // namespace ucas
