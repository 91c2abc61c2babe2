"""A folder of src/ is a room: at most 30 source files, its tests among them, and a README.md of at most 20 lines that says what it is for, what
feeds it, what it may include and where to start. `rooms.py --fix` writes the line "May include" from the table of layering.py."""
import collections
import os
import re
import sys

import layering
from tree import ROOT, files, report, text

FILES, LINES = 30, 20
MAY = re.compile(r"^May include: .*$", re.M)
START = re.compile(r"^Start at:\n(?:- .*\n)+", re.M)


def may_include(folder):
    """The line of a README, in the words of the table."""
    if folder not in layering.ALLOWED:
        return "May include: nothing of ours."
    back = sorted(to for at, to in layering.BACK if at == folder)
    names = (["base/*"] if not folder.startswith("base") else []) + layering.ALLOWED[folder].split()
    line = "May include: " + (", ".join("options (config.h)" if n == "sections" else n for n in names) or "nothing") + "."
    return line + (f" Back, for now: {', '.join(back)}." if back else "")


def main():
    counts = collections.Counter(os.path.dirname(path) for path in files(".h", ".cpp", ".cu", ".inc", under="src"))
    problems = []
    for folder, count in sorted(counts.items()):
        if count > FILES:
            problems.append(f"{folder}: {count} files, at most {FILES}; split it by what its files are for")
        readme, line = f"{folder}/README.md", may_include(folder.removeprefix("src/"))
        if not os.path.exists(os.path.join(ROOT, readme)):
            problems.append(f"{readme} is missing: what the folder is for, what feeds it, what it may include, where to start")
            continue
        body = text(readme)
        if "--fix" in sys.argv and MAY.search(body) and MAY.search(body)[0] != line:
            body = MAY.sub(lambda _: line, body)
            with open(os.path.join(ROOT, readme), "w", encoding="utf-8") as file:
                file.write(body)
        if body.count("\n") > LINES:
            problems.append(f"{readme}: {body.count(chr(10))} lines, at most {LINES}")
        if not body.startswith("# ") or not START.search(body):
            problems.append(f'{readme}: expected a title, and "Start at:" with a list')
        if not MAY.search(body) or MAY.search(body)[0] != line:
            problems.append(f'{readme}: expected the line "{line}" (tests/guards/rooms.py --fix writes it)')
    report("rooms", problems, len(counts))


main()
