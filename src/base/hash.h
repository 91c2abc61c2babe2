// XXH3-128 as 32 hexadecimal digits: to notice change, crashes and rot, not forgery. Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace ucas {

std::string hash_of_text(std::string_view text);
std::string hash_of_file(const std::string& path);  // of its bytes, read block by block

}  // namespace ucas
