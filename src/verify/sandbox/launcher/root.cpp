// The user, the namespaces and the file tree of tier A.
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "verify/sandbox/launcher/launcher.h"

namespace ucas::sandbox {

namespace {

// Of Linux 5.2 and 5.12, absent from older headers.
#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
constexpr unsigned kClone = 1, kRecursive = 0x8000, kEmptyPath = 0x1000, kMoveEmptyPath = 4;
struct MountAttributes {
  uint64_t set, clear, propagation, user_namespace;
};
constexpr uint64_t kReadOnly = 1, kNoSetuid = 2, kNoDevices = 4;

constexpr uid_t kNobody = 65534;
constexpr const char* kStage = "/tmp";  // where the new root is built; its own namespace alone sees it

void write_text(const char* path, const char* text, bool must) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::write(fd, text, std::strlen(text)) >= 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!written && must) fail("user_namespace", error);
}

// A copy of what is mounted at `path`, not yet anywhere. -1 where there is nothing of that name.
int take_tree(const std::string& path, uint64_t attributes) {
  const auto tree = static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), kClone | kRecursive | static_cast<unsigned>(O_CLOEXEC)));
  if (tree < 0 && errno == ENOENT) return -1;
  if (tree < 0) fail("mounts", errno);
  MountAttributes change{attributes, 0, 0, 0};
  if (::syscall(SYS_mount_setattr, tree, "", kEmptyPath | kRecursive, &change, sizeof change) != 0) {
    fail("mounts", errno);
  }
  return tree;
}

// Folders above `path` below the stage.
void make_parents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    ::mkdir((kStage + path.substr(0, slash)).c_str(), 0755);
  }
}

void place_tree(int tree, const std::string& path, bool folder) {
  const std::string target = kStage + path;
  make_parents(path);
  if (folder) {
    ::mkdir(target.c_str(), 0755);
  } else {
    const int fd = ::open(target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd >= 0) ::close(fd);
  }
  if (::syscall(SYS_move_mount, tree, "", AT_FDCWD, target.c_str(), kMoveEmptyPath) != 0) fail("mounts", errno);
  ::close(tree);
}

struct Piece {
  std::string path, link;  // a symbolic link is copied: /lib -> usr/lib
  int tree = -1;
  bool folder = false;
};

Piece take(const std::string& path, const std::string& source, uint64_t attributes) {
  Piece piece;
  piece.path = path;
  struct stat info{};
  if (::lstat(source.c_str(), &info) != 0) return piece;
  if (S_ISLNK(info.st_mode)) {
    char target[4096];
    const ssize_t n = ::readlink(source.c_str(), target, sizeof target);
    if (n > 0) piece.link.assign(target, static_cast<size_t>(n));
    return piece;
  }
  piece.folder = S_ISDIR(info.st_mode);
  piece.tree = take_tree(source, attributes);
  return piece;
}

std::vector<Piece> take_all(const Plan& plan) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < plan.read_only.size(); ++i) {
    const std::string& path = plan.read_only[i];
    pieces.push_back(take(path, plan.sources.empty() ? path : plan.sources[i], kReadOnly | kNoSetuid | kNoDevices));
  }
  return pieces;
}

void mount_stage() {
  if (::mount("tmpfs", kStage, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=1024,mode=755") != 0) {
    fail("mounts", errno);
  }
}

struct Ruleset {  // struct landlock_ruleset_attr up to version 6
  uint64_t files, network, scoped;
};
constexpr uint64_t kExecute = 1 << 0, kWrite = 1 << 1, kRead = 1 << 2, kList = 1 << 3, kRefer = 1 << 13,
                   kTruncate = 1 << 14, kIoctl = 1 << 15;
constexpr uint64_t kFirst = (1 << 13) - 1;                        // all rights of version 1
constexpr uint64_t kBindTcp = 1, kConnectTcp = 2;                 // of version 4
constexpr uint64_t kScopeAbstractSockets = 1, kScopeSignals = 2;  // of version 6

void allow(int ruleset, const char* path, uint64_t rights) {
  const int fd = ::open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT || errno == EACCES) return;  // then it cannot be read either
    fail("landlock", errno);
  }
  struct stat info{};
  if (::fstat(fd, &info) != 0) fail("landlock", errno);
  if (!S_ISDIR(info.st_mode)) rights &= kExecute | kWrite | kRead | kTruncate | kIoctl;
  const landlock_path_beneath_attr beneath = {rights, fd};
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) {
    fail("landlock", errno);
  }
  ::close(fd);
}

void limit(decltype(RLIMIT_CPU) what, uint64_t soft, uint64_t hard) {
  const rlimit value{soft, hard};
  if (::setrlimit(what, &value) != 0) fail("rlimits", errno);
}

}  // namespace

// In a mount namespace that ends with this process. Where root may not have one, or is no real root, paths stay.
void stage_for_all(Plan& plan) {
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNS) != 0) return;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
  const std::vector<Piece> pieces = take_all(plan);
  mount_stage();
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string place = "/" + std::to_string(i);
    if (pieces[i].tree >= 0) place_tree(pieces[i].tree, place, pieces[i].folder);
    plan.sources.push_back(pieces[i].tree >= 0 ? kStage + place : plan.read_only[i]);
  }
}

