#!/usr/bin/env python3
"""Completions of a shell and manual pages, from what `ucas --help` and `ucas COMMAND --help all` say.
   tools/make_manual.py build build/share     # share/bash-completion/completions/ucas, share/fish/.., share/man/man1/*.1
zsh reads bash's: autoload -U bashcompinit && bashcompinit && source .../completions/ucas"""
import os
import re
import sys

from make_options import Program

EXITS = """0 done, 1 differences found, 2 bad input, 70 numeric or internal failure, 74 write failed,
75 interrupted and resumable, 78 no sandbox."""


class Manual(Program):
    def __init__(self, build):
        super().__init__(build)
        self.names = [row.split()[0] for row in self.says("config").split("\n")]
        self.version = self.says("--version").split()[1]

    def completed(self, command):
        """(key, the words that it takes, help) of each option."""
        found = {}
        for key, kind, text in self.options(command):
            words = re.sub(r" \[.*\]$", "", text).split("; ")[-1].split(" | ") if kind == "NAME" else ["true", "false"] * (kind == "BOOL")
            found[key] = (words if len(words) > 1 else [], text)
        if command in ("train", "plan", "explain", "run"):
            for key in ("data", "val", "method", "preset"):
                found.setdefault(key, ([], ""))
        return found


def bash(program):
    cases, options = [], []
    for command in program.commands:
        rows = program.completed(command)
        options.append(f"    {command}) words='{' '.join('--' + key for key in [*rows, 'help'])}' ;;")
        cases += [f"    '{command} --{key}') words='{' '.join(words)}' ;;" for key, (words, _) in rows.items() if words]
    lines = "\n".join
    return f"""# Completion of ucas {program.version} for bash.
_ucas() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{' '.join(program.commands)} help' -- "$word"))
    return
  fi
  case "$command $before" in
{lines(cases)}
  esac
  if [ -z "$words" ] && [ "${{word:0:1}}" = "-" ]; then case "$command" in
{lines(options)}
  esac; fi
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  case "$command" in
    train|plan|explain|config|run) words='{' '.join(program.names)}' ;;
    help) words='{' '.join(program.commands)}' ;;
  esac
  compopt -o filenames 2> /dev/null
  local IFS=$'\\n'
  COMPREPLY=($(IFS=' '; compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
}}
complete -F _ucas ucas
"""


def fish(program):
    quoted = lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    lines = [f"# Completion of ucas {program.version} for fish."]
    for command in program.commands:
        here = f"complete -c ucas -n '__fish_seen_subcommand_from {command}'"
        lines.append(f"complete -c ucas -n __fish_use_subcommand -f -a {command}")
        for key, (words, text) in program.completed(command).items():
            lines.append(f"{here} -l {key}" + (f" -r -f -a {quoted(' '.join(words))}" if words else "") + f" -d {quoted(text)}")
    return "\n".join(lines) + "\n"


def roff(text):
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.M)


def manual(program, name, page):
    head, text = page.split("\n\n", 1)
    return (f'.TH {name.upper()} 1 "" "ucas {program.version}" "User Commands"\n.SH NAME\n{roff(name)} \\- {roff(head.split(" - ")[1].splitlines()[0])}\n'
            f".SH DESCRIPTION\n.nf\n{roff(text)}\n.fi\n.SH EXIT STATUS\n{EXITS}\n")


if __name__ == "__main__":
    program, into = Manual(sys.argv[1]), sys.argv[2]
    files = {"bash-completion/completions/ucas": bash(program), "fish/vendor_completions.d/ucas.fish": fish(program),
             "man/man1/ucas.1": manual(program, "ucas", program.overview)}
    files |= {f"man/man1/ucas-{command}.1": manual(program, f"ucas-{command}", page) for command, page in program.pages.items()}
    for name, text in files.items():
        path = os.path.join(into, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)
