"""What all guards share: the files of the project and a way to report."""
import os
import re
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIPPED = re.compile(r"^(build.*|runs|__pycache__|\.(?!ci$|clang|editorconfig|gitignore).*)$")


def files(*suffixes, under=""):
    """Paths relative to the project, sorted; all of them, or those that end in one of `suffixes`."""
    found = []
    for folder, folders, names in os.walk(os.path.join(ROOT, under)):
        folders[:] = [f for f in folders if not SKIPPED.match(f)]
        found += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names if not SKIPPED.match(n)]
    return sorted(f for f in found if not suffixes or f.endswith(suffixes))


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def report(what, problems, checked):
    """Prints the findings and ends the guard. A guard that looked at nothing has not passed."""
    for problem in problems:
        print(problem)
    print(f"{what}: {checked} checked, {len(problems)} problems")
    sys.exit(1 if problems or not checked else 0)
