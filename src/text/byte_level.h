// GPT-2's byte alphabet: vocabulary files spell every byte as one printable character (space is U+0120, newline
// U+010A).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ucas {

// The bytes that a spelling stands for; nothing when a character is not of the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);
std::string spelling_of_bytes(std::string_view bytes);

}  // namespace ucas
