"""clang-format, pinned: its output changes between versions. `formatter.py --fix` (make format) rewrites the files."""
import os
import shutil
import subprocess
import sys

from tree import ROOT, files, report

VERSION = "19.1.7"
SKIP = 77  # ctest shows "Skipped"


def formatter():
    for program in (os.path.join(ROOT, ".venv/bin/clang-format"), "clang-format-19", "clang-format"):
        if shutil.which(program):
            said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if VERSION in said:
                return program
    return None


def main():
    program = formatter()
    if program is None:
        print(f"clang-format {VERSION} is not here (tools/setup gets it); nothing was checked")
        sys.exit(SKIP)
    sources = [f for f in files(".h", ".cpp") if f.startswith(("src/", "tests/", "bench/"))]
    options = ["-i"] if "--fix" in sys.argv else ["--dry-run", "-Werror"]
    bad = []
    for first in range(0, len(sources), 64):
        done = subprocess.run([program, *options, *sources[first:first + 64]], cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            bad += sorted({line.split(":")[0] + ": not formatted (make format)" for line in done.stderr.split("\n")
                           if "[-Wclang-format-violations]" in line} or {done.stderr})
    report("formatter", bad, len(sources))


main()
