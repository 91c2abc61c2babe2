"""The size of the house only falls: tests/guards/budget.json has a bound for each folder of src (product lines), for all of them, for files, commands,
options of a run, configs and words of docs. A bound may be lowered (`budget.py --fix` lowers each to what is there), never raised in sum:
who needs more room in one folder takes it from another in the same commit (docs/decisions.md)."""
import json
import os
import re
import subprocess
import sys

from tree import ROOT, files, report, text

TABLE = "tests/guards/budget.json"
PRODUCT = (".cpp", ".h", ".cu", ".inc", ".py", ".js")


def counts():
    product = [f for f in files(*PRODUCT, under="src") if "_test" not in os.path.basename(f)]
    lines = {}
    for path in product:
        parts = path.split("/")
        folder = parts[1] if len(parts) > 2 else "."
        lines[folder] = lines.get(folder, 0) + text(path).count("\n")
    docs = [f for f in files(".md", under="docs") if f.count("/") == 1]
    return {"lines": lines,
            "all": {"lines": sum(lines.values()),
                    "files": len(product),
                    "commands": len(re.findall(r"^  X\(", text("src/cli/command.h"), re.M)),
                    "configs": len(files(".toml", under="configs")),
                    "words of docs": sum(len(text(f).split()) for f in docs)}}


def before():
    """The table of the commit before this one, or None where git does not know it."""
    done = subprocess.run(["git", "-C", ROOT, "show", f"HEAD^:{TABLE}"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main():
    now, bound = counts(), json.loads(text(TABLE))
    problems = []
    for part in ("lines", "all"):
        for name, count in now[part].items():
            if name not in bound[part]:
                problems.append(f"{name}: {count}, and no bound in {TABLE}; give it one, and lower another")
            elif count > bound[part][name]:
                problems.append(f"{name}: {count}, the bound is {bound[part][name]} ({TABLE}); take something out, or lower another bound by as much")
    if sum(bound["lines"].values()) > bound["all"]["lines"]:
        problems.append(f"{TABLE}: the folders' bounds add up to {sum(bound['lines'].values())}, more than the {bound['all']['lines']} of all")
    earlier = before()
    for name, count in bound["all"].items():
        if earlier and count > earlier["all"].get(name, count):
            problems.append(f"{TABLE}: {name} raised from {earlier['all'][name]} to {count}; it only falls")
    if "--fix" in sys.argv:
        for part in ("lines", "all"):
            bound[part] = {name: min(count, bound[part].get(name, count)) for name, count in sorted(now[part].items())}
        with open(os.path.join(ROOT, TABLE), "w", encoding="utf-8") as file:
            file.write(json.dumps(bound, indent=1) + "\n")
    report("budget", problems, sum(len(part) for part in now.values()))


main()
