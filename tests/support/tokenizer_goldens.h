// Where the goldens of tokenizers are, and how their tests write files.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace ucas::testing {

using Ids = std::vector<int32_t>;

inline std::string tokenizer_goldens() { return std::string(UCAS_SOURCE_DIR) + "/tests/goldens/tokenizer/"; }

// Not through base/files/file: hundreds of fsyncs would take longer than the tests.
inline void put_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace ucas::testing
