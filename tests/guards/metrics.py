"""A metric is declared once, in src/core/metrics.inc or in the file of its method. Elsewhere its row is named (metric::actor_entropy), not its
key, so a key that is not declared does not compile."""
import re

from tree import files, report, text

ROW = re.compile(r'\.key = "([^"]+)"')
SPREAD = re.compile(r'SPREAD\(\w+, "([^"]+)"')
LITERAL = re.compile(r'"((?:\\.|[^"\\])*)"')


def main():
    declared = {}
    problems = []
    sources = [f for f in files(".h", ".cpp", ".inc", under="src") if not f.endswith("_test.cpp")]
    for path in sources:
        body = text(path)
        if path != "src/core/metrics.inc" and not path.startswith("src/methods/"):
            continue
        for key in ROW.findall(body) + [f"{name}/{of}" for name in SPREAD.findall(body) for of in ("mean", "max", "min")]:
            if key in declared:
                problems.append(f'{path}: "{key}" is declared in {declared[key]} already')
            declared[key] = path
    told = {key for key in declared if "/" in key}  # "loss" and "tokens" are words of other files, too
    for path in sources:
        if path in ("src/core/metrics.h", "src/core/metrics.inc"):
            continue
        for number, line in enumerate(text(path).split("\n"), 1):
            for key in LITERAL.findall(line.split("//")[0]):
                if key in told and path != declared[key]:
                    problems.append(f'{path}:{number}: "{key}" is declared in {declared[key]}; name its row of core/metrics.h instead')
    report("metrics", problems, len(declared))


main()
