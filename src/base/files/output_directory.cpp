#include "base/files/output_directory.h"

#include <unistd.h>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

void check_output(const std::string& out) {
  if (!exists(out)) return;
  if (is_directory(out) && list_directory(out).empty()) return;
  throw Error(ErrorKind::path, str(printable(out, 400), ": exists already; choose another --out, or remove it"));
}

OutputDirectory::OutputDirectory(const std::string& out) : out_(out) {
  const std::string plain = out.substr(0, out.find_last_not_of('/') + 1);
  const size_t name_at = plain.rfind('/') + 1;  // 0 without a folder
  const std::string name = plain.substr(name_at), folder = name_at == 0 ? "." : plain.substr(0, name_at);
  make_directories(folder);
  lock_file_ = path_join(folder, str(".", name, ".lock"));
  lock_ = std::make_unique<FileLock>(lock_file_);
  try {
    check_output(out);  // another may have been quicker
  } catch (const Error&) {
    remove_all(lock_file_);
    throw;
  }
  remove_leftovers(folder, name + ".partial-");
  path_ = path_join(folder, str(name, ".partial-", ::getpid()));
  make_directories(path_);
}

OutputDirectory::~OutputDirectory() {
  for (const std::string& path : {path_, lock_file_}) {
    try {
      if (exists(path)) remove_all(path);
    } catch (const Error& error) {
      warn(error.what());
    }
  }
}

void OutputDirectory::put_in_place() {
  sync_directory(path_);
  rename_path(path_, out_);
}

}  // namespace ucas
