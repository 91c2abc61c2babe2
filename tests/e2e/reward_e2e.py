"""A reward of 20 lines of Python trains what the verifier trains, bit for bit; whatever goes wrong in it pays nothing.
With --short the first of it."""
import json
import os
import re
import shlex
import subprocess
import sys

from support import HANG, SCRATCH, UCAS, check, clean, path, rows, same_bytes, small_task, train_words, ucas

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
    return f"{shlex.quote(sys.executable)} {shlex.quote(file)}"


def train(run, *more, expect=0):
    return ucas(*train_words(path(run), "--train.steps", STEPS, "--train.stored_signals", 2, *more), expect=expect)


train("verifier")
train("external", "--reward.command", script("reward.py", REWARD))
last = os.path.join("checkpoints", f"step-{STEPS:07d}")
check(same_bytes(os.path.join(path("verifier"), last, "model.safetensors"),
                 os.path.join(path("external"), last, "model.safetensors")), "the weights are the same")
VALIDATED = "val-core/dev/reward/mean@1"
external = rows(path("external"))
scores = [(row[VALIDATED], row["val-core/dev/acc/mean@1"]) for row in external if VALIDATED in row]
check(len(scores) == 2 and all(score == right for score, right in scores), "validation has the mean of the reward's scores")
for row in external:
    row.pop(VALIDATED, None)
check(rows(path("verifier")) == external, "steps.jsonl is the same but for it")

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
    "garbage": ("import sys\nfor line in sys.stdin: print('hello', flush=True)\n", "standard output is for replies alone: print everything else to standard error"),
    "word": ("import sys, json\nfor line in sys.stdin: print('NaN', flush=True)\n", "it wrote \"NaN\""),
    "not-a-number": ("import sys, json\nfor line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], "
                     "'score': float('nan')}), flush=True)\n", "NaN and infinities are no scores"),
    "waits": ("import sys, json\nfor a in [json.loads(line) for line in sys.stdin]: "
              "print(json.dumps({'id': a['id'], 'score': 1}), flush=True)\n", "does it wait for the end of its input?"),
    "nan": ("import sys, json\nfor line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'score': 'x'}), "
            "flush=True)\n", '"score"'),
    "twice": ("import sys\nfor line in sys.stdin: print('{\"id\": 0, \"score\": 1}', flush=True)\n", "answered before"),
    "silent": ("import time\ntime.sleep(100000)\n", "no reply for more than"),
    "talks": ("import sys, json\nprint('{\"id\": 0, \"score\": 1}', flush=True)\nimport time\ntime.sleep(0.5)\n"
              "for line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'score': 1}), flush=True)\n",
              "reward.command"),
}
for name, (text, words) in BROKEN.items():
    seconds = 2 if name in ("silent", "waits") else 10000  # what else is wrong is told at once
    done = train(f"broken-{name}", "--reward.command", script(f"{name}.py", text), "--reward.command_seconds", seconds, expect=74)
    check(words in done.stderr and "error[reward]" in done.stderr, f"{name}: {done.stderr.strip().splitlines()[-1][:150]}")
    logged = os.path.exists(os.path.join(path(f"broken-{name}"), "steps.jsonl"))
    check(not logged or not rows(path(f"broken-{name}")), f"{name}: nothing is scored")
done = train("missing", "--reward.command", "/nonexistent/reward", expect=74)
check("exit code 127" in done.stderr, "a command that is not there is named")

if "--short" in sys.argv:
    clean()
    sys.exit(0)

# A score of several parts: each is logged apart, and their weighted sum is what is trained on.
train("parts", "--reward.weights", "answer=1,format=0.5,length=0.25", "--reward.format", r".*\\boxed\{\d+\}\s*")
made = [row for row in rows(path("parts")) if row["training/global_step"] > 0]
means = [sum(weight * row[f"rewards/{part}/mean"] for part, weight in (("answer", 1), ("format", 0.5), ("length", 0.25)))
         for row in made]
check(all(abs(row["critic/score/mean"] - mean) < 1e-5 for row, mean in zip(made, means)), "the parts add up to the score")
check(any(row["rewards/length/std"] > 0 for row in made) and any(row["rewards/format/mean"] > 0 for row in made),
      "each part says something")
check("rewards/answer/mean" not in rows(path("verifier"))[-1], "a score of one part is not split")

# Responses that are cut are left out of the loss, and their rewards still count in their groups.
FORM = ("--reward.weights", "format=1", "--reward.format", r".*\\boxed\{\d+\}\s*")
for truncated in ("grade", "mask"):
    train(truncated, "--rollout.response_length", 4, "--reward.truncated", truncated, *FORM)
graded, masked = rows(path("grade"))[1], rows(path("mask"))[1]
check(0.1 < graded["train/truncated_share"] < 0.9, "some responses are cut")
check(graded["critic/advantages/max"] == masked["critic/advantages/max"], "the advantages are the same")
check(graded["actor/grad_norm"] != masked["actor/grad_norm"], "the gradient is of the others alone")
train("all-cut", "--rollout.response_length", 1, "--reward.truncated", "mask", "--train.test_freq", 0)
check(all(row["train/updates"] == 0 for row in rows(path("all-cut")) if row["training/global_step"] > 0),
      "nothing is learnt where all are cut")

