"""The model writes Python and reads what it prints: training over outputs has one set of bits for sampler and trainer in f32 and bf16, for a run
that is killed and resumed, and for a replay; an evaluation takes the tool from the run and names it; what cannot go with it is refused."""
import json
import os
import re
import subprocess
import sys

from support import HERE, check, clean, environment_of_responses, path, resumes_and_replays, same_bits_over_inserts, ucas

STEPS = 3
WORDS = ["```", "python", "output", "\\boxed{", "\n", *map(chr, range(32, 127))]


def write(name, lines):
    with open(path(name), "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def read(*parts):
    with open(path(*parts)) as lines:
        return [json.loads(line) for line in lines]


def checkpoint(name, words):
    subprocess.run([sys.executable, os.path.join(HERE, "..", "support", "make_checkpoint.py"), path(name), "--words", json.dumps(words),
                    "--hidden", "64", "--layers", "2", "--heads", "4", "--kv-heads", "2", "--intermediate", "128"], check=True)


def answered(text, value):
    return f"```python\n{text}\n```\n```output\n{value}\n```\n\\boxed{{{value}}}"


problems = [(f"{a}{op}{b}", a + b if op == "+" else a * b) for op in "+*" for a in range(10) for b in range(10)]
write("train.jsonl", [{"problem": f"{text}=", "answer": str(value)} for text, value in problems])
write("test.jsonl", [{"problem": f"{text}=", "answer": str(value)} for text, value in problems[::25]])
write("demonstrations.jsonl", [{"prompt": f"{text}=", "response": answered(text, value)} for text, value in problems])
checkpoint("raw", WORDS)
ucas("sft", "--model", path("raw"), "--data", path("demonstrations.jsonl"), "--steps", 90, "--batch_size", 64, "--optimizer.lr", "5e-3",
     "--threads", 1, "--out", path("base"))


def words(run, *more, model="base"):
    return ["train", "grpo-tiny", "--model", path(model), "--data", path("train.jsonl"), "--val", path("test.jsonl"), "--out", path(run),
            "--rollout.environment", "python", "--rollout.max_turns", 3, "--rollout.tool_chars", 30, "--rollout.response_length", 90,
            "--rollout.n", 4, "--data.train_batch_size", 4, "--data.gen_batch_size", 4, "--update.mini_batch_size", 2, "--train.steps", STEPS,
            "--train.save_freq", 1, "--train.keep", 9, "--train.stored_signals", 1, "--train.test_freq", 3, "--threads", 1, *more]


same_bits_over_inserts(words)
outputs = right = 0
for step in range(1, STEPS + 1):
    for row in read("one", "rollouts", f"step-{step:07d}.jsonl"):
        said = row.get("inserts", [])
        code = re.search(r"```python\n([\d+*]+)\n```$", row["transcript"].split(said[0]["text"])[0]) if said else None
        outputs += len(said)
        if code and not re.search(r"0\d", code[1]) and re.fullmatch(r"\d+([+*]\d+)*", code[1]):
            check(said[0]["text"] == f"\n```output\n{eval(code[1])}\n```\n", f"{code[1]} is answered")
            right += 1
check(right > 10, f"{right} of {outputs} outputs were computed again")

resumes_and_replays(words("killed"), STEPS)

check(environment_of_responses("one", "test") == "python, state kept, 2 s, 30 characters", "the responses' file names the tool")
done = ucas("evaluate", path("one"), "--data", path("test.jsonl"), "--out", path("evaluated"), "--tool_state", "fresh", expect=2)
check("state kept" in done.stderr and "state fresh" in done.stderr, "another state is another evaluation")

check("servers know of no inserts" in ucas(*words("refused", "--rollout.servers", "http://127.0.0.1:1"), expect=2).stderr, "refused: servers")
checkpoint("mute", [word for word in WORDS if word != "q"])
check("cannot encode what it says" in ucas(*words("refused", model="mute"), expect=2).stderr, "refused: a tokenizer without a letter")
clean()
