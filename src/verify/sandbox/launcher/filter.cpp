// seccomp: what a program may ask of the kernel. All that is not named here fails with EPERM.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "verify/sandbox/launcher/launcher.h"

#ifndef __x86_64__
#error "the list of calls is that of x86-64"
#endif

namespace ucas::sandbox {

namespace {

// Memory, files, time, threads, waiting, and what an interpreter asks about itself. Files are Landlock's business.
constexpr int kAllowed[] = {
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_preadv2,
    SYS_pwritev2, SYS_creat, SYS_close, SYS_close_range, SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat, SYS_statx,
    SYS_statfs, SYS_fstatfs, SYS_lseek, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_getdents, SYS_getdents64,
    SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_rename, SYS_renameat, SYS_renameat2, SYS_mkdir, SYS_mkdirat, SYS_rmdir,
    SYS_link, SYS_linkat, SYS_unlink, SYS_unlinkat, SYS_symlink, SYS_symlinkat, SYS_readlink, SYS_readlinkat, SYS_umask,
    SYS_fallocate, SYS_fadvise64, SYS_fsync, SYS_fdatasync, SYS_flock, SYS_dup, SYS_dup2, SYS_dup3, SYS_pipe, SYS_pipe2,
    SYS_sendfile, SYS_copy_file_range, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_create,
    SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait, SYS_epoll_pwait, SYS_eventfd, SYS_eventfd2, SYS_timerfd_create,
    SYS_timerfd_settime, SYS_timerfd_gettime, SYS_mmap, SYS_mprotect, SYS_munmap, SYS_mremap, SYS_madvise, SYS_msync,
    SYS_mincore, SYS_brk, SYS_membarrier, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending,
    SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_sigaltstack, SYS_pause, SYS_alarm, SYS_getitimer, SYS_setitimer,
    SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_time, SYS_times,
    SYS_getrusage, SYS_sysinfo, SYS_uname, SYS_futex, SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address,
    SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity, SYS_getcpu, SYS_getrandom, SYS_getpid, SYS_gettid, SYS_getppid,
    SYS_getpgrp, SYS_getpgid, SYS_getsid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid,
    SYS_getresgid, SYS_getgroups, SYS_getrlimit, SYS_setrlimit, SYS_arch_prctl, SYS_restart_syscall, SYS_wait4,
    SYS_waitid, SYS_exit, SYS_exit_group,
    // The program itself is started by it, and Landlock leaves nothing else to start.
    SYS_execve,
    // On the ends of a pair (asyncio); a socket that reaches anything cannot be made.
    SYS_recvfrom, SYS_shutdown, SYS_getsockname, SYS_getpeername, SYS_getsockopt};

// What Landlock knows late or not at all: modes, times and sizes of files that are the user's. Only where the root is
// the sandbox's own.
constexpr int kOfOwnRoot[] = {SYS_chmod, SYS_fchmod, SYS_fchmodat, SYS_utimensat, SYS_truncate, SYS_ftruncate};
// Not F_SETOWN, F_SETOWN_EX, F_SETSIG: they send any signal to any process of the same user. Nor leases, watches of
// folders, sizes of pipes.
constexpr std::initializer_list<uint32_t> kFcntl = {F_DUPFD, F_GETFD, F_SETFD,  F_GETFL,         F_SETFL,
                                                    F_GETLK, F_SETLK, F_SETLKW, F_DUPFD_CLOEXEC, F_GETPIPE_SZ};

constexpr uint32_t kPass = SECCOMP_RET_ALLOW, kDenied = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t low_half(int argument) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + sizeof(uint64_t) * static_cast<size_t>(argument));
}
constexpr uint32_t high_half(int argument) { return low_half(argument) + 4; }

struct Filter {
  std::vector<sock_filter> code;

