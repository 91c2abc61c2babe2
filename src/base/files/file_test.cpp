#include "base/files/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {

namespace {

// A folder of its own, gone afterwards.
struct Scratch : testing::TemporaryDirectory {
  std::string operator/(const std::string& name) const { return path_join(path(), name); }
};

template <class Act>
std::string kind_of(Act act) {
  try {
    act();
    return "";
  } catch (const Error& error) {
    return error.word();
  }
}

// Run as a child of the test below (UCAS_TEST_TARGET names the file): replaces the file and ends, before main().
const bool is_child = [] {
  const char* target = std::getenv("UCAS_TEST_TARGET");
  if (target == nullptr) return false;
  try {
    write_file(target, std::string(100000, 'n'));
  } catch (const Error& error) {
    ::_exit(error.word() == "io" && error.exit_code() == kIoFailure ? 3 : 4);
  }
  ::_exit(0);
}();

// This program again, under UCAS_FAULT. Its wait status.
int in_child(const std::string& fault, const std::string& target) {
  pid_t child = ::fork();
  if (child == 0) {
    ::setenv("UCAS_FAULT", fault.c_str(), 1);
    ::setenv("UCAS_TEST_TARGET", target.c_str(), 1);
    ::execl("/proc/self/exe", "ucas-tests", nullptr);
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

const std::string kOld = "old state\n";
const std::string kNew(100000, 'n');

}  // namespace

// For every call index and every kind of failure: the old file or the whole new one, never anything between, and no
// temporary file left unless the process was killed.
TEST(file, a_replaced_file_is_whole_whatever_fails) {
  ASSERT_FALSE(is_child);
  int survived = 0, refused = 0, killed = 0;
  for (const char* mode : {"", ":sticky", ":short", ":kill"}) {
    for (int call = 1; call <= 12; ++call) {
      Scratch scratch;
      write_file(scratch / "state", kOld);
      int status = in_child(str("any:", call, ":", ENOSPC, mode), scratch / "state");
      std::string now = read_file(scratch / "state");
      EXPECT_TRUE(now == kOld || now == kNew) << mode << " at call " << call << ": " << now.size() << " bytes";
      if (WIFSIGNALED(status)) {
        EXPECT_EQ(WTERMSIG(status), SIGKILL);
        ++killed;
        continue;
      }
      ASSERT_TRUE(WIFEXITED(status));
      EXPECT_EQ(list_directory(scratch.path()), std::vector<std::string>{"state"}) << mode << " at call " << call;
      if (WEXITSTATUS(status) == 0) {
        EXPECT_EQ(now, kNew);
        ++survived;
      } else {
        EXPECT_EQ(WEXITSTATUS(status), 3) << "a failed write is Error(io), exit code 74";
        ++refused;
      }
    }
  }
  EXPECT_GT(survived, 0);
  EXPECT_GT(refused, 5);
  EXPECT_GT(killed, 3);
}

TEST(file, an_output_file_is_replaced_whole_and_keeps_its_permissions) {
  Scratch scratch;
  write_output(scratch / "new", "a");
  EXPECT_EQ(read_file(scratch / "new"), "a");
  ASSERT_EQ(::chmod((scratch / "new").c_str(), 0600), 0);
  struct stat before{}, after{};
  ASSERT_EQ(::stat((scratch / "new").c_str(), &before), 0);
  write_output(scratch / "new", "b");
  ASSERT_EQ(::stat((scratch / "new").c_str(), &after), 0);
  EXPECT_EQ(read_file(scratch / "new"), "b");
  EXPECT_NE(before.st_ino, after.st_ino) << "not replaced by rename: a kill would leave half a file";
  EXPECT_EQ(after.st_mode & 0777, 0600u);
  EXPECT_EQ(kind_of([&] { write_output(scratch.path(), "c"); }), "path");
  EXPECT_EQ(list_directory(scratch.path()), std::vector<std::string>{"new"});
}

TEST(file, an_output_link_stays_and_its_target_is_replaced) {
  Scratch scratch;
  make_directories(scratch / "elsewhere");
  write_file(scratch / "elsewhere/target", "old");
  ASSERT_EQ(::symlink("elsewhere/target", (scratch / "one").c_str()), 0);
  ASSERT_EQ(::symlink((scratch / "one").c_str(), (scratch / "two").c_str()), 0);
  ASSERT_EQ(::symlink("elsewhere/absent", (scratch / "dangling").c_str()), 0);
  ASSERT_EQ(::symlink("loop", (scratch / "loop").c_str()), 0);
  write_output(scratch / "two", "new");
  write_output(scratch / "dangling", "made");
  for (const char* link : {"one", "two", "dangling"}) {
    struct stat info{};
    ASSERT_EQ(::lstat((scratch / link).c_str(), &info), 0);
    EXPECT_TRUE(S_ISLNK(info.st_mode)) << link;
  }
  EXPECT_EQ(read_file(scratch / "elsewhere/target"), "new");
  EXPECT_EQ(read_file(scratch / "elsewhere/absent"), "made");
  EXPECT_EQ(kind_of([&] { write_output(scratch / "loop", "x"); }), "path");
  write_file(scratch / "one", "own");  // a file that ucas names: the link goes, the target stays
  EXPECT_EQ(read_file(scratch / "elsewhere/target"), "new");
  EXPECT_EQ(read_file(scratch / "one"), "own");
}

TEST(file, devices_fifos_and_open_descriptors_are_written_to_and_stay) {
  Scratch scratch;
  int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);  // a device that no mistake can replace, even as root
  ASSERT_TRUE(terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
  ASSERT_EQ(::symlink(::ptsname(terminal), (scratch / "device").c_str()), 0);
  write_output(scratch / "device", "hello");
  char shown[8] = {};
  EXPECT_EQ(::read(terminal, shown, 5), 5);
  EXPECT_STREQ(shown, "hello");
  ::close(terminal);
  struct stat info{};

  ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
  std::string taken;
  std::thread reader([&] {
    int fd = ::open((scratch / "fifo").c_str(), O_RDONLY | O_CLOEXEC);
    char bytes[64];
    for (ssize_t n; (n = ::read(fd, bytes, sizeof bytes)) > 0;) taken.append(bytes, static_cast<size_t>(n));
    ::close(fd);
  });
  write_output(scratch / "fifo", "through the pipe");
  reader.join();
  EXPECT_EQ(taken, "through the pipe");
  ASSERT_EQ(::lstat((scratch / "fifo").c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));

  // As `{ ucas ... --out /dev/fd/N; echo more; } N> log`: written at the descriptor.
  int fd = ::open((scratch / "log").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(fd, "a", 1), 1);
  write_output(str("/dev/fd/", fd), "b");
  ASSERT_EQ(::write(fd, "c", 1), 1);
  EXPECT_EQ(read_file(scratch / "log"), "abc");
  ::close(fd);
  EXPECT_EQ(kind_of([&] { write_output(str("/dev/fd/", fd), "b"); }), "path");
  int ours = ::open((scratch / "log").c_str(), O_WRONLY | O_CLOEXEC);  // as a lock or a log of the program's own
  EXPECT_EQ(kind_of([&] { write_output(str("/dev/fd/", ours), "b"); }), "path");
  ::close(ours);
  EXPECT_EQ(list_directory(scratch.path()), (std::vector<std::string>{"device", "fifo", "log"}));
}

TEST(file, what_ucas_names_itself_is_written_through_no_link_and_into_no_pipe) {
  Scratch scratch;
  write_file(scratch / "victim", "precious");
  make_directories(scratch / "elsewhere");
  ASSERT_EQ(::symlink("victim", (scratch / "link").c_str()), 0);
  ASSERT_EQ(::symlink("elsewhere", (scratch / "rollouts").c_str()), 0);
  ASSERT_EQ(::symlink("absent", (scratch / "dangling").c_str()), 0);
  ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
  for (const char* name : {"link", "dangling"}) {
    EXPECT_EQ(kind_of([&] { FileWriter(scratch / name); }), "path");
    EXPECT_EQ(kind_of([&] { FileWriter(scratch / name, true); }), "path");
    EXPECT_EQ(kind_of([&] { FileLock(scratch / name); }), "path");
    EXPECT_EQ(kind_of([&] { truncate_file(scratch / name, 0); }), "path");
  }
  EXPECT_EQ(kind_of([&] { FileWriter(scratch / "fifo", true); }), "not_regular_file");
  EXPECT_EQ(kind_of([&] { FileLock(scratch / "fifo"); }), "not_regular_file");
  EXPECT_EQ(kind_of([&] { refuse_links(scratch.path(), {"absent", "rollouts"}); }), "path");
  refuse_links(scratch.path(), {"absent", "victim", "elsewhere"});
  EXPECT_EQ(read_file(scratch / "victim"), "precious");
  EXPECT_FALSE(exists(scratch / "absent"));
}

TEST(file, leftovers_of_a_kill_are_removed_and_nothing_else) {
  Scratch scratch;
  for (const char* name : {"a.json", "a.json.tmp-12", "b.json.tmp-12", "a.tmp-", "a.tmp-x1", "tmp-5", ".hidden"}) {
    write_file(scratch / name, "");
  }
  make_directories(scratch / "base.partial-77/inner");
  remove_leftovers(scratch.path(), "a.");
  EXPECT_EQ(list_directory(scratch.path()), (std::vector<std::string>{".hidden", "a.json", "a.tmp-", "a.tmp-x1",
                                                                      "b.json.tmp-12", "base.partial-77", "tmp-5"}));
  remove_leftovers(scratch.path());
  EXPECT_EQ(list_directory(scratch.path()),
            (std::vector<std::string>{".hidden", "a.json", "a.tmp-", "a.tmp-x1", "tmp-5"}));
  remove_leftovers(scratch / "absent");
}

TEST(file, only_regular_files_are_read_and_nothing_blocks) {
  Scratch scratch;
  ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("loop", (scratch / "loop").c_str()), 0);
  EXPECT_EQ(kind_of([&] { read_file(scratch / "fifo"); }), "not_regular_file");
  EXPECT_EQ(kind_of([&] { read_file("/dev/zero"); }), "not_regular_file");
  EXPECT_EQ(kind_of([&] { read_file(scratch.path()); }), "not_regular_file");
  EXPECT_EQ(kind_of([&] { read_file(scratch / "loop"); }), "io");
  EXPECT_EQ(kind_of([&] { read_file(scratch / "absent"); }), "path");
  EXPECT_EQ(kind_of([&] { read_file(scratch / "absent/deeper"); }), "path");
  EXPECT_EQ(kind_of([&] { read_file(std::string("a\0b", 3)); }), "path");
  EXPECT_EQ(kind_of([&] { list_directory(scratch / "absent"); }), "path");
}

TEST(file, limits_hold_before_anything_is_allocated) {
  Scratch scratch;
  write_file(scratch / "huge", "x");
  truncate_file(scratch / "huge", int64_t{1} << 40);  // sparse: 1 TiB that takes no room
  EXPECT_EQ(kind_of([&] { read_file(scratch / "huge"); }), "limit");
  write_file(scratch / "small", "0123456789");
  EXPECT_EQ(read_file(scratch / "small", 10), "0123456789");
  EXPECT_EQ(kind_of([&] { read_file(scratch / "small", 9); }), "limit");
}

TEST(file, a_piece_is_read_exactly_or_refused) {
  Scratch scratch;
  write_file(scratch / "f", "0123456789");
  char bytes[4] = {};
  read_at(scratch / "f", 6, bytes, 4);
  EXPECT_EQ(std::string(bytes, 4), "6789");
  EXPECT_EQ(kind_of([&] { read_at(scratch / "f", 7, bytes, 4); }), "truncated");
  EXPECT_EQ(file_size(scratch / "f"), 10);
}

TEST(file, writers_append_or_start_over) {
  Scratch scratch;
  for (const char* text : {"a", "b"}) {
    FileWriter log(scratch / "log", true);
    log.write(text);
    log.close();
  }
  EXPECT_EQ(read_file(scratch / "log"), "ab");
  FileWriter again(scratch / "log");
  again.write("c");
  again.close();
  EXPECT_EQ(read_file(scratch / "log"), "c");
}

TEST(file, an_output_that_another_process_has_made_leaves_no_lock_behind) {
  const Scratch scratch;
  make_directories(scratch / "model");
  write_file(scratch / "model/config.json", "{}");
  EXPECT_EQ(kind_of([&] { OutputDirectory(scratch / "model"); }), "path");
  EXPECT_EQ(list_directory(scratch.path()), std::vector<std::string>{"model"});
}

TEST(file, directories_are_made_listed_and_removed) {
  Scratch scratch;
  make_directories(scratch / "a/b/c");
  make_directories(scratch / "a/b/c");
  write_file(scratch / "a/z", "");
  write_file(scratch / "a/y", "");
  EXPECT_TRUE(is_directory(scratch / "a/b/c"));
  EXPECT_FALSE(is_directory(scratch / "a/z"));
  EXPECT_EQ(list_directory(scratch / "a"), (std::vector<std::string>{"b", "y", "z"}));
  EXPECT_EQ(kind_of([&] { make_directories(scratch / "a/z/under-a-file"); }), "path");
  remove_all(scratch / "a");
  EXPECT_FALSE(exists(scratch / "a"));
  EXPECT_GT(free_space(scratch.path()), 0);
}

TEST(file, a_second_holder_of_a_lock_is_told_who_has_it) {
  Scratch scratch;
  {
    FileLock lock(scratch / "lock");
    try {
      FileLock second(scratch / "lock");
      FAIL() << "the lock was given twice";
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "path");
      EXPECT_NE(std::string(error.what()).find(str("pid ", ::getpid())), std::string::npos) << error.what();
    }
  }
  FileLock again(scratch / "lock");
}

}  // namespace ucas
