"""`ucas demo --model`: a small model that was taught the form of the answers is trained on sums, evaluated beside its base with room for
long answers, and the same command finds all of it done. A model that solves nothing is refused before anything trains."""
import json
import os
import subprocess
import sys

from support import HERE, SCRATCH, check, path, ucas

CHARACTERS = " ,?,.,+,-,=,[,],:".split(",") + list("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
CHAT = ("{% for message in messages %}[{{ message.role[0] }}:{{ message.content }}]{% endfor %}"
        "{% if add_generation_prompt %}[a:{% endif %}")


def rows(file):
    with open(file) as lines:
        return [json.loads(line) for line in lines]


def checkpoint(name):
    subprocess.run([sys.executable, os.path.join(HERE, "..", "support", "make_checkpoint.py"), path(name), "--words",
                    ",".join(CHARACTERS), "--hidden", "64", "--layers", "2", "--heads", "4", "--kv-heads", "2",
                    "--intermediate", "128", "--positions", "1024"], check=True)
    with open(path(name, "chat_template.jinja"), "w") as file:
        file.write(CHAT)


ucas("make-task", "--task", "sums", "--out", path("task"), "--seed", 5, "--count_train", 2000)
checkpoint("raw")
with open(path("demonstrations.jsonl"), "w") as file:
    for row in rows(path("task", "train.jsonl")):
        file.write(json.dumps({"prompt": f"[u:{row['problem']}][a:", "response": f"{row['answer']}."}) + "\n")
ucas("sft", "--model", path("raw"), "--data", path("demonstrations.jsonl"), "--steps", 60, "--batch_size", 64,
     "--optimizer.lr", "5e-3", "--out", path("taught"))
with open(path("taught", "chat_template.jinja"), "w") as file:
    file.write(CHAT)

WORDS = ["demo", "--model", path("taught"), "--task", "sums", "--out", path("runs"), "--shots", 0, "--max_tokens", 8,
         "--steps", 2, "--test_problems", 20, "--test_samples", 4,
         "--dtype", "f32", "--threads", 1, "--progress", "none"]
done = ucas(*WORDS)
check("samples to training problems" in done.stderr and "groups of 8 hold right and wrong ones" in done.stderr,
      "the base's rate is said before anything trains")
table = done.stdout
for row in ("base ", "base, 256 tokens", "DAPO", "UCAS", "greedy %", "pass@4 %"):
    check(row in table, f"the table has {row.strip()}")
check("base, 256 tokens" in "".join(line for line in table.splitlines() if "pass@1" in line),
      "what is trained is compared with the base that has room, too")
check(os.path.getsize(path("runs", "report.html")) > 10000, "a report")
check("from_pretrained" in table, "how others load it")
tests, trained_on = rows(path("runs", "task", "test.jsonl")), rows(path("runs", "task", "train.jsonl"))
check(not {row["problem"] for row in tests} & {row["problem"] for row in trained_on}, "held-out problems")
evaluation = json.load(open(path("runs", "base-256-tokens", "eval", "test.json")))
check(evaluation["problems"] == 20, "the control is of the same problems")

again = ucas(*WORDS)
check(again.stderr.count("reusing") >= 3 and again.stdout.split("\ntook")[0] == table.split("\ntook")[0],
      "the same command finds it done and says the same")
check("other options" in ucas(*WORDS, "--difficulty", 2, expect=2).stderr, "other options want another place")

checkpoint("lost")
refused = ucas("demo", "--model", path("lost"), "--task", "sums", "--out", path("lost-runs"), "--shots", 0, "--max_tokens",
               4, "--progress", "none", "--threads", 1, expect=2)
check("nothing to learn from" in refused.stderr and not os.path.exists(path("lost-runs", "dapo-seed0")),
      "a model that solves nothing is not trained")
check("unknown key" in ucas("demo", "--task", "sums", expect=2).stderr, "a task in English needs a model")
check(os.path.isdir(SCRATCH), "done")
