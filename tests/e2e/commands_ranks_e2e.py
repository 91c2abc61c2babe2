"""`ucas sft`, `evaluate`, `generate` and `score` under several ranks: the files of one process. Of a fine-tuning by micro-batches, also where it was
stopped or killed under one number of ranks and goes on under another."""
import json
import os
import signal
import subprocess
import sys

from support import (HANG, HERE, UCAS, check, clean, finish, path, same_bytes, small_task, start_ranks, ucas)

small_task()
SFT = ["--model", path("base"), "--data", f"{path('task', 'sft_mixed.jsonl')},{path('task', 'sft_worked.jsonl')}", "--steps", "4,5",
       "--batch_size", 16, "--max_length", 200, "--max_tokens", 256, "--optimizer.lr", "1e-3", "--reduce", "micro"]
KINDS = {
    "f32": (),
    "gradients": ("--shard", "gradients"),
    "together": ("--dtype", "bf16", "--recompute", "block", "--optimizer.kind", "muon", "--threads", 1, "--shard", "gradients"),
    "lora": ("--lora.rank", 4),
    "one": ("--max_tokens", 65536),  # micro-batch an update: most ranks have none
}


def on_ranks(size, words, name, codes=None, **more):
    got, said = finish(start_ranks(size, words, **more))
    check(got == (codes or [0] * size), f"{name}: {size} ranks: {got} {said[0][-300:]}")
    check(all(text == "" for text in said[1:]), f"{name}: rank 0 alone speaks: {said[1:]}")
    return said


def same_files(a, b, but=()):
    names = sorted(os.listdir(path(a)))
    check(names == sorted(os.listdir(path(b))) and "model.safetensors" in names + ["model.safetensors" if "adapter_model.safetensors" in names else ""],
          f"{b}: the files of {a}")
    for name in names:
        if name not in but:
            check(same_bytes(path(a, name), path(b, name)), f"{b}: {name} is that of {a}")
    check(not os.path.exists(path(b) + ".run"), f"{b}: nothing is left beside it")


for kind, more in KINDS.items():
    for size in (1, 2, 3):
        on_ranks(size, ["sft", *SFT, *more, "--out", path(f"{kind}-{size}")], kind)
        same_files(f"{kind}-1", f"{kind}-{size}")
same_files("f32-1", "gradients-1", but=("sft.toml",))

# By sums the same but for the order of additions.
losses = []
for size in (1, 3):
    on_ranks(size, ["sft", *SFT, "--reduce", "sum", "--out", path(f"sum-{size}")], "by sums")
    losses.append([json.loads(line)["loss"] for line in open(path(f"sum-{size}", "sft.jsonl"))])
check(all(abs(a - b) < 1e-4 * (1 + a) for a, b in zip(*losses)), "by sums: the same losses but for rounding")

# Killed after some updates under two ranks, stopped under three, ended by one.
words = ["sft", *SFT, "--save_freq", 2, "--out", path("moved")]
processes = start_ranks(2, words, of_rank={0: {"env": {"UCAS_FAULT": "step:5:0:stop"}}}, UCAS_HEARTBEAT="0")
os.waitid(os.P_PID, processes[0].pid, os.WSTOPPED | os.WNOWAIT)
processes[1].kill()
processes[0].send_signal(signal.SIGCONT)
codes, said = finish(processes)
check(codes == [70, -9] and "another rank ended" in said[0], f"one is killed, and the other ends: {codes} {said[0][-300:]}")
processes = start_ranks(3, words, of_rank={0: {"env": {"UCAS_FAULT": "step:2:0:stop"}}}, UCAS_HEARTBEAT="0")
os.waitid(os.P_PID, processes[0].pid, os.WSTOPPED | os.WNOWAIT)
processes[2].send_signal(signal.SIGTERM)
processes[0].send_signal(signal.SIGCONT)
codes, said = finish(processes)
check(codes == [75, 75, 75] and "going on after update 4" in said[0] and "saved in" in said[0], f"a stop of one stops all, saved: {said}")
ucas(*words)
ucas("sft", *SFT, "--save_freq", 2, "--out", path("whole"))
same_files("whole", "moved")

# What is not the same on all is named; what is wrong on one is said once.
got, said = finish(start_ranks(2, ["sft", *SFT, "--out", path("bad")], of_rank={1: {"more": ("--seed", 9)}}))
check(got == [2, 2] and "seed = 0 at rank 0, 9 at rank 1" in said[0] and said[1] == "", f"another seed: {said}")
got, said = finish(start_ranks(2, ["sft", *SFT, "--out", path("f32-1")]))
check(got == [2, 2] and len(said[0].splitlines()) == 1 and said[1] == "", f"an output that is there: {said}")
check(not os.path.exists(path("bad")), "and nothing is written")

