// Packed bytes unpacked, never more of them than a limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ucas {

enum class Packing { zlib, gzip };  // of gzip any number of members after one another, as pigz and bgzip write them

// Error(`kind`, "WHERE: ...") for what is broken, ends early or unpacks to more than `limit` bytes (of gzip: "limit").
std::string inflate_all(std::string_view bytes, Packing form, int64_t limit, const std::string& where, ErrorKind kind);
// Does it begin as gzip does? No JSON or CSV begins so.
bool is_gzip(std::string_view bytes);

}  // namespace ucas
