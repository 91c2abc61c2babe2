#include "data/rows/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string inflate_all(std::string_view bytes, Packing form, int64_t limit, const std::string& where, ErrorKind kind) {
  const bool gzip = form == Packing::gzip;
  const auto refuse = [&] [[noreturn]] (const std::string& what) { throw Error(kind, str(where, ": ", what)); };
  constexpr int kWindow = 15, kGzip = 16;  // bits; what tells zlib to expect gzip
  z_stream stream{};
  if (::inflateInit2(&stream, gzip ? kWindow + kGzip : kWindow) != Z_OK) refuse("zlib has no memory");
  struct End {
    z_stream& stream;
    ~End() { ::inflateEnd(&stream); }
  } end{stream};
  std::string out;
  std::array<char, 1 << 16> buffer;
  int result = Z_OK;
  while (result == Z_OK) {
    if (stream.avail_in == 0) {
      constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(std::min(bytes.size(), kMost));
      bytes.remove_prefix(stream.avail_in);
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = buffer.size();
    result = ::inflate(&stream, Z_NO_FLUSH);
    const size_t made = buffer.size() - stream.avail_out;
    if (std::ssize(out) + static_cast<int64_t>(made) > limit) {  // before the text grows to twice its size
      throw Error(gzip ? ErrorKind::limit : kind,
                  str(where, ": more than ", human_bytes(static_cast<double>(limit)), " when unpacked"));
    }
    out.append(buffer.data(), made);
    const bool more = stream.avail_in > 0 || !bytes.empty();
    if (gzip && more && result == Z_STREAM_END) result = ::inflateReset(&stream);
  }
  if (result != Z_STREAM_END || stream.avail_in != 0 || !bytes.empty()) {
    refuse(result == Z_BUF_ERROR ? str(gzip ? "gzip" : "zlib", " data that ends early")
                                 : str("not whole ", gzip ? "gzip" : "zlib", " data"));
  }
  return out;
}

}  // namespace ucas