  void load(uint32_t offset) { code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void answer(uint32_t value) { code.push_back(BPF_STMT(BPF_RET | BPF_K, value)); }
  void jump_equal(uint32_t value, size_t yes, size_t no) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, static_cast<uint8_t>(yes), static_cast<uint8_t>(no)));
  }
  // `rule` answers for the call `number`; the number is what is loaded before and after.
  template <class Rule>
  void on(int number, const Rule& rule) {
    const size_t at = code.size();
    jump_equal(static_cast<uint32_t>(number), 0, 0);
    rule();
    code[at].jf = static_cast<uint8_t>(code.size() - at - 1);
  }
  // Allowed where the argument is one of the values.
  void only(int argument, std::initializer_list<uint32_t> values) {
    load(low_half(argument));
    for (uint32_t value : values) {
      jump_equal(value, 0, 1);
      answer(kPass);
    }
    answer(kDenied);
  }
  // Landlock asks for the right to read or to write, and so for none where a file is opened for neither (3); O_TRUNC
  // empties a file that is opened for reading. Neither is of use to a program.
  void open_flags(int argument) {
    load(low_half(argument));
    code.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_ACCMODE | O_TRUNC));
    for (uint32_t denied : {O_ACCMODE, O_ACCMODE | O_TRUNC, O_RDONLY | O_TRUNC}) {
      jump_equal(denied, 0, 1);
      answer(kDenied);
    }
    answer(kPass);
  }
};

}  // namespace

void filter_calls(const Plan& plan) {
  const auto self = static_cast<uint32_t>(::getpid());
  Filter f;
  f.load(offsetof(seccomp_data, arch));
  f.jump_equal(AUDIT_ARCH_X86_64, 1, 0);
  f.answer(SECCOMP_RET_KILL_PROCESS);
  f.load(offsetof(seccomp_data, nr));
  f.code.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));  // x32
  f.answer(SECCOMP_RET_KILL_PROCESS);
  for (int number : kAllowed) f.on(number, [&] { f.answer(kPass); });
  if (plan.tier == Tier::a && !plan.forks) {
    for (int number : kOfOwnRoot) f.on(number, [&] { f.answer(kPass); });
  }
  f.on(SYS_open, [&] { f.open_flags(1); });
  f.on(SYS_openat, [&] { f.open_flags(2); });
  f.on(SYS_fcntl, [&] { f.only(1, kFcntl); });
  f.on(SYS_clone3,
       [&] { f.answer(SECCOMP_RET_ERRNO | ENOSYS); });  // its flags cannot be read: libc falls back to clone
  f.on(SYS_clone, [&] {  // threads of this process alone, or with `forks` processes, without namespaces
    constexpr uint32_t kNamespaces = 0x7E020000, kThread = 0x00010000, kNewTime = 0x80;
    f.load(low_half(0));
    f.code.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kNamespaces | kThread | kNewTime));
    f.jump_equal(kThread, 0, 1);
    f.answer(kPass);
    if (plan.forks) {
      f.jump_equal(0, 0, 1);
      f.answer(kPass);
    }
    f.answer(kDenied);
  });
  if (plan.forks) {  // of its namespace, whose first process no signal of another one reaches; nor may limits
    f.on(SYS_kill, [&] { f.answer(kPass); });
    f.on(SYS_prlimit64, [&] { f.only(0, {0}); });
  } else {
    for (int number : {SYS_kill, SYS_tgkill}) f.on(number, [&] { f.only(0, {self}); });
    f.on(SYS_prlimit64, [&] { f.only(0, {0, self}); });
  }
  f.on(SYS_socketpair, [&] { f.only(0, {1}); });  // AF_UNIX
  f.on(SYS_ioctl, [&] {                           // TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
    f.only(1, {0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451});
  });
  f.on(SYS_prctl,
       [&] { f.only(0, {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, 0x53564d41}); });  // last: names of memory
  f.on(SYS_sendto, [&] {  // only to the other end of a pair: no address
    f.load(low_half(4));
    f.jump_equal(0, 0, 3);
    f.load(high_half(4));
    f.jump_equal(0, 0, 1);
    f.answer(kPass);
    f.answer(kDenied);
  });
  f.answer(kDenied);
  sock_fprog program{static_cast<unsigned short>(f.code.size()), f.code.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) fail("seccomp", errno);
}

}  // namespace ucas::sandbox