void become_unprivileged(const Plan& plan) {
  if (::geteuid() != 0) return;
  // Inside another user namespace groups may be fixed; there root is nobody outside already.
  const bool groups = ::setgroups(0, nullptr) == 0;
  const int error = errno;
  if (::setresgid(kNobody, kNobody, kNobody) != 0 || ::setresuid(kNobody, kNobody, kNobody) != 0) {
    // A user namespace that knows no user but its root: outside that is an ordinary user. Its powers in here end with
    // the namespaces of tier a; tier b would leave them.
    if (errno == EINVAL && plan.tier == Tier::a) return;
    fail("unprivileged_user", errno);
  }
  if (!groups && error != EPERM) fail("unprivileged_user", error);
  // Else /proc/self belongs to root and the user cannot be mapped.
  if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) fail("prctl", errno);
}

void enter_namespaces(uid_t uid, gid_t gid) {
  char map[64];
  write_text("/proc/self/setgroups", "deny", false);
  std::snprintf(map, sizeof map, "%u %u 1", kNobody, uid);
  write_text("/proc/self/uid_map", map, true);
  std::snprintf(map, sizeof map, "%u %u 1", kNobody, gid);
  write_text("/proc/self/gid_map", map, true);
  if (::sethostname("sandbox", 7) != 0) fail("uts_namespace", errno);
}

void build_root(const Plan& plan) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) fail("mounts", errno);
  // Taken before the stage hides what is below it.
  std::vector<Piece> pieces = take_all(plan);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/urandom"}) {
    pieces.push_back(take(device, device, kNoSetuid));
  }
  mount_stage();
  // First, so that an interpreter below /tmp is not hidden by it.
  const std::string scratch = std::string(kStage) + "/tmp";
  ::mkdir(scratch.c_str(), 0700);
  if (::mount("tmpfs", scratch.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "size=16m,nr_inodes=1024,mode=700") != 0) {
    fail("mounts", errno);
  }
  for (Piece& piece : pieces) {
    if (!piece.link.empty()) {
      make_parents(piece.path);
      if (::symlink(piece.link.c_str(), (kStage + piece.path).c_str()) != 0 && errno != EEXIST) fail("mounts", errno);
    } else if (piece.tree >= 0) {
      place_tree(piece.tree, piece.path, piece.folder);
    }
  }
  if (::chdir(kStage) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0 || ::umount2(".", MNT_DETACH) != 0) {
    fail("pivot_root", errno);
  }
  if (::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0) {
    fail("mounts", errno);
  }
  if (::chdir("/tmp") != 0) fail("mounts", errno);
}

void restrict_files(const Plan& plan) {
  long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) fail("landlock", errno);
  if (plan.landlock > 0 && plan.landlock < version) version = plan.landlock;
  Ruleset rules{kFirst, 0, 0};
  size_t size = sizeof rules.files;
  if (version >= 2) rules.files |= kRefer;
  if (version >= 3) rules.files |= kTruncate;
  if (version >= 4) {
    rules.network = kBindTcp | kConnectTcp;
    size += sizeof rules.network;
  }
  if (version >= 5) rules.files |= kIoctl;
  if (version >= 6) {
    rules.scoped = kScopeAbstractSockets | kScopeSignals;
    size = sizeof rules;
  }
  const auto ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size, 0));
  if (ruleset < 0) fail("landlock", errno);
  for (const std::string& path : plan.read_only) allow(ruleset, path.c_str(), kRead | kList | kExecute);
  allow(ruleset, "/dev/null", kRead | (rules.files & (kWrite | kTruncate)));
  allow(ruleset, "/dev/zero", kRead);
  allow(ruleset, "/dev/urandom", kRead);
  // The scratch folder of tier A; tier B has nothing that could be written to.
  if (plan.tier == Tier::a) allow(ruleset, "/tmp", rules.files & ~kExecute);
  if (::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) fail("landlock", errno);
  ::close(ruleset);
}

void limit_resources(const Plan& plan) {
  const auto cpu = static_cast<uint64_t>(plan.cpu_seconds), memory = static_cast<uint64_t>(plan.memory);
  limit(RLIMIT_CORE, 0, 0);
  limit(RLIMIT_CPU, cpu, cpu);  // the first process of a namespace gets no soft signal
  limit(RLIMIT_AS, memory, memory);
  if (plan.tier == Tier::none) return;
  limit(RLIMIT_FSIZE, 16 << 20, 16 << 20);
  limit(RLIMIT_NOFILE, 64, 64);
  limit(RLIMIT_STACK, 8 << 20, 8 << 20);
  // Counted per user namespace. Without one it would count what else the user runs; there only threads can be made.
  if (plan.tier == Tier::a) limit(RLIMIT_NPROC, 32, 32);
}

}  // namespace ucas::sandbox
