// The one door to the file system. Everything that ucas reads is opened without blocking and must be a regular file;
// everything it writes is either a whole file put in place by rename, or an append-only log. Files that ucas names
// itself are never written through a symbolic link; only a FILE that the user names is (write_output). Errors: Error
// with kind path (missing, a link), not_regular_file, limit or io (exit 74 for failed writes).
// UCAS_FAULT=op:n:errno[:sticky|kill|short] makes the n-th call of an operation fail (op: open read write fsync rename
// mkdir unlink or any); it is compiled in always and costs one branch.
// Threads: functions may be called from any thread; an AppendFile belongs to one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucas {

// For tests: replaces UCAS_FAULT ("" = none) and counts from 0 again. Returns the calls counted so far ("any:0:0" only
// counts). Not while another thread is in here.
int64_t set_fault(const std::string& spec);

// Opens those of descriptors 0 to 2 that are closed on /dev/null. Otherwise the next file opened would get the number,
// and what is printed would land in it. The first thing that main() does.
void open_standard_streams();

bool exists(const std::string& path);
bool is_directory(const std::string& path);
int64_t file_size(const std::string& path);
std::vector<std::string> list_directory(const std::string& path);  // plain names, sorted
int64_t free_space(const std::string& path);                       // bytes
std::string path_join(const std::string& a, const std::string& b);
std::string stem_of(const std::string& path, std::string_view ending);  // "a/b.toml", ".toml" -> "b"

std::string read_file(const std::string& path, int64_t limit = int64_t{1} << 30);
// Exactly `size` bytes from `offset`; `truncated` if the file is shorter.
void read_at(const std::string& path, int64_t offset, void* out, int64_t size);

// Error("lfs_pointer") if the file is what git leaves in the place of a file that it keeps elsewhere.
void refuse_lfs_pointer(const std::string& path);

void make_directories(const std::string& path);
// For files that ucas names: writes next to the target, fsyncs, renames over it. A link of that name is replaced.
void write_file(const std::string& path, std::string_view bytes);
// For a FILE that the user names (--out): links are followed and stay, a regular file is replaced as above and keeps
// its permissions, a device, a FIFO or an open descriptor (/dev/fd/N, >(command)) is written to.
void write_output(const std::string& path, std::string_view bytes);
void copy_file(const std::string& from, const std::string& to);    // a regular file as a new one, and fsyncs it
void rename_path(const std::string& from, const std::string& to);  // and fsyncs the parent
void sync_directory(const std::string& path);
void remove_all(const std::string& path);
void truncate_file(const std::string& path, int64_t size);

// Error(ErrorKind::path) if one of these entries of a directory is a symbolic link: a run directory may come from
// elsewhere, and writing into RUN/rollouts must not write where that points to. The directory itself may be a link.
void refuse_links(const std::string& directory, const std::vector<std::string>& names);
// Removes what a killed ucas left in a directory: entries PREFIX*.tmp-PID (write_file) and PREFIX*.partial-PID. Only
// for who holds the lock under which they are written. What cannot be removed is warned of.
void remove_leftovers(const std::string& directory, const std::string& prefix = "");

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
  // Does the path still name the file that is written, as long as it was? One stat.
  enum class Place { kept, moved, cut };
  Place place() const;
  // All of an appended file, also where it was moved or deleted.
  std::string read_back() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;  // with what was there before
};

// A lock on `path` held until destruction; throws Error(ErrorKind::path) naming the holder's pid and host when it is
// taken.
class FileLock {
 public:
  // `directory` is locked, too, where it is given: then deleting the lock file lets no second process in.
  explicit FileLock(const std::string& path, const std::string& directory = "");
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1, directory_ = -1;
};

// Hashes of content, in hexadecimal. XXH3-128 notices change, crashes and rot; SHA-256 also forgery, and it is what
// hubs of models and data sets list for their files.

std::string hash_of_text(std::string_view text);        // XXH3-128, 32 digits
std::string hash_of_file(const std::string& path);      // of its bytes, read block by block
std::string sha256_of_text(std::string_view text);      // 64 digits
std::string sha256_of_file(const std::string& path);    // of its bytes, read block by block
std::array<uint8_t, 16> md5_of_text(std::string_view);  // a stable way to deal things out; no security rests on it

// Places that tests stop a program at, besides the calls of base/files/file.h: UCAS_FAULT=step:3:0:stop stops the
// process (SIGSTOP) once the third line of steps.jsonl is written, where a test ends it or lets it go on; ":kill" kills
// it there, ":exit" ends it with 70 and no word, ":throw" is an Error(ErrorKind::io, exit 74), ":hang" never comes
// back. Costs one branch.

void fault_point(const char* op);

// Files compiled into the binary: configs/*.toml, templates/*, report assets. The program never needs its source tree.

std::optional<std::string_view> embedded(std::string_view name);   // "configs/dapo-tiny.toml"
std::vector<std::string> embedded_names(std::string_view prefix);  // sorted
// Of a folder of TOML files: "dapo-tiny" for "configs/dapo-tiny.toml".
std::vector<std::string> embedded_stems(std::string_view folder);  // "configs/"

// A directory that a command makes as its result: there whole, or not at all.
// Errors: path, if something is at OUT already.

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

// Paths of the Hugging Face hub's cache, as texts: CACHE/models--ORG--NAME/snapshots/COMMIT/FILE. What is looked up
// there is hf/hub.h.

bool is_hub_letter(char c);                     // of a name or a revision: letters, digits, - _ .
bool is_hub_repository(std::string_view name);  // "ORG/NAME", as the hub allows it

struct HubOrigin {
  std::string name, revision;  // "ORG/NAME" and the commit
  bool data_set = false;
};
// Where a file or directory of a snapshot comes from; nothing for any other path.
std::optional<HubOrigin> hub_origin(const std::string& path);

}  // namespace ucas
