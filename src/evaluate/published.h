// Figures of articles, to stand beside one's own: published/NAME.toml (in the binary), or a file of the user's own with
// the same keys. They are shown, marked and with their source, and enter no test and no average.
//   title, source, note
//   [row.KEY]  name, size, and a percentage for each benchmark by its name: amc83 = 68.7
// Fed to `ucas compare --published`. LibTorch-free. Threads: any.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ucas {

struct PublishedRow {
  std::string name;                                    // of the model or method, as the article has it
  std::string size;                                    // "7B", may be empty
  std::vector<std::pair<std::string, double>> figure;  // benchmark, percent; in order of the file
};

struct PublishedTable {
  std::string title, source, note;
  std::vector<PublishedRow> rows;  // in order of the file
};

// Errors: config (FILE:LINE and what is wrong), path.
PublishedTable load_published(const std::string& name_or_path);

}  // namespace ucas
