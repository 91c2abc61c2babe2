// MD5 (RFC 1321), as a stable way to deal questions to splits; no security rests on it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ucas {

std::array<uint8_t, 16> md5(std::string_view bytes);

}  // namespace ucas
