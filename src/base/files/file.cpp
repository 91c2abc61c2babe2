#include "base/files/file.h"

#define XXH_INLINE_ALL
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {

// --- fault injection: UCAS_FAULT=op:n:errno[:sticky|kill|short|stop|exit|throw] ----------------------------------

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
  if (f->mode == "stop") {
    ::kill(::getpid(), SIGSTOP);
    return false;
  }
  if (f->mode == "short" && shorten != nullptr) {
    *shorten = true;
    return false;
  }
  errno = f->error;
  return true;
}

[[noreturn]] void fail_write(const std::string& path, const char* doing) {
  throw Error(ErrorKind::io, str(printable(path, 400), ": cannot ", doing, ": ", std::strerror(errno)), kIoFailure);
}

// Of the path that was named, not of the machine: a loop of links, no permission, a name too long.
bool is_of_the_path(int error) {
  return error == ELOOP || error == EACCES || error == EPERM || error == ENAMETOOLONG || error == EISDIR ||
         error == ENXIO || error == ENODEV;
}

[[noreturn]] void fail_read(const std::string& path, const char* doing) {
  if (errno == ENOENT || errno == ENOTDIR) throw Error(ErrorKind::path, str(printable(path, 400), ": no such file"));
  const int code = is_of_the_path(errno) ? kBadInput : kIoFailure;
  throw Error(ErrorKind::io, str(printable(path, 400), ": cannot ", doing, ": ", std::strerror(errno)), code);
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// Never blocks on a FIFO or device: opened non-blocking, then refused unless it is a regular file.
int open_regular(const std::string& path, int64_t* size) {
  if (path.find('\0') != std::string::npos) throw Error(ErrorKind::path, "a path holds a NUL byte");
  int fd = faulty("open") ? -1 : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) fail_read(path, "open");
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw Error(ErrorKind::not_regular_file,
                str(printable(path, 400), ": not a regular file", S_ISDIR(info.st_mode) ? " (it is a directory)" : ""));
  }
  *size = info.st_size;
  return fd;
}