# Samples and scores.
GENERATE = ["generate", "--model", path("base"), "--template", "plain", "--data", path("task", "test.jsonl"), "--samples", 3, "--max_tokens", 28,
            "--temperature", 0.9]
for size in (1, 2, 3):
    on_ranks(size, [*GENERATE, "--out", path(f"samples-{size}.jsonl")], "generate")
    check(same_bytes(path("samples-1.jsonl"), path(f"samples-{size}.jsonl")), f"generate: {size} ranks write what one process does")
    on_ranks(size, [*GENERATE, "--stop", "4", "--out", path(f"stopped-{size}.jsonl")], "generate, a stop text")
    check(same_bytes(path("stopped-1.jsonl"), path(f"stopped-{size}.jsonl")), f"generate, a stop text: {size} ranks write the same")
    on_ranks(size, ["score", "--model", path("base"), path("samples-1.jsonl"), "--batch_tokens", 200, "--out", path(f"scores-{size}.jsonl")], "score")
    check(same_bytes(path("scores-1.jsonl"), path(f"scores-{size}.jsonl")), f"score: {size} ranks write what one process does")
check(not same_bytes(path("samples-1.jsonl"), path("stopped-1.jsonl")), "a stop text ends some")
rows = open(path("samples-1.jsonl")).readlines()
with open(path("fewer.jsonl"), "w") as file:
    file.writelines(rows[1:])
os.makedirs(path("there"))
os.rename(path("fewer.jsonl"), path("there", "samples-1.jsonl"))
got, said = finish(start_ranks(2, ["score", "--model", path("base"), "samples-1.jsonl", "--out", path("bad.jsonl")],
                               of_rank={0: {"cwd": path()}, 1: {"cwd": path("there")}}))
check(got == [2, 2] and "rows (hash) = " in said[0] and not os.path.exists(path("bad.jsonl")), f"other rows are refused: {said}")

# An evaluation: samples, choices by log-prob, and grading.
QUESTIONS = [{"id": str(i), "problem": f"{i} + {i % 5}", "choices": [str(i + i % 5 + j) for j in range(2 + i % 3)], "answer": "A"} for i in range(60)]
with open(path("choices.jsonl"), "w") as file:
    file.writelines(json.dumps(question) + "\n" for question in QUESTIONS)
subprocess.run([sys.executable, os.path.join(os.path.dirname(HERE), "support", "make_checkpoint.py"), path("letters", "base"), "--words",
                "0,1,2,3,4,5,6,7,8,9, ,+,.,A,B,C,D,\n", "--hidden", "32", "--layers", "1", "--heads", "2", "--kv-heads", "1",
                "--intermediate", "64"], check=True)
for name, words in (("test", [path("base"), "--data", path("task", "test.jsonl"), "--samples", 3, "--max_tokens", 28]),
                    ("choices", [path("letters", "base"), "--data", path("choices.jsonl"), "--grader", "choice"])):
    for size in (1, 2, 3):
        out = f"evaluated-{name}-{size}"
        on_ranks(size, ["evaluate", *words, "--template", "plain", "--out", path(out)], out)
        for file in (f"{name}.jsonl", f"{name}.outputs.jsonl"):
            at = os.path.join("base", "eval", file)
            check(same_bytes(path(f"evaluated-{name}-1", at), path(out, at)), f"{out}: {file} is that of one process")
        with open(path(out, "base", "eval", f"{name}.json")) as file:
            figures = {key: value for key, value in json.load(file).items() if key not in ("seconds", "tokens_per_second")}
        first = figures if size == 1 else first
        check(figures == first, f"{out}: the figures are those of one process")
got, said = finish(start_ranks(2, ["evaluate", path("base"), "--template", "plain", "--data", path("task", "test.jsonl"), "--out", path("bad")],
                               of_rank={1: {"more": ("--code.wall_seconds", 3)}}))
check(got == [2, 2] and "code.wall_seconds = " in said[0] and not os.path.exists(path("bad")), f"other limits for programs are refused: {said}")

# By the launcher, and standard output.
done = subprocess.run([UCAS, *map(str, GENERATE), "--ranks", "2"], capture_output=True, text=True, timeout=HANG)
check(done.returncode == 0 and done.stdout == "".join(rows), f"generate --ranks 2 writes the rows to standard output: {done.stderr[-300:]}")
ucas("sft", *SFT, "--out", path("launched"), "--ranks", 2)
same_files("f32-1", "launched")
clean()
