// Hashes of content, in hexadecimal. XXH3-128 notices change, crashes and rot; SHA-256 also forgery, and it is what
// hubs of models and data sets list for their files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ucas {

std::string hash_of_text(std::string_view text);        // XXH3-128, 32 digits
std::string hash_of_file(const std::string& path);      // of its bytes, read block by block
std::string sha256_of_text(std::string_view text);      // 64 digits
std::string sha256_of_file(const std::string& path);    // of its bytes, read block by block
std::array<uint8_t, 16> md5_of_text(std::string_view);  // a stable way to deal things out; no security rests on it

}  // namespace ucas
