"""What the last run of ctest left out, by reason, and what passed at a second attempt alone: skipped.py BUILD. Nothing is
skipped or run again in silence."""
import os
import re
import sys

BLOCK = re.compile(r"^(\d+/\d+ Testing: .+)$", re.M)  # of a test that is run again once more, with its number
UNIT = re.compile(r": Skipped\n(.*)\n(?:\n|\[)")
WHOLE = re.compile(r"^(?:skipped: .*|needs .*, which is not here)$", re.M)


def main():
    with open(os.path.join(sys.argv[1], "Testing", "Temporary", "LastTest.log"), encoding="utf-8", errors="replace") as file:
        parts = BLOCK.split(file.read())[1:]
    last, again = {}, []
    for name, text in zip(parts[0::2], parts[1::2]):
        if name in last and "\nTest Passed.\n" in text:
            again.append(name.split(": ")[1])
        last[name] = text
    reasons = {}
    for text in last.values():
        for reason in UNIT.findall(text) + [line.removeprefix("skipped: ") for line in WHOLE.findall(text)]:
            reasons[reason] = reasons.get(reason, 0) + 1
    units = sum(map(int, re.findall(r"^\[==========\] (\d+) tests? from \d+ test suites? ran\.", "\n".join(last.values()), re.M)))
    print(f"{len(last)} tests of ctest, {units} unit tests in them; {sum(reasons.values())} skipped" + (":" if reasons else ""))
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1]):
        print(f"  {count:3} {reason}")
    for name in again:
        print(f"flaky: {name} failed, and passed when it was run again; its first output is above")


main()
