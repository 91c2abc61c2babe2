#include "support/golds.h"

#include <cstdlib>
#include <set>

#include "base/files/file.h"
#include "base/str.h"
#include "data/rows/jsonl.h"

namespace ucas::math_golds {

namespace {

std::vector<std::string> golds_in(const std::vector<std::string>& files) {
  std::vector<std::string> golds;
  std::set<std::string> known;
  for (const std::string& file : files) {
    read_json_lines(file, BadRows::stop, [&](const JsonRow& row) {
      for (const std::string& answer : answer_field(row, row.value.at("answer"), "answer", true)) {
        std::string text(trim(answer));
        if (!text.empty() && known.insert(text).second) golds.push_back(text);
      }
    });
  }
  return golds;
}

}  // namespace

std::vector<std::string> own() { return golds_in({UCAS_SOURCE_DIR "/tests/goldens/verify/golds.jsonl"}); }

std::vector<std::string> shared() {
  const char* root = std::getenv("UCAS_SHARED_DATA");
  std::string folder = root != nullptr ? root : UCAS_SOURCE_DIR "/../shared/data";
  std::vector<std::string> files;
  for (const char* part : {"eval", "train"}) {
    std::string inside = path_join(folder, part);
    if (!is_directory(inside)) continue;
    for (const std::string& name : list_directory(inside)) {
      if (name.ends_with(".jsonl") && name.find("_meta") == std::string::npos) files.push_back(path_join(inside, name));
    }
  }
  return golds_in(files);
}

}  // namespace ucas::math_golds
