"""docs/options.md and docs/commands.md are what the program says; completions and manual pages are made of the same."""
import os
import subprocess
import sys

from support import SCRATCH, check, clean, path

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
from make_options import PAGES, Program  # noqa: E402

program = Program(sys.argv[1])
for name, page in PAGES.items():
    with open(os.path.join(ROOT, "docs", name)) as kept:
        check(kept.read() == page(program), f"docs/{name} is as tools/make_options.py makes it (if not: tools/make_options.py build)")
for command, page in program.pages.items():
    wide = [line for line in page.split("\n") if len(line) > 100]
    check(not wide, f"ucas {command} --help has at most 100 columns: {wide[:1]}")

subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tools", "make_manual.py"), sys.argv[1], path("share")], check=True)
COMPLETE = """. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _ucas; printf '%s\\n' "${COMPREPLY[@]}" """


def completed(*words):
    script = path("share", "bash-completion", "completions", "ucas")
    return subprocess.run(["bash", "-c", COMPLETE, "-", script, *words], capture_output=True, text=True, check=True, cwd=SCRATCH).stdout.split()


check(completed("ucas", "exp") == ["explain", "export"], "commands are completed")
check(completed("ucas", "train", "--dtype", "") == ["f32", "bf16", "auto"], "the words of an option")
check(completed("ucas", "train", "--optimizer.w") == ["--optimizer.weight_decay", "--optimizer.warmup_steps", "--optimizer.warmup_from_zero"], "options")
check("dapo-tiny" in completed("ucas", "explain", "dapo-t"), "configs")
with open(path("share", "man", "man1", "ucas-train.1")) as file:
    check(file.read().startswith('.TH UCAS-TRAIN 1 "" "ucas '), "a manual page a command")
clean()
