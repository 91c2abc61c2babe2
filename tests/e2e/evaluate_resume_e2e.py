"""An evaluation that is killed half-way goes on and ends as the same bytes; slots change none; more samples leave the
first as they are, and pass@k where it was."""
import json
import os
import signal
import subprocess
import sys

from support import SCRATCH, check, end, path, same_bytes, small_task, stopped_at, ucas

FILES = ["two.outputs.jsonl", "two.jsonl", "two.json"]
HERE = os.path.dirname(os.path.realpath(__file__))


def write(name, text):
    with open(path(name), "w") as file:
        file.write(text)


def problems(name, first, count):
    write(name, "".join(json.dumps({"id": f"{first + i}", "problem": f"{i % 10}+{i // 10}?", "answer": i % 10 + i // 10})
                        + "\n" for i in range(count)))


subprocess.run([sys.executable, os.path.join(HERE, "..", "support", "make_checkpoint.py"), path("model"), "--words",
                "\\boxed{,},0,1,2,3,4,5,6,7,8,9,+,?", "--hidden", "64", "--layers", "2", "--heads", "4", "--kv-heads",
                "2", "--intermediate", "128"], check=True)
problems("sums.jsonl", 0, 40)
problems("more.jsonl", 0, 24)
write("two.toml", """name = "two"
benchmarks = ["sums", "more"]
template = "plain"
max_tokens = 96
samples = 6
[benchmark.sums]
path = "sums.jsonl"
[benchmark.more]
path = "more.jsonl"
max_tokens = 48
""")
RESPONSES = (40 + 24) * 7


def words(out, *more):
    return ["evaluate", path("model"), "--suite", path("two.toml"), "--data", SCRATCH, "--out", path(out), *more]


def lines(out):
    file = path(out, "model", "eval", FILES[0])
    if not os.path.exists(file):
        return 0
    with open(file, "rb") as data:
        return max(data.read().count(b"\n") - 1, 0)


def interrupted(out, writes, number, *more):
    code, errors = end(stopped_at(words(out, *more), f"write:{writes}"), number)
    return code, lines(out), errors


def same_files(a, b, what):
    for file in FILES:
        check(same_bytes(path(a, "model", "eval", file), path(b, "model", "eval", file)), f"{what}: {file}")


ucas(*words("whole"))
check(lines("whole") == RESPONSES, f"{RESPONSES} responses")

code, first, _ = interrupted("killed", 100, signal.SIGKILL, "--max_slots", 4)
check(code == -signal.SIGKILL and 50 < first < RESPONSES, f"killed after {first} responses")
code, second, errors = interrupted("killed", 100, signal.SIGTERM, "--max_slots", 4)
check(code == 75 and first < second < RESPONSES, f"went on and stopped when told to, after {second}")
check("the same command resumes it" in errors, "it says how to go on")
said = ucas(*words("killed")).stderr
check(f"found {second} of {RESPONSES} responses, going on with {RESPONSES - second}" in said, "it says what it found")
same_files("killed", "whole", "killed, stopped and resumed is as undisturbed")
ucas("verify", path("killed", "model"))
check(True, "and is graded again as it was")

ucas(*words("single", "--max_slots", 1, "--threads", 1))
same_files("single", "whole", "one slot is as many")

# A base that is right now and then.
small_task()


def sampled(n):
    ucas("evaluate", path("base"), "--data", path("task", "test.jsonl"), "--template", "plain", "--out", path("twice"),
         "--samples", n, "--max_tokens", 28, "--ks", "1,2,4,8,16")
    folder = path("twice", "base", "eval")
    with open(os.path.join(folder, "test.json")) as file:
        figures = json.load(file)
    with open(os.path.join(folder, "test.outputs.jsonl")) as file:
        rows = [json.loads(line) for line in file][1:]
    return {f["k"]: f for f in figures["pass@k"]}, rows


half, before = sampled(64)
full, after = sampled(128)
check([row for row in after if row["sample"] < 64] == before and len(after) == len(before) + 20 * 64,
      "the first 64 samples of 128 are those of 64")
for k in (1, 2, 4, 8, 16):
    inside = half[k]["low"] <= full[k]["value"] <= half[k]["high"] and full[k]["low"] <= half[k]["value"] <= full[k]["high"]
    check(inside, f"pass@{k}: {half[k]['value']:.3f} of 64, {full[k]['value']:.3f} of 128")
check(0 < half[1]["value"] < half[16]["value"] <= 1, "and it grows with k")
