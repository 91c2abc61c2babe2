// Landlock and resource limits. The kernel's headers of older systems lack what newer kernels know; the numbers here
// are their interface.
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "verify/sandbox/launcher/launcher.h"

namespace ucas::sandbox {

namespace {

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
