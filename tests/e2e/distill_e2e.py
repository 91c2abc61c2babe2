"""On-policy distillation: the policy comes to draw as its teacher does, without a right answer in sight."""
import json
import os
import shutil

from support import check, path, rows, small_task, ucas

STEPS = 30
small_task()  # `base`: the student
ucas("sft", "--model", path("base"), "--data", path("task", "sft_worked.jsonl"), "--steps", 60, "--batch_size", 64,
     "--optimizer.lr", "3e-3", "--out", path("teacher"))
unlabelled = path("unlabelled.jsonl")
with open(path("task", "train.jsonl")) as lines, open(unlabelled, "w") as out:
    for line in lines:
        out.write(json.dumps({"problem": json.loads(line)["problem"]}) + "\n")


def train(run, teacher, *more, expect=0):
    return ucas("train", "distill-tiny", "--model", path("base"), "--data", unlabelled, "--method.teacher", teacher, "--out",
                path(run), "--train.steps", STEPS, "--train.test_freq", 0, "--optimizer.lr", "1e-3", *more, expect=expect)


train("run", path("teacher"), "--train.stored_signals", STEPS)
made = [row["distill/reverse_kl"] for row in rows(path("run"))]
first, last = sum(made[:3]) / 3, sum(made[-3:]) / 3
check(first > 0.02 and last < first / 2, f"the reverse KL to the teacher falls from {first:.4f} to {last:.4f} nats a token")

# The policy that is its own teacher has no gap until it moves, and then the gap is pulled closed.
train("self", path("base"), "--train.steps", 1)
check(abs(rows(path("self"))[-1]["distill/reverse_kl"]) < 1e-6, "its own teacher: no gap")

# What a stored step holds is enough for other weights of the same method.
done = ucas("advantages", path("run", "signals", f"step-{STEPS:07d}.jsonl"), "--method.kl_weight", 0.5, "--show", 0)
check("stored advantages come out again, bit for bit" in done.stdout, "a stored step has the teacher's log-probs")

# A teacher of other tokens is refused before anything is generated.
foreign = path("foreign")
shutil.copytree(path("teacher"), foreign)
with open(os.path.join(foreign, "tokenizer.json")) as file:
    tokenizer = json.load(file)
vocabulary = tokenizer["model"]["vocab"]
words = sorted(vocabulary, key=vocabulary.get)
vocabulary[words[0]], vocabulary[words[1]] = vocabulary[words[1]], vocabulary[words[0]]
with open(os.path.join(foreign, "tokenizer.json"), "w") as file:
    json.dump(tokenizer, file)
refused = train("refused", foreign, expect=2)
check("method.teacher = " in refused.stderr and "the teacher must read the policy's tokens" in refused.stderr,
      "another tokenizer is refused")
