"""No test is decided by the clock, the number of cores or free memory: what it says holds on a machine of a fortieth of the speed. A test
waits for what happens (tests/support/patience.h, wait_until() of tests/e2e/support.py) under bounds that only end what hangs (HANG; ctest's),
counts work (steps, calls, CPU seconds of its thread), and sets a limit of the product itself where that is one of seconds. It writes where TMPDIR says
and quotes paths, which may hold blanks. What reads a clock or sleeps all the same is named here, with the reason."""
import re

from tree import files, report, text

CPP = re.compile(r"\b(?:\w*_clock\b|now_seconds\(|CLOCK_(?:MONOTONIC|REALTIME)|gettimeofday|clock\(\)|sleep_for|sleep_until|u?sleep\(|nanosleep|\w*wait_for\(|wait_until\(lock"
                 r"|hardware_concurrency|usable_cores\(|available_memory\(|std::system\(|popen\()")
PYTHON = re.compile(r"\btime\.(?:time|monotonic|perf_counter|sleep)\(|\btimeout=(?!HANG\b)|\.wait\(\d|select\([^#]*, *[1-9\w.]+\)\s*$|alarm\((?!HANG\b)|\bos\.cpu_count|shell=True")
SHELL = re.compile(r"(?:^|[\s;|&(])(?:timeout|sleep) +[\d.]|(?<![\"\w])\$(?:TESTS|SHARED|PWD)\b")
PLACE = re.compile(r"[\"' =(]/tmp/")
NAMED = {
    "src/base/process/threads_test.cpp": "those that come after a failure dawdle, so that there are some left when it is seen",
    "src/http/client_test.cpp": "a server that sends a byte now and then: what ends it is tested",
    "src/rollout/policy_test.cpp": "counts shares of the cores, whatever their number",
    "src/train/collect/reward_test.cpp": "a grader that takes its time, so that others wait for it",
    "src/verify/sandbox/sandbox_test.cpp": "programs that sleep: what ends them is tested",
    "tests/e2e/rank_faults_e2e.py": "prints how soon the others end; nothing is decided by it",
    "tests/e2e/reward_e2e.py": "programs that sleep: what is said of them is tested",
    "tests/e2e/study_kills_e2e.py": "a moment of its own for each kill; none decides",
    "tests/e2e/support.py": "wait_until(), and the bound that ends what hangs",
    "tests/fuzz/driver.cpp": "how long to fuzz, which the caller says",
    "tests/support/patience.h": "what tests wait by",
}


def findings(path):
    pattern = SHELL if path.endswith(".test") else PYTHON if path.endswith(".py") else CPP
    for number, line in enumerate(text(path).split("\n"), 1):
        code = line if path.endswith(".test") else line.split("#")[0] if path.endswith(".py") else line.split("//")[0]
        if found := pattern.search(code):
            yield number, found.group(0).strip(), False
        if PLACE.search(code):
            yield number, "/tmp, whatever TMPDIR says", True


def main():
    looked_at = [f for f in files(".cpp", ".h", under="src") if f.endswith("_test.cpp")]
    looked_at += [f for f in files(".cpp", ".h", ".py", ".test", under="tests") if not f.startswith("tests/guards/")]
    problems, used = [], set()
    for path in looked_at:
        for number, what, always in findings(path):
            if path in NAMED and not always:
                used.add(path)
                continue
            problems.append(f"{path}:{number}: {what}: see tests/guards/timing.py")
    problems += [f"{path}: needs no place on this guard's list any more" for path in sorted(set(NAMED) - used)]
    report("timing", problems, len(looked_at))


main()
