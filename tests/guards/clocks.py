"""Wall clocks are read in a few named places, for people: a clock that jumps must end no wait and change no result (docs/reliability.md).
What is timed is timed by std::chrono::steady_clock or CLOCK_MONOTONIC."""
import re

from tree import files, report, text

WALL = re.compile(r"\b(?:system_clock|high_resolution_clock|utc_clock|CLOCK_REALTIME\w*|gettimeofday|timespec_get|(?:std::)?time\((?:nullptr|NULL|0|&\w+)\)"
                  r"|last_write_time|std::clock\(\))")
NAMED = {
    "src/records/run/run_directory.cpp": "when a run began: env.json",
}


def main():
    looked_at = [f for f in files(".h", ".cpp", ".cu", ".inc", under="src") if not f.endswith("_test.cpp")]
    problems, found = [], set()
    for path in looked_at:
        for number, line in enumerate(text(path).split("\n"), 1):
            if not WALL.search(line.split("//")[0]):
                continue
            found.add(path)
            if path not in NAMED:
                problems.append(f"{path}:{number}: reads the wall clock, which may jump; use std::chrono::steady_clock")
    problems += [f"{path}: reads no wall clock any more; take it off this guard's list" for path in sorted(set(NAMED) - found)]
    report("clocks", problems, len(looked_at))


main()
