"""What the last run of ctest left out, by reason: skipped.py BUILD. Nothing is skipped in silence."""
import os
import re
import sys

BLOCK = re.compile(r"^\d+/\d+ Test(?:ing)?: (.+)$", re.M)
UNIT = re.compile(r": Skipped\n(.*)\n(?:\n|\[)")
WHOLE = re.compile(r"^(?:skipped: .*|needs .*, which is not here)$", re.M)


def main():
    with open(os.path.join(sys.argv[1], "Testing", "Temporary", "LastTest.log"), encoding="utf-8", errors="replace") as file:
        parts = BLOCK.split(file.read())[1:]
    reasons = {}
    for text in parts[1::2]:
        for reason in UNIT.findall(text) + [line.removeprefix("skipped: ") for line in WHOLE.findall(text)]:
            reasons[reason] = reasons.get(reason, 0) + 1
    units = sum(map(int, re.findall(r"^\[==========\] (\d+) tests? from \d+ test suites? ran\.", "\n".join(parts[1::2]), re.M)))
    print(f"{len(parts) // 2} tests of ctest, {units} unit tests in them; {sum(reasons.values())} skipped" + (":" if reasons else ""))
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1]):
        print(f"  {count:3} {reason}")


main()
