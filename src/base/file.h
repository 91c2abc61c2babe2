// The one door to the file system. Everything that ucas reads is opened without blocking and must be a regular file;
// everything it writes is either a whole file put in place by rename, or an append-only log. Errors: Error with kind
// path (missing), not_regular_file, limit or io (exit 74 for failed writes).
// UCAS_FAULT=op:n:errno[:sticky|kill|short] makes the n-th call of an operation fail (op: open read write fsync rename
// mkdir unlink or any); it is compiled in always and costs one branch.
// Threads: functions may be called from any thread; an AppendFile belongs to one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ucas {

// For tests: replaces UCAS_FAULT ("" = none) and counts from 0 again. Returns the calls counted so far ("any:0:0" only
// counts). Not while another thread is in here.
int64_t set_fault(const std::string& spec);

bool exists(const std::string& path);
bool is_directory(const std::string& path);
int64_t file_size(const std::string& path);
std::vector<std::string> list_directory(const std::string& path);  // plain names, sorted
int64_t free_space(const std::string& path);                       // bytes
std::string path_join(const std::string& a, const std::string& b);

std::string read_file(const std::string& path, int64_t limit = int64_t{1} << 30);
// Exactly `size` bytes from `offset`; `truncated` if the file is shorter.
void read_at(const std::string& path, int64_t offset, void* out, int64_t size);

void make_directories(const std::string& path);
// Writes beside the target, fsyncs, renames over it.
void write_file(const std::string& path, std::string_view bytes);
void rename_path(const std::string& from, const std::string& to);  // and fsyncs the parent
void sync_directory(const std::string& path);
void remove_all(const std::string& path);
void truncate_file(const std::string& path, int64_t size);

// A file written piece by piece (weights): write, then close() which fsyncs. Not renamed: use it inside a temporary
// directory that is renamed as a whole.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path, bool append = false);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void write(const void* bytes, size_t size);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  void sync();
  void close();

 private:
  std::string path_;
  int descriptor_ = -1;
};

// A lock on `path` held until destruction; throws Error("path") naming the holder's pid and host when it is taken.
class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace ucas
