"""A calculator answers the model: training over inserts has one set of bits for sampler and trainer, for one that is killed and gone on with,
and for a replay; files, evaluation and report show what was said; what cannot go with it is refused."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from fractions import Fraction

from support import HERE, check, clean, end, fail, finish, path, rows, same_bytes, start_ranks, stopped_at, ucas

STEPS = 4
WORDS = ["<calc>", "</calc>", "<result>", "</result>", "\\boxed{", "}", "=", "+", "-", "*", "/", ":", " ",
         *"0123456789abcdefghijklmnopqrstuvwxyz"]


def checkpoint(name, words):
    subprocess.run([sys.executable, os.path.join(HERE, "..", "support", "make_checkpoint.py"), path(name), "--words", ",".join(words),
                    "--hidden", "64", "--layers", "2", "--heads", "4", "--kv-heads", "2", "--intermediate", "128"], check=True)


def write(name, lines):
    with open(path(name), "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def read(*parts):
    with open(path(*parts)) as lines:
        return [json.loads(line) for line in lines]


# Every pair of numbers below ten and an operator; a response calls the calculator once, and boxes what it says.
problems = [(f"{a}{op}{b}", a + b if op == "+" else a - b if op == "-" else a * b) for op in "+-*" for a in range(10) for b in range(10)]
write("train.jsonl", [{"problem": f"{text}=", "answer": str(value)} for text, value in problems])
write("test.jsonl", [{"problem": f"{text}=", "answer": str(value)} for text, value in problems[::15]])
write("demonstrations.jsonl", [{"prompt": f"{text}=", "response": f"<calc>{text}</calc><result>{value}</result>\\boxed{{{value}}}"}
                               for text, value in problems])
checkpoint("raw", WORDS)
ucas("sft", "--model", path("raw"), "--data", path("demonstrations.jsonl"), "--steps", 90, "--batch_size", 64, "--optimizer.lr", "5e-3",
     "--threads", 1, "--out", path("base"))


def words(run, *more, model="base"):
    return ["train", "grpo-tiny", "--model", path(model), "--data", path("train.jsonl"), "--val", path("test.jsonl"), "--out", path(run),
            "--rollout.environment", "calculator", "--rollout.max_turns", 3, "--rollout.response_length", 40, "--rollout.n", 8,
            "--data.train_batch_size", 6, "--data.gen_batch_size", 8, "--update.mini_batch_size", 3, "--train.steps", STEPS,
            "--train.save_freq", 1, "--train.keep", 9, "--train.stored_signals", 1, "--train.test_freq", 2, "--threads", 1, *more]


def expect(condition, message):
    """check() of many, that says nothing of those that hold."""
    if not condition:
        fail(message)


def same_run(a, b, name):
    for step in range(1, STEPS + 1):
        files = [os.path.join("checkpoints", f"step-{step:07d}", file) for file in ("model.safetensors", "state/optimizer.safetensors")]
        files += [os.path.join(folder, f"step-{step:07d}.jsonl") for folder in ("rollouts", "signals")]
        for at in files:
            expect(same_bytes(path(a, at), path(b, at)), f"{name}: {at} differs")
    check(rows(path(a)) == rows(path(b)), f"{name}: steps.jsonl is the same")


NUMBER = r"(\d|[1-9]\d{1,8})"


def result_of(turn):
    """What the calculator says to a turn, by other arithmetic than its own; None where that says nothing."""
    called = re.search(r".*<calc>(.*?)</calc>", turn, re.S)
    if called is None or not re.fullmatch(f"{NUMBER}([-+*/]{NUMBER})*", called[1]):
        return None
    try:
        return str(eval(re.sub(r"(\d+)", r"Fraction(\1)", called[1]), {"Fraction": Fraction}))
    except ZeroDivisionError:
        return "error: divides by zero"


def woven(row):
    """The turns of a response in signals/, and its transcript."""
    pieces = row["piece"][:-1] if row["finished"] else row["piece"]
    turns, begin = [], 0
    for insert in row.get("inserts", []):
        turns.append("".join(pieces[begin:insert["at"]]))
        begin = insert["at"]
    last = "".join(pieces[begin:])
    return turns, "".join(turn + insert["text"] for turn, insert in zip(turns, row.get("inserts", []))) + last


ucas(*words("one"))
steps = [row for row in rows(path("one")) if row["training/global_step"] > 0]
check(all(row["rollout/logprob_diff_max"] == 0 for row in steps), "sampler and trainer have the same bits over inserts")
check(all(row["rollout/turns/mean"] > 1 and row["rollout/inserted_tokens/mean"] > 1 for row in steps), "turns and inserted tokens are counted")
checked = inserted = 0
for step in range(1, STEPS + 1):
    stored = {}
    for row in read("one", "signals", f"step-{step:07d}.jsonl"):
        problem = row.get("problem", "") if "prompt" in row else problem if "token" in row else ""
        if "token" not in row:
            continue
        turns, transcript = woven(row)
        stored[problem, row["sample"]] = turns, transcript, row
        expect(len(turns) <= 2 and len(row["token"]) == len(row["entropy"]) == len(row["advantage"]), "numbers are of the model's tokens")
        for turn, insert in zip(turns, row.get("inserts", [])):
            inserted += 1
            expect(turn.endswith("</calc>") and insert["text"].startswith("<result>"), f"an insert follows a call: {turn!r}")
            expected = result_of(turn)
            if expected is not None and "too large" not in insert["text"]:
                expect(insert["text"] == f"<result>{expected}</result>", f"{turn} gives {insert['text']}")
                checked += 1
    for row in read("one", "rollouts", f"step-{step:07d}.jsonl"):
        turns, transcript, kept = stored[row["problem"], row["sample"]]
        expect(row.get("inserts", []) == kept.get("inserts", []), "rollouts/ has the same inserts")
        expect(row.get("transcript", row["response"]) == transcript, f"and the whole of it: {transcript}")
check(checked > 10, f"{checked} of {inserted} results were computed again")

# Steps that are stored have the trainer's log-probs of all tokens. Those of the sampler give the same training.
ucas(*words("sampler", "--train.stored_signals", 0))
check(all(0 < row["rollout/checked_share"] < 1 for row in [row for row in rows(path("sampler")) if row["training/global_step"] > 0]), "the sampler's log-probs are taken where they are checked")
for step in range(1, STEPS + 1):
    at = os.path.join("checkpoints", f"step-{step:07d}", "model.safetensors")
    check(same_bytes(path("one", at), path("sampler", at)), f"the weights of step {step} are the same")

# Killed after step 2 and gone on with.
process = stopped_at(words("one-killed"), "step:2")
end(process, signal.SIGKILL)
ucas("train", "--resume", path("one-killed"))
same_run("one", "one-killed", "killed and gone on with")

for step in (1, 3):
    count = sum("token" in row for row in read("one", "signals", f"step-{step:07d}.jsonl"))
    done = ucas("replay", path("one"), "--step", step)
    check(f"{count} of {count} responses identical" in done.stdout, f"all {count} responses of step {step} are replayed")

# The evaluation takes the environment from the run.
done = ucas("evaluate", path("one"), "--data", path("test.jsonl"), "--samples", 2, "--out", path("evaluated"), "--threads", 1)
check("--environment calculator" in done.stderr and "--max_turns 3" in done.stderr, "it says so")
[place] = os.listdir(path("evaluated"))
head, *outputs = read("evaluated", place, "eval", "test.outputs.jsonl")
check((head["environment"], head["max_turns"]) == ("calculator", 3), "the responses' file names it")
answered = [row for row in outputs if "inserts" in row]
check(len(answered) > 10, f"{len(answered)} of {len(outputs)} responses were answered")
ucas("verify", path("evaluated", place))
done = ucas("evaluate", path("one"), "--data", path("test.jsonl"), "--samples", 2, "--out", path("evaluated"), "--max_turns", 2, expect=2)
check("environment calculator for 3 turns, this one calculator for 2 turns" in done.stderr, "other turns are another evaluation")

ucas("report", path("one"), "--out", path("report.html"))
with open(path("report.html")) as file:
    page = file.read()
check('"inserts":[[' in page and "data-said" in page, "the explorer shows inserts apart from the model's tokens")

# What cannot go with it.
done = ucas(*words("refused", "--rollout.servers", "http://127.0.0.1:1"), expect=2)
check(done.stderr.count("error[") == 1 and "servers know of no inserts" in done.stderr, "refused: servers")
codes, errors = finish(start_ranks(2, words("refused")))
check(codes == [2, 2] and "start one process" in errors[0], f"refused under two ranks: {errors[0][-300:]}")
checkpoint("mute", [word for word in WORDS if word not in "q"])
done = ucas(*words("refused", model="mute"), expect=2)
check("cannot encode what it says" in done.stderr, f"refused: a tokenizer without the letters: {done.stderr[-300:]}")
check(not os.path.exists(path("refused", "steps.jsonl")), "nothing was trained")
shutil.rmtree(path("refused"), ignore_errors=True)
clean()
