// How vocabulary files spell bytes. GPT-2's byte alphabet has one printable character for each (space is U+0120,
// newline U+010A); SentencePiece's kind has tokens "<0x0A>" for bytes of characters that are no tokens themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ucas {

// The bytes that a spelling stands for; nothing when a character is not of the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);
std::string spelling_of_bytes(std::string_view bytes);

std::string byte_token(uint8_t byte);                             // "<0x0A>"
std::optional<uint8_t> byte_of_token(std::string_view spelling);  // nothing: not of that form

}  // namespace ucas
