// XXH3-128 of bytes, as 32 hexadecimal digits: to notice change, not forgery. Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace ucas {

std::string hash_hex(std::string_view bytes);

}  // namespace ucas