# A text ends a response at the token that completes it, and the response is graded, trained on and replayed with it.
train("stops", "--rollout.stop", r"\boxed{1", "--train.stored_prompts", 6, "--train.stored_responses", 8)
ended = [json.loads(line) for line in open(os.path.join(path("stops"), "rollouts", "step-0000001.jsonl"))]
with_text = [row["response"] for row in ended if r"\boxed{1" in row["response"]]
check(len(with_text) > 3 and all("}" not in text for text in with_text), f"{len(with_text)} of {len(ended)} end at the text")
check(all(row["finished"] for row in ended if r"\boxed{1" in row["response"]), "that is an end, not a cut")
check(all(row["rollout/logprob_diff_max"] == 0 for row in rows(path("stops")) if row["training/global_step"] > 0),
      "sampler and trainer agree on it")
check("responses identical" in ucas("replay", path("stops"), "--step", 1).stdout, "and so does a replay")

# A grader of its own for a data source, and what is not there is refused before anything is loaded.
train("numeric", "--reward.graders", "train=numeric", "--reward.tolerance", 0)
check(rows(path("numeric"))[1]["train/accuracy"] == rows(path("verifier"))[1]["train/accuracy"],
      "whole numbers within a tolerance of 0 are the equal ones")
done = train("wrong", "--reward.graders", "train=maths", "--rollout.temprature", 1, "--reward.weights", "format=1",
             "--update.mini_batch_size", 100, expect=2)
check(len(done.stderr.strip().splitlines()) == 1 and "temperature" in done.stderr, "an unknown option first")
done = train("wrong", "--reward.graders", "train=maths", "--reward.weights", "format=1", "--update.mini_batch_size", 100,
             expect=2)
check([word for word in ("mini_batch_size", "SOURCE=GRADER", "reward.format is empty") if word not in done.stderr] == []
      and len(done.stderr.strip().splitlines()) == 3, "all that is wrong with a config is said at once")

# Programs: what a response says is run on tests, in the sandbox, while others are sampled. A response of
# two tokens, " b6", is then the body of `if True:`, and a name that a problem's prelude defines where its number is even.
if subprocess.run([UCAS, "doctor", "--sandbox"], capture_output=True).returncode == 0:
    programs = path("programs.jsonl")
    prelude = "\n".join(f"{letter}{digit} = 1" for letter in "abcdefghij" for digit in range(0, 60, 2)) + "\nif True:"
    with open(os.path.join(path("task"), "train.jsonl")) as lines, open(programs, "w") as out:
        for i, line in enumerate(lines):
            row = {"id": f"p{i}", "problem": json.loads(line)["problem"], "prelude": prelude,
                   "stdin": [{"input": "", "output": ""}, {"input": "", "output": "1" if i % 2 else ""}]}
            out.write(json.dumps(row) + "\n")
    more = ("--data.files", programs, "--data.val_files", programs, "--reward.grader", "code", "--reward.extract", "lenient", "--reward.partial", "true",
            "--train.test_freq", 0, "--train.stored_prompts", 6, "--train.stored_responses", 24, "--train.steps", 1, "--rollout.n", 24,
            "--rollout.response_length", 2, "--rollout.temperature", 2, "--reward.truncated", "grade")
    train("programs", *more)
    graded = [json.loads(line) for line in open(os.path.join(path("programs"), "rollouts", "step-0000001.jsonl"))]
    check(len(graded) == 144, "every program is graded")
    for row in graded:
        text, number = row["response"].strip(), int(row["problem"][1:])
        runs = row["response"][:1] == " " and text[0] in "abcdefghij" and text[1:].isdigit() and int(text[1:]) % 2 == 0
        expected = 0 if not runs else 0.5 if number % 2 else 1
        check(row["score"] == expected, f"{text!r} of {row['problem']}: {row['verdict']} {row['score']}, {row['reason']}")
    check(len({row["score"] for row in graded}) == 3, "some programs run, some on half of their tests, some not")
    done = train("sandbox", *more, "--reward.code.python", "/nonexistent/python3", expect=78)
    check("error[sandbox]" in done.stderr and not os.path.exists(os.path.join(path("sandbox"), "steps.jsonl")),
          "without a sandbox no step is made")
else:
    print("skipped: no sandbox on this machine")

# A reward that hangs: the watchdog says which phase, which command and which response owe something, and ends nothing.
# It goes on once the watchdog has spoken of it twice.
HANGS = """import json, os, sys, time
for n, line in enumerate(sys.stdin):
    a = json.loads(line)
    while n == 2 and sum("hangs.py" in said and ": 2 of" in said for said in open(os.environ["SAID"])) < 2:
        time.sleep(0.05)
    print(json.dumps({"id": a["id"], "score": 1.0}), flush=True)
"""
with open(path("said"), "w") as file:
    words = train_words(path("hangs"), "--train.steps", STEPS, "--reward.command", script("hangs.py", HANGS), "--train.watchdog", 0.5,
                        "--train.test_freq", 0)
    done = subprocess.run([UCAS, *map(str, words)], stdout=file, stderr=file, timeout=HANG, env={**os.environ, "SAID": path("said")})
with open(path("said")) as file:
    lines = file.read().splitlines()
check(done.returncode == 0, f"the run goes on to its end: {lines[-1]}")
said = [line for line in lines if line.startswith("watchdog") and "hangs.py" in line and ": 2 of" in line]
print(*said, sep="\n")
check(len(said) >= 2, "the watchdog says it, and again after twice the time")
check("step 1, grading" in said[0] and "waiting for reward.command" in said[0], "with the phase and who is waited for")
check(re.search(r": 2 of \d+ replies, the first without one: train/?-?\w*\d+, sample 2, ", said[0]), "and the responses that are owed")
check(rows(path("hangs"))[-1]["training/global_step"] == STEPS, "all steps are made")
done = train("quiet", "--train.watchdog", 100000)
check("watchdog" not in done.stderr, "a run that moves is not spoken of")
clean()
