#!/usr/bin/env python3
"""The tables of docs/metrics.md: what `ucas explain --metrics --json` says, each between its marks <!-- table of NAME --> and <!-- end of table -->. The text around them
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


def merged(metrics):
    """Names that are explained together are one row."""
    rows = []
    for metric in metrics:
        name = f"`{metric['name']}`"
        if metric["meaning"] or not rows:
            rows.append([[name], [metric["unit"]], metric["meaning"]])
        else:
            rows[-1][0].append(name)
            rows[-1][1].append(metric["unit"])
    return [[" ".join(names), ", ".join(dict.fromkeys(unit for unit in units if unit)), meaning] for names, units, meaning in rows]


def tables(told):
    made = {name: table(["name", "unit", "meaning"], merged(rows)) for name, rows in told["sections"].items()}
    made["methods"] = table(["method", "name", "unit", "meaning"],
                            [[f"`{method}`", *row] for method, rows in told["methods"].items() for row in merged(rows)])
    made["causes"] = table(["sign", "when"], [[c["title"], c["when"]] for c in told["causes"]])
    return made


def page(build, text):
    said = subprocess.run([os.path.join(os.path.abspath(build), "ucas"), "explain", "--metrics", "--json"], capture_output=True, text=True, check=True)
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
