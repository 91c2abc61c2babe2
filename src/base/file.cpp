#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

// --- fault injection: UCAS_FAULT=op:n:errno[:sticky|kill|short] --------------------------------------------------

struct Fault {
  std::string op;
  int64_t at = 0;
  int error = 0;
  std::string mode;
};

std::optional<Fault> parse_fault(const char* text) {
  if (text == nullptr) return std::nullopt;
  std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 3) return std::nullopt;
  return Fault{parts[0], std::atoll(parts[1].c_str()), std::atoi(parts[2].c_str()), parts.size() > 3 ? parts[3] : ""};
}

std::optional<Fault>& fault() {
  static std::optional<Fault> current = parse_fault(std::getenv("UCAS_FAULT"));
  return current;
}

std::atomic<int64_t> fault_calls{0};

// Is this call the one to fail? Sets errno if so; `shorten` asks for a partial write.
bool faulty(const char* op, bool* shorten = nullptr) {
  const std::optional<Fault>& f = fault();
  if (!f || (f->op != op && f->op != "any")) return false;
  int64_t call = ++fault_calls;
  if (call != f->at && !(f->mode == "sticky" && call > f->at)) return false;
  if (f->mode == "kill") ::kill(::getpid(), SIGKILL);
  if (f->mode == "short" && shorten != nullptr) {
    *shorten = true;
    return false;
  }
  errno = f->error;
  return true;
}

[[noreturn]] void fail_write(const std::string& path, const char* doing) {
  throw Error("io", str(printable(path, 400), ": cannot ", doing, ": ", std::strerror(errno)), kIoFailure);
}

[[noreturn]] void fail_read(const std::string& path, const char* doing) {
  if (errno == ENOENT || errno == ENOTDIR) throw Error("path", str(printable(path, 400), ": no such file"));
  throw Error("io", str(printable(path, 400), ": cannot ", doing, ": ", std::strerror(errno)));
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// Never blocks on a FIFO or device: opened non-blocking, then refused unless it is a regular file.
int open_regular(const std::string& path, int64_t* size) {
  if (path.find('\0') != std::string::npos) throw Error("path", "a path holds a NUL byte");
  int fd = faulty("open") ? -1 : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) fail_read(path, "open");
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw Error("not_regular_file",
                str(printable(path, 400), ": not a regular file", S_ISDIR(info.st_mode) ? " (it is a directory)" : ""));
  }
  *size = info.st_size;
  return fd;
}

void write_all(int fd, const char* bytes, size_t size, const std::string& path) {
  while (size > 0) {
    bool shorten = false;
    ssize_t n = faulty("write", &shorten) ? -1 : ::write(fd, bytes, shorten ? (size + 1) / 2 : size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_write(path, "write");
    if (shorten) {
      errno = ENOSPC;
      fail_write(path, "write");
    }
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

std::string parent_of(const std::string& path) {
  std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

int64_t set_fault(const std::string& spec) {
  fault() = parse_fault(spec.c_str());
  return fault_calls.exchange(0);
}

bool exists(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

bool is_directory(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

int64_t file_size(const std::string& path) {
  int64_t size = 0;
  Descriptor file{open_regular(path, &size)};
  return size;
}

std::vector<std::string> list_directory(const std::string& path) {
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) throw Error("path", str(printable(path, 400), ": no such directory"));
    fail_read(path, "list");
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

int64_t free_space(const std::string& path) {
  struct statvfs info{};
  if (::statvfs(path.c_str(), &info) != 0) return INT64_MAX;
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

std::string path_join(const std::string& a, const std::string& b) { return (std::filesystem::path(a) / b).string(); }

std::string read_file(const std::string& path, int64_t limit) {
  int64_t size = 0;
  Descriptor file{open_regular(path, &size)};
  if (size > limit) {
    throw Error("limit", str(printable(path, 400), ": ", human_bytes(static_cast<double>(size)), ", the limit is ",
                             human_bytes(static_cast<double>(limit))));
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = faulty("read") ? -1 : ::read(file.fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_read(path, "read");
    if (n == 0) break;  // it shrank while we read
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

void read_at(const std::string& path, int64_t offset, void* out, int64_t size) {
  int64_t total = 0;
  Descriptor file{open_regular(path, &total)};
  auto* to = static_cast<char*>(out);
  while (size > 0) {
    ssize_t n = faulty("read") ? -1 : ::pread(file.fd, to, static_cast<size_t>(size), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_read(path, "read");
    if (n == 0) {
      throw Error("truncated", str(printable(path, 400), ": ends at byte ", offset, ", ", size, " more expected"));
    }
    to += n;
    offset += n;
    size -= n;
  }
}

void make_directories(const std::string& path) {
  std::error_code error;
  if (faulty("mkdir")) fail_write(path, "create");
  std::filesystem::create_directories(path, error);
  if (error && !is_directory(path)) {
    throw Error("io", str(printable(path, 400), ": cannot create the directory: ", error.message()), kIoFailure);
  }
}

void write_file(const std::string& path, std::string_view bytes) {
  std::string temporary = str(path, ".tmp-", ::getpid());
  try {
    FileWriter file(temporary);
    file.write(bytes);
    file.close();
    rename_path(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void rename_path(const std::string& from, const std::string& to) {
  if (faulty("rename") || ::rename(from.c_str(), to.c_str()) != 0) fail_write(to, "put in place");
  sync_directory(parent_of(to));
}

void sync_directory(const std::string& path) {
  Descriptor directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory.fd < 0) fail_write(path, "open the directory");
  if (faulty("fsync") || ::fsync(directory.fd) != 0) fail_write(path, "sync the directory");
}

void remove_all(const std::string& path) {
  std::error_code error;
  if (faulty("unlink")) fail_write(path, "remove");
  std::filesystem::remove_all(path, error);
  if (error) throw Error("io", str(printable(path, 400), ": cannot remove: ", error.message()), kIoFailure);
}

void truncate_file(const std::string& path, int64_t size) {
  if (::truncate(path.c_str(), size) != 0) fail_write(path, "cut");
}

FileWriter::FileWriter(const std::string& path, bool append) : path_(path) {
  int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC);
  descriptor_ = faulty("open") ? -1 : ::open(path.c_str(), flags, 0644);
  if (descriptor_ < 0) fail_write(path, "create");
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(const void* bytes, size_t size) {
  write_all(descriptor_, static_cast<const char*>(bytes), size, path_);
}

void FileWriter::sync() {
  if (faulty("fsync") || ::fsync(descriptor_) != 0) fail_write(path_, "sync");
}

void FileWriter::close() {
  sync();
  int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) fail_write(path_, "close");
}

FileLock::FileLock(const std::string& path) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail_write(path, "create the lock");
  char host[256] = "?";
  ::gethostname(host, sizeof host - 1);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    char holder[256] = {};
    ssize_t n = ::pread(descriptor_, holder, sizeof holder - 1, 0);
    ::close(descriptor_);
    throw Error("path", str(path, ": in use by another ucas (", n > 0 ? printable(trim(holder)) : std::string("?"),
                            "); wait for it or stop it"));
  }
  std::string text = str("pid ", ::getpid(), " on ", host, "\n");
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, text.data(), text.size(), 0) < 0) {
    // The lock itself holds; its text is only for messages.
  }
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace ucas
