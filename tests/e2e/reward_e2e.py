"""A reward of 20 lines of Python trains what the verifier trains, bit for bit; whatever goes wrong in it pays nothing."""
import json
import os
import sys
import time

from support import SCRATCH, check, path, rows, same_bytes, small_task, train_words, ucas

STEPS = 4
small_task()

REWARD = r'''
import json, re, sys

def number(text):
    try:
        return int(text.strip())
    except ValueError:
        return None

for line in sys.stdin:
    asked = json.loads(line)
    boxes = re.findall(r"\\boxed\{([^{}]*)\}", asked["response"])
    said = number(boxes[-1]) if boxes else None
    right = said is not None and said in [number(gold) for gold in asked["answer"]]
    print(json.dumps({"id": asked["id"], "score": 1.0 if right else 0.0}), flush=True)
'''


def script(name, text):
    file = os.path.join(SCRATCH, name)
    with open(file, "w") as out:
        out.write(text)
    return f"{sys.executable} {file}"


def train(run, *more, expect=0):
    return ucas(*train_words(path(run), "--train.steps", STEPS, "--train.stored_signals", 2, *more), expect=expect)


train("verifier")
train("external", "--reward.command", script("reward.py", REWARD))
last = os.path.join("checkpoints", f"step-{STEPS:07d}")
check(same_bytes(os.path.join(path("verifier"), last, "model.safetensors"),
                 os.path.join(path("external"), last, "model.safetensors")), "the weights are the same")
check(rows(path("verifier")) == rows(path("external")), "steps.jsonl is the same")

# Problems without a right answer, a reward of its own scale.
unlabelled = path("unlabelled.jsonl")
with open(os.path.join(path("task"), "train.jsonl")) as lines, open(unlabelled, "w") as out:
    for line in lines:
        row = json.loads(line)
        out.write(json.dumps({"problem": row["problem"]}) + "\n")
LENGTH = "import json, sys\nfor line in sys.stdin:\n    a = json.loads(line)\n" \
         "    print(json.dumps({'id': a['id'], 'score': a['tokens'] / 10, 'right': a['finished']}), flush=True)\n"
train("length", "--data.files", unlabelled, "--reward.command", script("length.py", LENGTH))
made = [row for row in rows(path("length")) if row["training/global_step"] > 0]
check(all(abs(row["critic/score/mean"] - row["response_length/mean"] / 10) < 1e-5 for row in made),
      "a score of one's own is what is trained on")

BROKEN = {
    "ends": ("import sys\nsys.stdin.readline()\nsys.exit(3)\n", "ended with exit code 3"),
    "garbage": ("import sys\nfor line in sys.stdin: print('hello', flush=True)\n", "reply 1"),
    "nan": ("import sys, json\nfor line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'score': 'x'}), "
            "flush=True)\n", '"score"'),
    "twice": ("import sys\nfor line in sys.stdin: print('{\"id\": 0, \"score\": 1}', flush=True)\n", "answered before"),
    "silent": ("import time\ntime.sleep(100)\n", "silent for more than"),
    "talks": ("import sys, json\nprint('{\"id\": 0, \"score\": 1}', flush=True)\nimport time\ntime.sleep(0.5)\n"
              "for line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'score': 1}), flush=True)\n",
              "reward.command"),
}
for name, (text, words) in BROKEN.items():
    began = time.time()
    done = train(f"broken-{name}", "--reward.command", script(f"{name}.py", text), "--reward.command_seconds", 2, expect=74)
    check(words in done.stderr and "error[reward]" in done.stderr, f"{name}: {done.stderr.strip().splitlines()[-1][:150]}")
    check(time.time() - began < 20, f"{name}: at once")
    check(not any(row["training/global_step"] > 0 for row in rows(path(f"broken-{name}"))), f"{name}: nothing is scored")
done = train("missing", "--reward.command", "/nonexistent/reward", expect=74)
check("exit code 127" in done.stderr, "a command that is not there is named")