// What is there of `size` bytes from `offset`.
size_t read_bytes(int fd, int64_t offset, char* to, size_t size, const std::string& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = faulty("read") ? -1 : ::pread(fd, to + done, size - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_read(path, "read");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

[[noreturn]] void refuse_link(const std::string& path) {
  throw Error(ErrorKind::path,
              str(printable(path, 400),
                  ": a symbolic link, and writing through it would change files elsewhere; remove the link or "
                  "put what it points to in its place"));
}

// For a file that ucas names itself: no link is followed, and neither a FIFO nor a device blocks or is written to.
int open_own(const std::string& path, int flags, const char* doing) {
  int fd = faulty("open") ? -1 : ::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  if (fd < 0 && errno == ELOOP) refuse_link(path);
  if (fd < 0 && errno != ENXIO) fail_write(path, doing);  // ENXIO: a FIFO without a reader
  struct stat info{};
  if (fd < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (fd >= 0) ::close(fd);
    throw Error(ErrorKind::not_regular_file, str(printable(path, 400), ": not a regular file; remove it"));
  }
  return fd;
}

void write_all(int fd, const char* bytes, size_t size, const std::string& path) {
  while (size > 0) {
    bool shorten = false;
    ssize_t n = faulty("write", &shorten) ? -1 : ::write(fd, bytes, shorten ? (size + 1) / 2 : size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // a non-blocking pipe
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
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

constexpr mode_t kPermissions = 0777;

void replace_file(const std::string& path, std::string_view bytes, std::optional<mode_t> mode) {
  std::string temporary = str(path, ".tmp-", ::getpid());
  ::unlink(temporary.c_str());  // of a killed process with the same number
  try {
    FileWriter file(temporary);
    file.write(bytes);
    file.close();
    if (mode && ::chmod(temporary.c_str(), *mode) != 0) fail_write(temporary, "set the permissions");
    rename_path(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

// The end of a chain of symbolic links, there or not. A link of /proc (/proc/self/fd/N) is an open file, not a path.
std::string follow_links(const std::string& asked) {
  std::string path = asked;
  for (int links = 0; links <= 40; ++links) {
    char target[PATH_MAX];
    ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size < 0) return path;  // no link, or nothing there
    struct statfs system{};
    if (::statfs(parent_of(path).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC) return path;
    path = path_join(parent_of(path),
                     std::string(target, static_cast<size_t>(size)));  // an absolute target is the whole path
  }
  throw Error(ErrorKind::path, str(printable(asked, 400), ": a chain of symbolic links without an end"));
}

bool is_descriptor(const std::string& path) {
  std::error_code error;
  return std::filesystem::equivalent(parent_of(path), "/proc/self/fd", error);
}

// /proc/self/fd/N, if it was open when the program started: every descriptor of our own is close-on-exec.
void write_to_descriptor(const std::string& path, std::string_view bytes) {
  std::string name = std::filesystem::path(path).filename().string();
  int number = -1;
  std::from_chars(name.data(), name.data() + name.size(), number);
  int flags = number < 0 ? -1 : ::fcntl(number, F_GETFD);
  if (flags < 0 || (flags & FD_CLOEXEC) != 0) {
    throw Error(ErrorKind::path, str(printable(path, 400), ": no such descriptor is open"));
  }
  write_all(number, bytes.data(), bytes.size(), path);
}

// A device, or a FIFO, which waits for its reader as in the shell.
void write_through(const std::string& path, std::string_view bytes) {
  Descriptor file{faulty("open") ? -1 : ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC)};
  if (file.fd < 0) fail_write(path, "open");
  write_all(file.fd, bytes.data(), bytes.size(), path);
}

// Closes the lock file that was read for the holder's name; -1: it is gone.
[[noreturn]] void refuse_second(const std::string& path, int lock) {
  char holder[256] = {};
  const ssize_t n = lock < 0 ? 0 : ::pread(lock, holder, sizeof holder - 1, 0);
  if (lock >= 0) ::close(lock);
  throw Error(ErrorKind::path, str(printable(path, 400), ": in use by another ucas (",
                                   n > 0 ? printable(trim(holder)) : std::string("its lock file was deleted"),
                                   "); wait for it or stop it"));
}

// "state.json.tmp-4711", "base.partial-4711"
bool is_leftover(std::string_view name) {
  size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size()) return false;
  std::string_view stem = name.substr(0, digits + 1);
  return stem.ends_with(".tmp-") || stem.ends_with(".partial-");
}

constexpr int64_t kBlock = int64_t{8} << 20;

template <class Bytes>
std::string hex(const Bytes& bytes) {
  std::string text;
  for (unsigned char b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

std::string hex(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  return hex(bytes.digest);
}

void for_each_block(const std::string& path, const std::function<void(const char*, size_t)>& use) {
  const int64_t size = file_size(path);
  std::vector<char> block(static_cast<size_t>(std::min(size, kBlock)));
  for (int64_t at = 0; at < size; at += kBlock) {
    const int64_t n = std::min(kBlock, size - at);
    read_at(path, at, block.data(), n);
    use(block.data(), static_cast<size_t>(n));
  }
}

// Of all that `feed` hands on. "-fips": also where the machine allows only approved digests, for nothing here is
// encrypted.
template <size_t kSize, class Feed>
std::array<uint8_t, kSize> digest(const char* name, const Feed& feed) {
  const std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> kind(EVP_MD_fetch(nullptr, name, "-fips"), EVP_MD_free);
  if (!kind) throw Error(ErrorKind::unsupported, str("libcrypto of this machine has no ", name), kNumeric);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  bool good =
      state && EVP_MD_get_size(kind.get()) == int{kSize} && EVP_DigestInit_ex2(state.get(), kind.get(), nullptr) == 1;
  feed([&](const char* bytes, size_t size) { good = good && EVP_DigestUpdate(state.get(), bytes, size) == 1; });
  std::array<uint8_t, kSize> bytes{};
  UCAS_CHECK(good && EVP_DigestFinal_ex(state.get(), bytes.data(), nullptr) == 1, "libcrypto failed");
  return bytes;
}

}  // namespace

void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    // open() takes the lowest free number: those below are open by now.
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
  }
}

void fault_point(const char* op) {
  const std::optional<Fault>& f = fault();
  if (!f || f->op != op || !faulty(op)) return;
  if (f->mode == "exit") ::_exit(kNumeric);
  if (f->mode == "hang") {
    for (;;) ::pause();
  }
  if (f->mode == "throw") throw Error(ErrorKind::io, str("UCAS_FAULT: ", op, ", call ", f->at), kIoFailure);
}

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
    if (errno == ENOENT || errno == ENOTDIR)
      throw Error(ErrorKind::path, str(printable(path, 400), ": no such directory"));
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

std::string stem_of(const std::string& path, std::string_view ending) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

std::string path_join(const std::string& a, const std::string& b) { return (std::filesystem::path(a) / b).string(); }

std::string read_file(const std::string& path, int64_t limit) {
  int64_t size = 0;
  Descriptor file{open_regular(path, &size)};
  if (size > limit) {
    throw Error(ErrorKind::limit, str(printable(path, 400), ": ", human_bytes(static_cast<double>(size)),
                                      ", the limit is ", human_bytes(static_cast<double>(limit))));
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  bytes.resize(read_bytes(file.fd, 0, bytes.data(), bytes.size(), path));  // it may shrink while we read
  return bytes;
}

void read_at(const std::string& path, int64_t offset, void* out, int64_t size) {
  int64_t total = 0;
  Descriptor file{open_regular(path, &total)};
  const auto done =
      static_cast<int64_t>(read_bytes(file.fd, offset, static_cast<char*>(out), static_cast<size_t>(size), path));
  if (done == size) return;
  throw Error(ErrorKind::truncated,
              str(printable(path, 400), ": ends at byte ", offset + done, ", ", size - done, " more expected"));
}

void refuse_lfs_pointer(const std::string& path) {
  constexpr std::string_view kMark = "version https://git-lfs.github.com/spec/v1";
  char head[kMark.size()];
  if (file_size(path) < static_cast<int64_t>(sizeof head)) return;
  read_at(path, 0, head, sizeof head);
  if (std::string_view(head, sizeof head) != kMark) return;
  throw Error(ErrorKind::lfs_pointer, str(printable(path, 400),
                                          ": a Git LFS pointer, not the file itself; fetch that by `git lfs pull` "
                                          "in its repository, or by `hf download`"));
}

void make_directories(const std::string& path) {
  std::error_code error;
  if (faulty("mkdir")) fail_write(path, "create");
  std::filesystem::create_directories(path, error);
  if (error && !is_directory(path)) {
    if (error == std::errc::not_a_directory || error == std::errc::file_exists) {
      throw Error(ErrorKind::path, str(printable(path, 400), ": a file is in the way; expected a directory to create"));
    }
    if (error == std::errc::filename_too_long || error == std::errc::too_many_symbolic_link_levels) {
      throw Error(ErrorKind::path, str(printable(path, 400), ": no name of a directory: ", error.message()));
    }
    throw Error(ErrorKind::io, str(printable(path, 400), ": cannot create the directory: ", error.message()),
                kIoFailure);
  }
}

void write_file(const std::string& path, std::string_view bytes) { replace_file(path, bytes, std::nullopt); }

void copy_file(const std::string& from, const std::string& to) {
  constexpr int64_t kBlock = int64_t{8} << 20;
  const int64_t size = file_size(from);
  std::vector<char> block(static_cast<size_t>(std::min(size, kBlock)));
  FileWriter out(to);
  for (int64_t at = 0; at < size; at += kBlock) {
    const int64_t n = std::min(kBlock, size - at);
    read_at(from, at, block.data(), n);
    out.write(block.data(), static_cast<size_t>(n));
  }
  out.close();
}

void write_output(const std::string& path, std::string_view bytes) {
  const std::string target = follow_links(path);
  if (is_descriptor(target)) return write_to_descriptor(target, bytes);
  struct stat info{};
  const bool there = ::stat(target.c_str(), &info) == 0;
  if (there && S_ISDIR(info.st_mode))
    throw Error(ErrorKind::path, str(printable(path, 400), ": is a directory; name a file"));
  if (there && !S_ISREG(info.st_mode)) return write_through(target, bytes);
  replace_file(target, bytes, there ? std::optional(info.st_mode & kPermissions) : std::nullopt);
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
  if (error) throw Error(ErrorKind::io, str(printable(path, 400), ": cannot remove: ", error.message()), kIoFailure);
}

void truncate_file(const std::string& path, int64_t size) {
  Descriptor file{open_own(path, O_WRONLY, "cut")};
  if (::ftruncate(file.fd, size) != 0) fail_write(path, "cut");
}

void refuse_links(const std::string& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::string path = path_join(directory, name);
    struct stat info{};
    if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) refuse_link(path);
  }
}

void remove_leftovers(const std::string& directory, const std::string& prefix) {
  if (!is_directory(directory)) return;
  for (const std::string& name : list_directory(directory)) {
    if (!name.starts_with(prefix) || !is_leftover(name)) continue;
    try {
      remove_all(path_join(directory, name));
    } catch (const Error& error) {
      warn(error.what());
    }
  }
}

FileWriter::FileWriter(const std::string& path, bool append) : path_(path) {
  descriptor_ = open_own(path, append ? O_RDWR | O_CREAT | O_APPEND : O_WRONLY | O_CREAT | O_TRUNC, "create");
  struct stat info{};
  if (append && ::fstat(descriptor_, &info) == 0) size_ = info.st_size;
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(const void* bytes, size_t size) {
  write_all(descriptor_, static_cast<const char*>(bytes), size, path_);
  size_ += static_cast<int64_t>(size);
}

FileWriter::Place FileWriter::place() const {
  struct stat mine{}, named{};
  if (::stat(path_.c_str(), &named) != 0 || ::fstat(descriptor_, &mine) != 0) return Place::moved;
  if (mine.st_ino != named.st_ino || mine.st_dev != named.st_dev) return Place::moved;
  return named.st_size < size_ ? Place::cut : Place::kept;
}

std::string FileWriter::read_back() const {
  struct stat info{};
  if (::fstat(descriptor_, &info) != 0) fail_read(path_, "read");
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  bytes.resize(read_bytes(descriptor_, 0, bytes.data(), bytes.size(), path_));
  return bytes;
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

FileLock::FileLock(const std::string& path, const std::string& directory) {
  if (!directory.empty()) {
    directory_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // Some network file systems lock no directories; there the file alone must do.
    if (directory_ >= 0 && ::flock(directory_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(directory_);
      refuse_second(path, exists(path) ? ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1);
    }
  }
  try {
    descriptor_ = open_own(path, O_RDWR | O_CREAT, "create the lock");
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) refuse_second(path, descriptor_);
  } catch (...) {
    if (directory_ >= 0) ::close(directory_);
    throw;
  }
  char host[256] = "?";
  ::gethostname(host, sizeof host - 1);
  std::string text = str("pid ", ::getpid(), " on ", host, "\n");
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, text.data(), text.size(), 0) < 0) {
    // The lock itself holds; its text is only for messages.
  }
}

FileLock::~FileLock() {
  for (int descriptor : {descriptor_, directory_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

std::string hash_of_text(std::string_view text) { return hex(XXH3_128bits(text.data(), text.size())); }

std::string hash_of_file(const std::string& path) {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  XXH3_128bits_reset(state.get());
  for_each_block(path, [&](const char* bytes, size_t n) { XXH3_128bits_update(state.get(), bytes, n); });
  return hex(XXH3_128bits_digest(state.get()));
}

std::string sha256_of_text(std::string_view text) {
  return hex(digest<32>("SHA256", [&](const auto& add) { add(text.data(), text.size()); }));
}

std::string sha256_of_file(const std::string& path) {
  return hex(digest<32>("SHA256", [&](const auto& add) { for_each_block(path, add); }));
}

std::array<uint8_t, 16> md5_of_text(std::string_view text) {
  return digest<16>("MD5", [&](const auto& add) { add(text.data(), text.size()); });
}

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

bool is_hub_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

bool is_hub_repository(std::string_view name) {
  const size_t slash = name.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < name.size() && name[0] != '.' &&
         name[slash + 1] != '.' && std::ranges::count(name, '/') == 1 && name.find("--") == std::string_view::npos &&
         name.find("..") == std::string_view::npos &&
         std::ranges::all_of(name, [](char c) { return c == '/' || is_hub_letter(c); });
}

std::optional<HubOrigin> hub_origin(const std::string& path) {
  const std::vector<std::string> parts = split(path, '/');
  for (size_t i = 0; i + 2 < parts.size(); ++i) {
    if (parts[i + 1] != "snapshots") continue;
    for (const std::string prefix : {"models--", "datasets--"}) {
      if (!parts[i].starts_with(prefix)) continue;
      std::string name = parts[i].substr(prefix.size());
      const size_t dashes = name.find("--");
      if (dashes == std::string::npos) continue;
      name.replace(dashes, 2, "/");
      if (is_hub_repository(name)) return HubOrigin{name, parts[i + 2], prefix[0] == 'd'};
    }
  }
  return std::nullopt;
}

}  // namespace ucas
