"""The reading list of src/README.md says how long each file is, to ten lines, and all of them together, to a hundred. `reading_list.py --fix` writes
the figures."""
import os
import re
import sys

from tree import ROOT, report, text

PAGE = "src/README.md"
ROW = re.compile(r"^\| `([\w/]+\.\w+)` \| ([\d,]+) \|", re.M)
TOTAL = re.compile(r"^About ([\d,]+) lines\b", re.M)


def rounded(count, to):
    return f"{max(to, (count + to // 2) // to * to):,}"


def main():
    page, problems, lines, checked = text(PAGE), [], 0, 0

    def held(match, right):
        """The match with the right figure in place of its last group."""
        at = match.start(match.lastindex) - match.start()
        said = match[match.lastindex]
        if said != right:
            problems.append(f"{PAGE}: \"{match[0]}\": expected {right} (tests/guards/reading_list.py --fix writes it)")
        return match[0][:at] + right + match[0][at + len(said):]

    def row(match):
        nonlocal lines, checked
        checked += 1
        if not os.path.exists(os.path.join(ROOT, "src", match[1])):
            problems.append(f"{PAGE}: there is no src/{match[1]}")
            return match[0]
        count = text(f"src/{match[1]}").count("\n")
        lines += count
        return held(match, rounded(count, 10))

    fixed = ROW.sub(row, page)
    if not TOTAL.search(page):
        problems.append(f'{PAGE}: expected a line that begins with "About N lines", the sum of the list')
    fixed = TOTAL.sub(lambda match: held(match, rounded(lines, 100)), fixed)
    if "--fix" in sys.argv and fixed != page:
        with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as file:
            file.write(fixed)
        problems = [p for p in problems if "--fix" not in p]
    report("reading list", problems, checked)


main()
