"""Runs one .test file: commands with what they must print. Lines of a file:

    # a comment
    needs shared                  skipped where the shared data is not there ($SHARED)
    do mkdir x; cp a x            set-up by bash, must end with 0
    file NAME                     followed by lines "| text": a file in the scratch folder
    $ ucas train absent.toml      a command for bash, in the scratch folder; `ucas` is the one just built
                                  ("$TESTS", "$SHARED", "$PWD": in quotes, since these paths may hold blanks)
    exit 2                        its exit code, 0 if not said
    out> exact line               this line is on standard output, after the ones named before it
    out~ regex                    the same for a line that matches
    out! regex                    no line matches
    err> / err~                   the same for standard error; all its lines must be named when the exit code is not 0

A command that ends with 2 must leave the scratch folder as it was.
"""
import os
import re
import subprocess
import sys
import tempfile

SKIP = 77
HANG = 1700 * int(os.environ.get("UCAS_PATIENCE", "1"))  # seconds after which a command is one that hangs
HERE = os.path.dirname(os.path.realpath(__file__))


def parse(path):
    """The steps of the file: ("file", name, text), ("needs", what) or a command as a dict."""
    steps = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            if not line.strip() or line.startswith("#"):
                continue
            word, _, rest = line.partition(" ")
            last = steps[-1] if steps else None
            if word in ("file", "needs", "do"):
                steps.append({"do": word, "name": rest, "text": []})
            elif word == "|" and last and last["do"] == "file":
                last["text"].append(rest + "\n")
            elif word == "$":
                steps.append({"do": "run", "command": rest, "line": number, "exit": 0, "expect": []})
            elif word == "exit" and last and last["do"] == "run":
                last["exit"] = int(rest)
            elif word[:3] in ("out", "err") and word[3:] in (">", "~", "!") and last and last["do"] == "run":
                last["expect"].append((word[:3], word[3:], rest, number))
            else:
                sys.exit(f"{path}:{number}: not understood: {line}")
    return steps


def snapshot(folder):
    paths = [os.path.join(d, n) for d, _, names in os.walk(folder) for n in names if "lock" not in n]
    return {path: os.lstat(path).st_mtime_ns for path in paths}


def matches(mark, wanted, line):
    return line == wanted if mark == ">" else re.search(wanted, line) is not None


def check(step, done):
    """What went wrong with a command, as texts."""
    problems = []
    lines = {"out": done.stdout.split("\n"), "err": [line for line in done.stderr.split("\n") if line]}
    at = {"out": 0, "err": 0}
    if done.returncode != step["exit"]:
        problems.append(f"exit code {done.returncode}, expected {step['exit']}")
    for stream, mark, wanted, number in step["expect"]:
        if mark == "!":
            problems += [f"line {number}: {stream} has {line!r}" for line in lines[stream] if re.search(wanted, line)]
            continue
        rest = lines[stream][at[stream]:]
        found = next((i for i, line in enumerate(rest) if matches(mark, wanted, line)), None)
        if found is None:
            problems.append(f"line {number}: {stream} lacks {wanted!r}")
        else:
            at[stream] += found + 1
    if step["exit"] != 0:
        named = [(mark, wanted) for stream, mark, wanted, _ in step["expect"] if stream == "err" and mark != "!"]
        for line in lines["err"]:
            if not any(matches(mark, wanted, line) for mark, wanted in named):
                problems.append(f"unexpected on standard error: {line!r}")
    return problems


def main():
    binary, test = os.path.abspath(sys.argv[1]), sys.argv[2]
    shared = os.environ.get("UCAS_SHARED_DATA") or os.path.join(HERE, "../../../shared/data")
    environment = dict(os.environ, PATH=os.path.dirname(binary) + ":" + os.environ["PATH"], NO_TTY="1", LC_ALL="C.UTF-8", OMP_WAIT_POLICY="passive",
                       TESTS=os.path.dirname(HERE), SHARED=os.path.realpath(shared))
    commands = failures = 0
    with tempfile.TemporaryDirectory(prefix="ucas-cli-") as scratch:
        for step in parse(test):
            if step["do"] == "needs":
                if step["name"] != "shared" or not os.path.isdir(shared):
                    print(f"needs {step['name']}, which is not here")
                    sys.exit(SKIP)
            elif step["do"] == "file":
                path = os.path.join(scratch, step["name"])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write("".join(step["text"]))
            elif step["do"] == "do":
                subprocess.run(["bash", "-c", step["name"]], cwd=scratch, env=environment, check=True, timeout=HANG)
            else:
                commands += 1
                before = snapshot(scratch)
                done = subprocess.run(["bash", "-c", step["command"]], cwd=scratch, env=environment, timeout=HANG,
                                      capture_output=True, text=True, errors="backslashreplace",
                                      stdin=subprocess.DEVNULL)
                problems = check(step, done)
                if done.returncode == 2 and snapshot(scratch) != before:
                    problems.append(f"wrote into the folder although it failed: {snapshot(scratch).keys() ^ before.keys()}")
                if problems:
                    failures += 1
                    print(f"{test}:{step['line']}: $ {step['command']}")
                    print("".join(f"    {problem}\n" for problem in problems), end="")
                    print("".join(f"    out| {line}\n" for line in done.stdout.split("\n")[:40] if line), end="")
                    print("".join(f"    err| {line}\n" for line in done.stderr.split("\n")[:40] if line), end="")
    print(f"{commands} commands, {failures} failures")
    sys.exit(1 if failures or not commands else 0)


main()
