#!/usr/bin/env python3
"""The tables of docs/metrics.md: what `ucas explain --metrics` says, each between its marks <!-- table of NAME --> and <!-- end of table -->. The text around them
is written by hand. tests/e2e/metrics_page_e2e.py holds the page to the program.
   tools/make_metrics.py build"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "metrics.md")
TABLE = re.compile(r"<!-- table of (\w+) -->\n.*?<!-- end of table -->", re.S)


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"] + ["| " + " | ".join(row) + " |" for row in rows])


def name_of(names):
    """x/mean, x/max, x/min are `x/{mean,max,min}`; other names stand one after another."""
    stems = {name.rpartition("/")[0] for name in names}
    ends = [name.rpartition("/")[2] for name in names]
    if len(names) > 2 and len(stems) == 1 and set(ends) <= {"mean", "std", "max", "min"}:
        return f"`{stems.pop()}/{{{','.join(ends)}}}`"
    return " ".join(f"`{name}`" for name in names)


def merged(metrics):
    """Names that are explained together are one row; the unit stands behind them, unless the meaning says that it is a share."""
    rows = []
    for metric in metrics:
        if metric["meaning"] or not rows:
            rows.append([[], [], metric["meaning"]])
        rows[-1][0].append(metric["name"])
        rows[-1][1] += [metric["unit"]] if metric["unit"] != "share" or "share" not in rows[-1][2] else []
    return [[name_of(names) + "".join(f" ({unit})" for unit in dict.fromkeys(units) if unit), meaning] for names, units, meaning in rows]


def tables(told):
    made = {name: table(["name", "meaning"], merged(rows)) for name, rows in told["sections"].items()}
    made["methods"] = table(["name", "meaning"], [row for rows in told["methods"].values() for row in merged(rows)])
    made["causes"] = table(["sign", "when"], [[c["title"], c["when"]] for c in told["causes"]])
    return made


def page(build, text):
    said = subprocess.run([os.path.join(os.path.abspath(build), "ucas"), "explain", "--metrics"], capture_output=True, text=True, check=True)
    made = tables(json.loads(said.stdout))
    places = TABLE.findall(text)
    missing = sorted(set(made) ^ set(places))
    if missing or len(places) != len(set(places)):
        sys.exit(f"docs/metrics.md: expected one place for each table, <!-- table of NAME -->; wrong: {', '.join(missing) or 'twice'}")
    return TABLE.sub(lambda place: f"<!-- table of {place[1]} -->\n{made[place[1]]}\n<!-- end of table -->", text)


if __name__ == "__main__":
    with open(PAGE) as kept:
        before = kept.read()
    after = page(sys.argv[1], before)
    with open(PAGE, "w") as out:
        out.write(after)
