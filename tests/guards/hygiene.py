"""Small rules that keep diffs and machines out of each other's way."""
import re

from tree import files, report, text

CODE = (".h", ".cpp", ".py", ".cmake", "CMakeLists.txt", ".toml", "Makefile")
PROSE = (".md", ".json", ".jsonl", ".test", ".txt", ".html", ".css", ".js", "setup", "run")
MACHINE = re.compile(r"(?<![\w.~])/(?:work|root|home|Users|mnt|tmp/setup)/")
NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def check(path, problems):
    body = text(path)
    lines = body.split("\n")
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        if MACHINE.search(line) and not path.startswith("tests/guards/"):
            problems.append(f"{where}: a path of one machine")
        if not path.endswith(CODE):
            continue
        if NOT_ASCII.search(line):
            problems.append(f"{where}: not ASCII; write \\u or \\x escapes in strings")
        if line.endswith((" ", "\t", "\r")):
            problems.append(f"{where}: blanks at the end of the line")
    if path.endswith(CODE) and body and not body.endswith("\n"):
        problems.append(f"{path}: no newline at the end")
    if path.endswith(".h") and "#pragma once" not in lines:
        problems.append(f"{path}: no #pragma once")
    if path.startswith("src/") and path.endswith(".cpp") and not path.endswith("_test.cpp"):
        header = path[len("src/"):-len(".cpp")] + ".h"
        found = re.findall(r'^#include ["<]([^">]+)', body, re.M)
        if header in found and found[0] != header:
            problems.append(f'{path}: its own header "{header}" comes first')


def main():
    checked = files(*CODE, *PROSE)
    problems = []
    for path in checked:
        check(path, problems)
    report("hygiene", problems, len(checked))


main()
