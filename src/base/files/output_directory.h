// A directory that a command makes as its result: there whole, or not at all.
// Errors: path, if something is at OUT already.
#pragma once

#include <memory>
#include <string>

#include "base/files/file.h"

namespace ucas {

// Error(ErrorKind::path) if a result cannot be put at `out`: something is there.
void check_output(const std::string& out);

// OUT.partial-PID, which becomes OUT when it is whole. Meanwhile no other process makes the same OUT, and what a killed
// one left of it is removed.
class OutputDirectory {
 public:
  explicit OutputDirectory(const std::string& out);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;
  const std::string& path() const { return path_; }
  void put_in_place();

 private:
  std::string out_, path_, lock_file_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace ucas
