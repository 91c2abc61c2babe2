"""docs/tutorial.md, as somebody follows it who sees only that: every block in order, in an empty folder."""
import json
import os
import re
import subprocess

from support import PATIENCE, SCRATCH, UCAS, check, fail

page = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "tutorial.md")).read()
blocks = re.findall(r"^```(sh|python file=(\S+))\n(.*?)^```$", page, re.M | re.S)
check(len(blocks) >= 8, f"{len(blocks)} blocks")
# The method of the page is the one that tests/add_method builds and asks.
example = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "add_method", "example.cpp")).read()
method = re.findall(r"^```cpp\n(.*?)^```$", page, re.M | re.S)
check(len(method) == 1 and method[0].strip() in example, "the page's method is that of tests/add_method")
environment = {**os.environ, "PATH": os.path.dirname(UCAS) + os.pathsep + os.environ["PATH"]}
printed = {}
for number, (kind, file, text) in enumerate(blocks):
    if file:
        with open(os.path.join(SCRATCH, file), "w") as out:
            out.write(text)
        continue
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=SCRATCH, env=environment, capture_output=True,
                          text=True, timeout=300 * PATIENCE)
    if done.returncode != 0:
        fail(f"block {number}: exit {done.returncode}\n{text}\n{done.stdout}{done.stderr}")
    printed[number] = done.stdout + done.stderr
    print(f"ok: block {number}: {text.splitlines()[0][:80]}")
everything = "\n".join(printed.values())
check("base: ok" in everything and "responses identical" in everything, "checked and replayed")
check("128 of 128 responses identical" in everything, "every response of the first step")


def last(run):
    with open(os.path.join(SCRATCH, "runs", run, "steps.jsonl")) as lines:
        return [json.loads(line) for line in lines][-1]


for run in ("grpo", "dapo", "short", "parts", "own"):
    check(last(run)["training/global_step"] == 12, f"{run} is trained")
# It learns: the model works chains out instead of guessing.
for run in ("grpo", "dapo", "own"):
    with open(os.path.join(SCRATCH, "runs", run, "steps.jsonl")) as lines:
        validated = [value for row in map(json.loads, lines) for key, value in row.items()
                     if key.startswith("val-core/") and key.endswith("/acc/mean@1")]
    check(validated[0] < 0.3 and validated[-1] > 0.6, f"{run} learns: {validated}")
check("  reward " in everything and "  acc " in everything, "reward and accuracy are said of runs of seconds")
check(last("short")["critic/score/mean"] != last("grpo")["critic/score/mean"], "the own reward is what is trained on")
check("rewards/format/mean" in last("parts"), "parts are logged apart")
check(os.path.exists(os.path.join(SCRATCH, "report.html")) and
      os.path.exists(os.path.join(SCRATCH, "grpo-model", "README.md")), "a report and a model card")
