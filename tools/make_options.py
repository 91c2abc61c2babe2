#!/usr/bin/env python3
"""docs/options.md: what `ucas COMMAND --help all` says of every command, on one page. tests/e2e/options_e2e.py holds it to the program.
   tools/make_options.py build"""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def page(build):
    ucas = os.path.join(os.path.abspath(build), "ucas")

    def says(*words):
        return subprocess.run([ucas, *words], capture_output=True, text=True, check=True).stdout.rstrip()

    overview = says("--help")
    listed = overview.split("\n\n")[1].split("\n")
    commands = [line[at:at + 14].strip() for line in listed for at in (12, 46) if line[at:].strip()]
    parts = ["# All options\n\nMade by `tools/make_options.py`; the same as `ucas COMMAND --help all`.\n", f"```\n{overview}\n```\n"]
    for command in commands:
        parts.append(f"## ucas {command}\n\n```\n{says(command, '--help', 'all')}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    with open(os.path.join(ROOT, "docs", "options.md"), "w") as out:
        out.write(page(sys.argv[1]))
