"""What a run says at its end of the plan and of what it took is what its steps say."""
import json
import os
import re

from support import check, clean, finish, path, small_task, start_ranks, train_words, ucas

small_task()


def train(run, steps, clock, *more):
    done = ucas(*train_words(path(run), "--train.steps", steps, "--threads", 1, "--train.test_freq", 50, *more),
                env={**os.environ, "UCAS_CLOCK_RATE": str(clock)})
    with open(path(run, "steps.jsonl")) as lines:
        rows = [row for row in map(json.loads, lines) if row["training/global_step"] > 0]
    took = [row["timing_s/step"] - row.get("timing_s/testing", 0) - row.get("timing_s/reward", 0) for row in rows]
    return done.stderr, rows, took


# How long they take is the test's own: by a clock that hardly moves, and by one that runs ten thousand times as fast.
said, rows, took = train("short", 2, 1e-6)
check(sum(took) < 5 and "time: a step took" not in said, "steps of less than 5 s in all say nothing of the plan: it measures for half a one")
steps = 6
said, rows, took = train("long", steps, 1e4)
check(sum(took) > 5, f"{steps} steps take {sum(took):.1f} s")
line = re.search(r"time: a step took ([\d.]+) s, planned ([\d.]+) s \((?:as planned|the plan is (\d+) % too (high|low))\) for (\d+) \+ (\d+) tokens in the mean", said)
check(line is not None, "a run of seconds says what was planned and what it took")
a_step, planned, prompt, response = (float(line[i]) for i in (1, 2, 5, 6))
share = 1 + (1 if line[4] == "high" else -1) * float(line[3] or 0) / 100
mean = lambda key: sum(row[key] for row in rows) / len(rows)
check(abs(a_step - sum(took) / len(took)) < 0.002, f"what a step took is the mean of the steps: {a_step}")
half = 0.0006  # of the last digit
check((planned - half) / (a_step + half) - 0.01 < share < (planned + half) / (a_step - half) + 0.01, f"the percentage is that of the two: {share}")
check(abs(prompt - mean("prompt_length/mean")) <= 0.5 and abs(response - mean("response_length/mean")) <= 0.5,
      f"lengths are those of the run: {prompt:.0f} + {response:.0f}")
plan = ucas("plan", "dapo-tiny", "--model", path("base"), "--data", path("task", "train.jsonl"), "--data.train_batch_size", 6,
            "--data.gen_batch_size", 8, "--update.mini_batch_size", 3, "--rollout.n", 8, "--objective.keep_mixed_groups", "false",
            "--threads", 1, "--gpu", "cpu", "--prompt_tokens", mean("prompt_length/mean"), "--response_tokens",
            mean("response_length/mean"), "--json")
again = json.loads(plan.stdout)["time"]["step"]
check(again > 0, f"ucas plan says it of this machine, measured anew: {again:.3f} s for {planned}")
memory = re.search(r"memory: peak .* planned", said)
check(memory is not None and os.path.exists(path("long", "env.json")), "and the same of memory")

# Of several processes each takes what one of so many takes: room for its share of the responses, for one.
peaks, more = {}, ("--threads", 1, "--update.micro_batch_tokens", 64, "--rollout.response_length", 200, "--rollout.n", 32)
for ranks in (1, 2):
    run = path(f"of-{ranks}")
    codes, told = finish(start_ranks(ranks, train_words(run, "--train.steps", 1, *more)))
    check(codes == [0] * ranks, f"{ranks} processes train: {told[0][-300:]}")
    with open(os.path.join(run, "env.json")) as file:
        peaks[ranks] = json.load(file)["planned_memory"]
    words = train_words(run)[1:]
    at = words.index("--out")
    plan = ucas("plan", *words[:at], *words[at + 2:], *more, "--gpu", "cpu", "--gpus", ranks, "--json")
    check(json.loads(plan.stdout)["peak"] == peaks[ranks], f"a run of {ranks} plans what ucas plan --gpus {ranks} says: {peaks[ranks]}")
check(peaks[2] < peaks[1], f"and two need less each than one: {peaks}")
clean()
