"""A clock that jumps: a library preloaded into a training and an evaluation moves the wall clock by up to years, back and forth, at each
look, and what they end in are the same bytes. Only a monotonic clock times anything (tests/guards/clocks.py)."""
import filecmp
import os
import shlex
import shutil
import subprocess
import sys

from support import HANG, UCAS, check, clean, fail, path, rows, small_task, train_words, ucas

JUMPS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_long looks;
static long jump(void) {
  const long n = ++looks;
  if (n == 1) {  /* that it was looked at, for the test */
    const char* name = getenv("JUMPS_SEEN");
    if (name != NULL && write(atoi(name), "seen\n", 5) < 0) abort();
  }
  return (n * 7919 % 2001 - 1000) * 86400;
}
int clock_gettime(clockid_t id, struct timespec* t) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int done = real(id, t);
  if (done == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += jump();
  return done;
}
int gettimeofday(struct timeval* restrict t, void* restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
"""
compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
if compiler is None:
    print("skipped: no C compiler")
    sys.exit(77)
with open(path("jumps.c"), "w") as file:
    file.write(JUMPS)
subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-O1", path("jumps.c"), "-o", path("jumps.so"), "-ldl"], check=True)


def jumping(*words):
    read, write = os.pipe()
    done = subprocess.run([UCAS, *map(str, words)], capture_output=True, text=True, timeout=HANG, pass_fds=[write], cwd=path(""), env={
        **os.environ, "LD_PRELOAD": "./jumps.so", "JUMPS_SEEN": str(write), "ASAN_OPTIONS": "verify_asan_link_order=0"})
    os.close(write)
    with os.fdopen(read) as said:
        seen = said.read()
    if done.returncode != 0:
        fail(f"{words}: exit {done.returncode}\n{done.stderr}")
    return seen


def evaluation(out):
    return ["evaluate", path("base"), "--data", path("task", "test.jsonl"), "--template", "plain", "--samples", 2, "--max_tokens", 24, "--out", out]


small_task()
with open(path("length.py"), "w") as file:  # a reward from outside, which is waited for
    file.write("import json, sys\nfor line in sys.stdin:\n    a = json.loads(line)\n"
               "    print(json.dumps({'id': a['id'], 'score': a['tokens'] / 10, 'right': a['finished']}), flush=True)\n")
words = ["--train.steps", 3, "--train.save_freq", 1, "--reward.command", shlex.join([sys.executable, path("length.py")]), "--reward.command_seconds", 100000]
ucas(*train_words(path("still"), *words))
seen = jumping(*train_words(path("jumping"), *words))
check(seen, "the clock was looked at, and jumped")
a, b = (os.path.join(path(run), "checkpoints", "step-0000003") for run in ("still", "jumping"))
files = [os.path.join(d, f) for d in ("", "state") for f in os.listdir(os.path.join(a, d)) if f != "state"]
same = filecmp.cmpfiles(a, b, files, shallow=False)
check(not same[1] and not same[2] and rows(path("still")) == rows(path("jumping")), f"a training: {len(files)} files and its log are the same")
ucas("train", "--resume", path("still"), "--train.steps", 4)
jumping("train", "--resume", path("jumping"), "--train.steps", 4)
check(rows(path("jumping")) == rows(path("still")), "resumed, too")
ucas(*evaluation(path("still-eval")))
jumping(*evaluation(path("jumping-eval")))
for name in ("test.outputs.jsonl", "test.json"):
    check(filecmp.cmp(*(os.path.join(path(run), "base", "eval", name) for run in ("still-eval", "jumping-eval")), shallow=False),
          f"an evaluation: {name} is the same")
clean()
