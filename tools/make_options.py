#!/usr/bin/env python3
"""docs/options.md, a line an option, and docs/commands.md, from what `ucas COMMAND --help all` says. tests/e2e/options_e2e.py holds both to
the program.
   tools/make_options.py build"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OPTION = re.compile(r"^  --(\S+)(?: ([A-Z][^ ]*))? +(\S.*(?:\n {8,}\S.*)*)", re.M)
LONG = 9  # words that a line may have where its sentence allows a shorter one


class Program:
    def __init__(self, build):
        self.ucas = os.path.join(os.path.abspath(build), "ucas")
        self.overview = self.says("--help")
        listed = self.overview.split("\n\n")[1].split("\n")
        self.commands = [line[at:at + 14].strip() for line in listed for at in (12, 46) if line[at:].strip()]
        self.pages = {command: self.says(command, "--help", "all") for command in self.commands}

    def says(self, *words):
        return subprocess.run([self.ucas, *words], capture_output=True, text=True, check=True).stdout.rstrip()

    @staticmethod
    def options_in(text):
        """(key, type, help) of each option, once."""
        found = {}
        for key, kind, said in OPTION.findall(text):
            found.setdefault(key, (kind, " ".join(said.split())))
        return [(key, *rest) for key, rest in found.items()]

    def options(self, command):
        return self.options_in(self.pages[command])


def brief(kind, text):
    """Its first clause; the words that it takes; what it is by default."""
    default = re.search(r" \[([^\[\]]*|\[\])\]$", text)
    body = text[:default.start()] if default else text
    parts = body.split("; ")
    words = parts[-1] if kind == "NAME" and " | " in parts[-1] else ""
    first = re.split(r": | such as | \(| for instance | = ", parts[0])[0].rstrip(",")
    while len(first.split()) > LONG and ", " in first:
        first = first[:first.rindex(", ")]
    if words:
        first += ": " + words.replace(" | ", "|")
    return first + (f" [{default[1]}]" if default and default[1] not in ('""', "[]", "", "false", "0") else "")


def lines(options, known, of=""):
    """A line each; of what was listed before under the same name and words, none."""
    out = []
    for key, kind, text in options:
        said = brief(kind, text)
        if (key, said.split(" [")[0]) not in known:
            out.append(f"{key.removeprefix(of)}: {said}")
        known.add((key, said.split(" [")[0]))
    return out


def options_page(program):
    parts = ["# Options\n\nMade by `tools/make_options.py`: a line an option, [default]. `ucas COMMAND --help all` says each in full. What a command "
             "shares with one above is not listed again.\n"]
    known = set()
    for command in program.commands:
        page, methods = program.pages[command], ""
        if command == "train":
            page, methods = page.split("\nMethods (", 1)
        rows = lines(program.options_in(page), known)
        if rows:
            parts.append(f"## ucas {command}\n\n```\n" + "\n".join(rows) + "\n```\n")
        own = []
        for name, text in re.findall(r"^([a-z0-9_]+): .*\n((?:.+\n?)*)", methods, re.M):
            rows = lines(program.options_in(text), known, "method.")
            if rows:
                own.append(f"[{name}]\n" + "\n".join(rows))
        if own:
            parts.append("### Options of methods, `method.`\n\n```\n" + "\n".join(own) + "\n```\n")
    return "\n".join(parts)


def commands_page(program):
    parts = ["# Commands\n\nMade by `tools/make_options.py`. `ucas COMMAND --help` has all of it; [options.md](options.md) has the options.\n"]
    for command in program.commands:
        head, text = program.pages[command].split("\n\n", 1)
        usage = text.split("\n\n", 1)[0].removeprefix("Usage: ")
        parts.append(f"## {head.splitlines()[0].replace(' - ', ': ', 1)}\n\n```\n" + "\n".join(line.strip() for line in usage.split("\n")) + "\n```\n")
    closing = program.overview.split("\n\n")[-1]
    return "\n".join([*parts, "```", closing, "```\n"])


PAGES = {"options.md": options_page, "commands.md": commands_page}

if __name__ == "__main__":
    program = Program(sys.argv[1])
    for name, page in PAGES.items():
        with open(os.path.join(ROOT, "docs", name), "w") as out:
            out.write(page(program))
