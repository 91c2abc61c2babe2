#include "verify/sandbox/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "support/patience.h"
#include "support/temporary_directory.h"
#include "verify/registry.h"

namespace ucas::code {
namespace {

// Seconds of a clock are what a slow machine lacks: a program that ends by itself has ten minutes, one that is there to
// be ended by them two.
CodeOptions quick(SandboxChoice tier, int64_t wall_seconds = 600) {
  CodeOptions options;
  options.sandbox = tier;
  options.wall_seconds = wall_seconds;
  options.cpu_seconds = 1;
  options.memory_mib = 512;
  return options;
}

// Tier a where this machine has it, and b: every test below holds in both.
std::vector<SandboxChoice> tiers() {
  static const std::vector<SandboxChoice> found = [] {
    std::vector<SandboxChoice> out;
    for (SandboxChoice tier : {SandboxChoice::a, SandboxChoice::b}) {
      try {
        const Sandbox tried(quick(tier));
        out.push_back(tier);
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find("got through"), std::string::npos) << error.what();
        warn(str("tier ", word_of(tier), " is not tested here: ", error.what()));
      }
    }
    return out;
  }();
  return found;
}

#define EACH_TIER(tier)                                              \
  if (tiers().empty()) GTEST_SKIP() << "no sandbox on this machine"; \
  for (SandboxChoice tier : tiers())

Verdict grade_program(SandboxChoice tier, const std::string& source, const std::string& gold) {
  static std::map<SandboxChoice, std::unique_ptr<Grader>> graders;  // the self-test once
  auto& grader = graders[tier];
  if (grader == nullptr) grader = make_grader(GraderKind::code, {Extract::bare, quick(tier)});
  const std::vector<std::string> golds = {gold};
  const Answer answer{source, &golds};
  return grader->grade({&answer, 1}).front();
}

constexpr const char* kFunction = "assert f(2) == 4\nassert f(3) == 9\nassert f(12) == 144";
constexpr const char* kProgram =
    R"({"stdin": [{"input": "2\n", "output": "4\n"}, {"input": "3\n", "output": "9\n"}, {"input": "12\n", "output": "144\n"}]})";

TEST(sandbox, no_attack_gets_through_that_works_outside) {
  EACH_TIER(tier) {
    int works_outside = 0;
    for (const Attack& attack : attack_all(Sandbox::untried(quick(tier), tier))) {
      EXPECT_EQ(attack.sandboxed, Attack::Result::missed) << word_of(tier) << ": " << attack.name;
      EXPECT_TRUE(!attack.must_hit_bare || attack.bare == Attack::Result::hit) << attack.name;
      works_outside += attack.bare == Attack::Result::hit;
    }
    EXPECT_GE(works_outside, 20);
  }
}

// Landlock of Linux 5.13 (1), 5.19 (2), 6.2 (3) and 6.10 (5) restricts less; the list of calls replaces it.
TEST(sandbox, no_attack_gets_through_in_tier_b_where_landlock_is_old) {
  const std::vector<SandboxChoice> here = tiers();
  if (std::ranges::count(here, SandboxChoice::b) == 0) GTEST_SKIP() << "no tier b on this machine";
  for (int64_t version : {1, 2, 3, 5}) {
    Sandbox box = Sandbox::untried(quick(SandboxChoice::b), SandboxChoice::b);
    box.use_landlock(version);
    for (const Attack& attack : attack_all(box)) {
      EXPECT_EQ(attack.sandboxed, Attack::Result::missed) << "version " << version << ": " << attack.name;
    }
  }
}

// What a program may do to a pipe of its own is not much, and the interpreter needs it.
TEST(sandbox, a_program_may_still_open_read_and_duplicate) {
  EACH_TIER(tier) {
    const Verdict verdict = grade_program(
        tier,
        "import os, fcntl\ndef f(n):\n    with open(os.devnull, 'w') as null:\n        null.write('x')\n    a, b = "
        "os.pipe()\n"
        "    c = os.dup(b)\n    fcntl.fcntl(c, fcntl.F_SETFL, fcntl.fcntl(c, fcntl.F_GETFL) | os.O_NONBLOCK)\n"
        "    os.set_inheritable(c, True)\n    os.write(c, bytes([n]))\n    return os.read(a, 9)[0] ** 2\n",
        kFunction);
    EXPECT_EQ(verdict.kind, VerdictKind::equal) << word_of(tier) << ": " << verdict.reason;
  }
}

TEST(code_grader, a_right_function_is_paid_and_a_wrong_one_by_the_share_of_its_tests) {
  EACH_TIER(tier) {
    const Verdict right = grade_program(tier, "def f(n):\n    return n * n\n", kFunction);
    EXPECT_EQ(right.kind, VerdictKind::equal) << right.reason;
    EXPECT_EQ(right.score, 1.0f);
    const Verdict wrong = grade_program(tier, "def f(n):\n    return 4 if n == 2 else 1 // 0\n", kFunction);
    EXPECT_EQ(wrong.kind, VerdictKind::unequal);
    EXPECT_NEAR(wrong.score, 1.0 / 3, 1e-6);
    EXPECT_NE(wrong.reason.find("ZeroDivisionError"), std::string::npos) << wrong.reason;
    const Verdict broken = grade_program(tier, "def f(n:\n", kFunction);
    EXPECT_EQ(broken.kind, VerdictKind::unequal);
    EXPECT_NE(broken.reason.find("SyntaxError"), std::string::npos) << broken.reason;
  }
}

TEST(code_grader, a_program_reads_and_prints_as_it_would_alone) {
  EACH_TIER(tier) {
    for (const char* source :
         {"print(int(input()) ** 2)", "import sys\nfor line in sys.stdin:\n    print(int(line) ** 2)",
          "import os\nos.write(1, str(int(os.read(0, 99)) ** 2).encode())",
          "n = int(open(0).read())\nprint(n * n)\nexit(0)",
          "f = open(0)\ndef main():\n    print(int(f.read()) ** 2)\nmain()",
          "import sys\nsys.stdout.buffer.write(b'%d\\n' % (int(sys.stdin.buffer.readline()) ** 2))",
          "import atexit\nn = int(input())\natexit.register(lambda: print(n * n))",
          "import threading\ndef main():\n    print(int(input()) ** 2)\nthreading.Thread(target=main).start()"}) {
      const Verdict verdict = grade_program(tier, source, kProgram);
      EXPECT_EQ(verdict.kind, VerdictKind::equal) << word_of(tier) << ": " << source << ": " << verdict.reason;
    }
  }
}

TEST(code_grader, what_solutions_use_without_an_import_is_there) {
  EACH_TIER(tier) {
    for (const char* body :
         {"    a: List[int] = [n]\n    return a[0] ** 2", "    return sum(Counter({n: n}).elements())",
          "    q = deque([n])\n    return q.popleft() * n", "    return math.prod([n, n])",
          "    return sqrt(n ** 4) if n < inf else 0",
          "    h = []\n    heappush(h, n)\n    return heapq.heappop(h) * n", "    return pow(n, 2, 10 ** 9)",
          "    import asyncio\n    async def g():\n        await asyncio.sleep(0)\n        return n * n\n    return "
          "asyncio.run(g())",
          "    import numbers, decimal, fractions, json, re\n    return n * n"}) {
      const Verdict verdict = grade_program(tier, str("def f(n):\n", body, "\n"), kFunction);
      EXPECT_EQ(verdict.kind, VerdictKind::equal) << word_of(tier) << ": " << body << ": " << verdict.reason;
    }
  }
}

// P7: none of these knows the square of 12; each tries for a reward all the same.
TEST(code_grader, no_program_awards_itself_a_pass) {
  EACH_TIER(tier) {
    for (const char* source : {
             "import os\nos._exit(0)",
             "import sys\nsys.exit(0)",
             "raise SystemExit(0)",
             "import os\ndef f(n):\n    os._exit(0)",
             "import os\nfor i, v in enumerate((4, 9, 1)):\n    p = str(v).encode()\n    os.write(4, b'%d v %d\\n' % "
             "(i, len(p)) + "
             "p)\nos._exit(0)",
             "import os\nos.write(4, b'0 r 0\\n0 d 0\\n')\nos._exit(0)",
             "import os\nos.write(5, b'end exit 0\\n')\ndef f(n):\n    return 0",
             "class E(int):\n    def __eq__(self, other):\n        return True\n    def __hash__(self):\n        "
             "return 0\n"
             "def f(n):\n    return E(n)",
             "class E:\n    def __eq__(self, other):\n        return True\ndef f(n):\n    return E()",
             "import builtins\nbuiltins.ascii = lambda v: '144'\ndef f(n):\n    return 144",
             "import sys\ndef f(n):\n    frame = sys._getframe()\n    while frame:\n        "
             "frame.f_globals['described'] = lambda e: "
             "b''\n        frame = frame.f_back\n    return 144",
             "import gc\ndef f(n):\n    for o in gc.get_objects():\n        if type(o) is list and o[:1] == [144]:\n   "
             "         return "
             "144\n    return 0",
             "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(n):\n    return 1",
             "def f(n):\n    return float('nan')",
             "def f(n):\n    return [n * n]",
             "def f(n):\n    return str(n * n)",
             "f = lambda n: None",
         }) {
      const Verdict verdict = grade_program(tier, source, kFunction);
      EXPECT_NE(verdict.kind, VerdictKind::equal) << word_of(tier) << ": " << source;
    }
  }
}

// An object that equals everything has no reward where a test compares by itself: such tests are refused.
TEST(code_grader, an_object_that_equals_everything_is_paid_for_no_form_of_a_test) {
  constexpr const char* kAll =
      "class E(int):\n    def __eq__(self, other):\n        return True\n    def __ne__(self, other):\n        return "
      "False\n"
      "    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = __eq__\n    def __hash__(self):\n        "
      "return 0\n"
      "    def __sub__(self, other):\n        return 0\n    __rsub__ = __xor__ = __sub__\ndef f(*a):\n    return E()\n";
  EACH_TIER(tier) {
    for (const char* test :
         {"assert f(1) == 918273", "assert (f(1) == 918273) == True", "assert (f(1) == 918273) is True",
          "assert all(f(i) == i * 7 for i in range(5)) == True", "assert str(f(1) == 5) == \"True\"",
          "assert (f(1) in [5]) == True", "assert bool(f(1) == 5) == True", "assert [f(1) == 5] == [True]",
          "expected = 5\nassert (f(1) == expected) == True", "expected = 5\nassert f(1) == expected",
          "assert f(1) - 918273 == 0", "ok = f(1) == 5\nassert ok == True"}) {
      EXPECT_NE(grade_program(tier, kAll, test).kind, VerdictKind::equal) << word_of(tier) << ": " << test;
    }
    break;  // the tier does not matter
  }
}

TEST(code_grader, the_expected_outputs_are_nowhere_in_the_sandbox) {
  EACH_TIER(tier) {
    // Finds 987654321987 in memory only if somebody else than this text has put it there.
    const std::string source =
        "import gc, sys\ndef f(n):\n    want = str(987654321986 + n)\n    for o in gc.get_objects() + "
        "list(sys._getframe().f_back."
        "f_locals.values()) + list(sys._getframe().f_back.f_globals.values()):\n        try:\n            t = repr(o) "
        "if type(o) in "
        "(list, tuple, dict, bytes, str, int) else ''\n        except Exception:\n            continue\n        if "
        "want in t:\n"
        "            return 'seen'\n    return 'not seen'\n";
    const Verdict verdict = grade_program(tier, source, "assert f(1) == 987654321987\nassert f(2) == 'not seen'");
    EXPECT_NE(verdict.reason.find("1 of 2 tests"), std::string::npos) << verdict.reason;
  }
}

TEST(code_grader, what_exceeds_a_limit_ends_in_time_and_is_not_paid) {
  EACH_TIER(tier) {
    const struct {
      const char *source, *reason;
      bool waits = false;
    } kCases[] = {
        {"import time\ntime.sleep(10000)", "in 2 s", true},
        // The first process of a namespace does not end by a signal that it has no handler for.
        {"import signal\nsignal.alarm(1)\nimport time\ntime.sleep(10000)", "", true},
        {"while True:\n    pass", "0 of 3 tests"},
        {"x = bytearray(1 << 30)", "MemoryError"},
        {"def f(n):\n    return 'x' * (50 << 20)", "too much output"},
        {"def f(n):\n    return f(n)", "RecursionError"},
        {"def f(n):\n    return 10 ** 50000", "50,000 digits"},
        {"def f(n):\n    a = []\n    a.append(a)\n    return a", "nested"},
        {"import os\nwhile True:\n    os.write(1, b'x' * 65536)", "0 of 3 tests"},
        {"import threading, time\ntry:\n    while True:\n        threading.Thread(target=time.sleep, "
         "args=(100,)).start()\n"
         "except BaseException:\n    pass\nimport os\nos._exit(3)",
         "ended early"},
        {"import ctypes\nctypes.string_at(0)", "killed by signal 11"},
    };
    for (const bool waits : {true, false}) {
      const auto grader = make_grader(GraderKind::code, {Extract::bare, waits ? quick(tier, 2) : quick(tier)});
      grader->prepare();
      const std::vector<std::string> gold = {kFunction};
      std::vector<Answer> answers;
      std::vector<std::string> reasons;
      for (const auto& c : kCases) {
        if (c.waits != waits) continue;
        answers.push_back({c.source, &gold});
        reasons.emplace_back(c.reason);
      }
      const std::vector<Verdict> verdicts = grader->grade(answers);
      for (size_t i = 0; i < answers.size(); ++i) {
        EXPECT_NE(verdicts[i].kind, VerdictKind::equal) << word_of(tier) << ": " << answers[i].response;
        EXPECT_NE(verdicts[i].reason.find(reasons[i]), std::string::npos)
            << word_of(tier) << ": " << answers[i].response << ": " << verdicts[i].reason;
      }
    }
  }
}

TEST(code_grader, the_same_program_gets_the_same_score_every_time) {
  EACH_TIER(tier) {
    const std::string source = "def f(n):\n    return list({str(i) for i in range(50)})[0:n]\n";
    std::string first;
    for (int i = 0; i < 4; ++i) {
      Verdict v = grade_program(tier, source, "assert f(1) == ['7']\nassert f(2) == ['1', '2']\nassert len(f(3)) == 3");
      if (i == 0) first = v.reason;
      EXPECT_EQ(v.reason, first);
    }
  }
}

// --- nothing stays
// -----------------------------------------------------------------------------------------------------

std::vector<std::string> processes_with(const std::string& mark) {
  std::vector<std::string> found;
  for (const std::string& name : list_directory("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const int fd = ::open(str("/proc/", name, "/cmdline").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    char text[65536];
    const ssize_t n = ::read(fd, text, sizeof text);
    ::close(fd);
    if (n > 0 && std::string_view(text, static_cast<size_t>(n)).find(mark) != std::string_view::npos)
      found.push_back(name);
  }
  return found;
}

// Launchers and interpreters of this test process, by the parent's number on their command line and by the harness.
std::vector<std::string> ours() { return processes_with(str("--parent", '\0', ::getpid(), '\0')); }

TEST(sandbox, no_process_survives_a_program_that_is_stopped) {
  EACH_TIER(tier) {
    const auto grader = make_grader(GraderKind::code, {Extract::bare, quick(tier, 2)});
    const std::vector<std::string> gold = {kFunction};
    const Answer answer{"import time\ntime.sleep(10000)", &gold};
    grader->grade({&answer, 1});
    EXPECT_TRUE(ours().empty());
    const Sandbox box = Sandbox::untried(quick(tier), tier);
    const Ended ended = box.run(make_task("steps", "import time\n", {"t1", "ttime.sleep(10000)"}), 1 << 20,
                                [](const Frame& frame) { return frame.kind != 'v'; });
    EXPECT_EQ(ended.how, Ended::How::stopped);  // at once: no limit ends it before ten minutes have gone by
    EXPECT_TRUE(ours().empty());
  }
}

// P11: a launcher that is killed or stopped from outside is no verdict about the program; it is tried again. Until one
// was killed, and with more time where a machine is too slow for the program.
TEST(sandbox, a_launcher_that_dies_or_hangs_delays_a_verdict_and_changes_none) {
  EACH_TIER(tier) {
    for (int signal : {SIGKILL, SIGSTOP}) {
      const std::vector<std::string> gold = {kFunction};
      const Answer answer{"import time\ntime.sleep(0.3)\ndef f(n):\n    return n * n\n", &gold};
      std::atomic<bool> killed = false;
      for (int64_t wall = 3; !killed; wall = std::min<int64_t>(2 * wall, 600)) {
        const auto grader = make_grader(GraderKind::code, {Extract::bare, quick(tier, wall)});
        grader->prepare();
        std::atomic<bool> over = false;
        std::jthread assassin([&] {
          testing::wait_until([&] {
            const std::vector<std::string> found = ours();
            if (!found.empty()) killed = ::kill(static_cast<pid_t>(std::atoi(found.front().c_str())), signal) == 0;
            return killed || over;
          });
        });
        const Verdict verdict = grader->grade({&answer, 1}).front();
        over = true;
        assassin.join();
        if (verdict.kind == VerdictKind::over_budget && wall < 600) {
          killed = false;
          continue;
        }
        EXPECT_EQ(verdict.kind, VerdictKind::equal) << verdict.reason;
      }
    }
    EXPECT_TRUE(ours().empty());
  }
}

TEST(sandbox, descriptors_that_this_process_leaks_do_not_reach_the_program) {
  EACH_TIER(tier) {
    const testing::TemporaryDirectory folder;
    write_file(folder.path() + "/leaked", "secret");
    const int leaked = ::open((folder.path() + "/leaked").c_str(), O_RDONLY);  // not close-on-exec
    ASSERT_GE(leaked, 0);
    const Verdict verdict = grade_program(tier,
                                          "import os\nopen_ones = []\nfor fd in range(256):\n    try:\n        "
                                          "os.fstat(fd)\n        open_ones.append(fd)\n"
                                          "    except OSError:\n        pass\ndef f(n):\n    return open_ones\n",
                                          "assert f(1) == [0, 1, 2, 4]");
    ::close(leaked);
    EXPECT_EQ(verdict.kind, VerdictKind::equal) << verdict.reason;
  }
}

TEST(sandbox, an_interpreter_that_is_none_is_refused_with_exit_78) {
  CodeOptions options;
  options.python = "/bin/false";
  try {
    const Sandbox box(options);
    FAIL() << "a sandbox without an interpreter";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "sandbox");
    EXPECT_EQ(error.exit_code(), kNoSandbox);
  }
}

// P12: what the sandbox fails on is no wrong answer. The interpreter goes away after the self-test.
TEST(sandbox, a_sandbox_that_breaks_stops_the_run_and_grades_nothing) {
  EACH_TIER(tier) {
    const testing::TemporaryDirectory folder;
    ::chmod(folder.path().c_str(), 0755);
    const std::string python = folder.path() + "/python3";
    // A copy: the real path is what is started.
    const std::string real = Sandbox::untried(quick(tier), tier).python();
    write_file(python, read_file(real));
    ::chmod(python.c_str(), 0755);
    CodeOptions options = quick(tier);
    options.python = python;
    const auto grader = make_grader(GraderKind::code, {Extract::bare, options});
    const std::vector<std::string> gold = {kFunction};
    const Answer answer{"def f(n):\n    return n * n\n", &gold};
    EXPECT_EQ(grader->grade({&answer, 1}).front().kind, VerdictKind::equal);
    remove_all(python);
    try {
      grader->grade({&answer, 1});
      FAIL() << "graded without an interpreter";
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "sandbox") << error.what();
      EXPECT_EQ(error.exit_code(), kNoSandbox);
    }
  }
}

}  // namespace
}  // namespace ucas::code
