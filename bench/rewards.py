"""Verdicts a second and agreement with the labels of TRL's and verl's own rewards and ours, on the same responses in the same run:

    PYTHON bench/rewards.py CASES.jsonl [--threads 2] [--limit N] [--ours-alone]

CASES: rows of `gold`, `prediction`, `expected` (docs/formats.md's rows of `ucas verify`); those of kind "output", whole responses, are taken.
TRL's and ours get them as conversations with a column of solutions, as GRPOTrainer hands them over; verl's and ours of verl one after the other,
as its reward managers do. With more threads each of them calls the reward with its share. PYTHON has the package, trl, verl and math-verify
(bench/README.md).
"""
import argparse
import concurrent.futures
import functools
import glob
import json
import os
import threading
import time

PATIENCE = 300  # seconds after which a reward is said to hang


def cases(path, limit):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [row for row in rows if row.get("kind") == "output" and isinstance(row.get("expected"), bool)][:limit]


def gold_of(row):
    return row["gold"] if isinstance(row["gold"], str) else str(row["gold"])


def of_trl(reward):
    """Rewards of rows by a function of TRL's convention."""
    return lambda rows: reward(completions=[[{"role": "assistant", "content": row["prediction"]}] for row in rows],
                               solution=[gold_of(row) for row in rows])


def of_verl(score):
    """The same by one of verl's, score(source, response, gold)."""
    def rewards(rows):
        found = [score("math", row["prediction"], gold_of(row)) for row in rows]
        return [one["score"] if isinstance(one, dict) else one for one in found]
    return rewards


def shared_out(rewards, rows, threads):
    if threads == 1 or isinstance(threads, str):
        return rewards(rows)
    cut = [rows[len(rows) * i // threads:len(rows) * (i + 1) // threads] for i in range(threads)]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return [one for part in pool.map(rewards, cut) for one in part]


def cpu_seconds():
    """Of this process and of those that it started and that still live."""
    total, children = time.process_time(), []
    for name in glob.glob("/proc/self/task/*/children"):
        with open(name, encoding="utf-8") as file:
            children += file.read().split()
    for pid in children:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            total += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return total


def measured(name, rewards, rows, threads=1, passes=2):
    """One row of the table; a way that has not ended after PATIENCE ends the run. `threads` call it; words are for its own."""
    def hangs():
        print(f"| {name} | {threads} | hangs: no end after {PATIENCE} s | | | | | |", flush=True)
        os._exit(1)

    watch = threading.Timer(PATIENCE, hangs)
    watch.start()
    shared_out(rewards, rows[:100], threads)  # what is loaded or started at the first call
    seconds, worst, cpu = [], 0.0, cpu_seconds()
    for _ in range(passes):
        began = time.perf_counter()
        paid = shared_out(rewards, rows, threads)
        seconds.append(time.perf_counter() - began)
    cpu = (cpu_seconds() - cpu) / passes
    for row in rows if threads == 1 else ():
        one = time.perf_counter()
        rewards([row])
        worst = max(worst, time.perf_counter() - one)
    watch.cancel()
    wrong = sum((r or 0) > 0 and not row["expected"] for r, row in zip(paid, rows))
    missed = sum((r or 0) <= 0 and row["expected"] for r, row in zip(paid, rows))
    right = 100 * (1 - (wrong + missed) / len(rows))
    slowest = f"{1000 * worst:.1f}" if threads == 1 else ""
    print(f"| {name} | {threads} | {len(rows) / min(seconds):,.0f} | {len(rows) / cpu:,.0f} | {right:.1f} | {wrong} | {missed} | {slowest} |", flush=True)


def table(rows, threads, ours_alone):
    from ucas.integrations import verl as ours_of_verl
    from ucas.integrations.trl import AccuracyReward

    print("| reward | threads | verdicts/s, best pass | per CPU second | agrees with the label % | false positives | false negatives | slowest, ms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    several = sorted({1, threads})
    for extract in ("strict", "lenient"):
        for n in several:  # these threads are its own
            alone = of_trl(AccuracyReward(extract, threads=n))
            measured(f"ucas in TRL, {extract}", alone, rows, f"{n} of its own" if n > 1 else 1, passes=20)
        for n in several:
            score = functools.partial(ours_of_verl.compute_score, extract=extract)
            measured(f"ucas in verl, {extract}", of_verl(score), rows, n, passes=20)
    if ours_alone:
        return
    from trl.rewards import accuracy_reward
    from verl.utils.reward_score import math_dapo, math_reward, math_verify

    theirs = {"TRL accuracy_reward": of_trl(accuracy_reward),
              "verl math_dapo": of_verl(lambda _, response, gold: math_dapo.compute_score(response, gold)),
              "verl math_reward": of_verl(lambda _, response, gold: math_reward.compute_score(response, gold)),
              "verl math_verify": of_verl(lambda _, response, gold: math_verify.compute_score(response, gold))}
    for name, rewards in theirs.items():
        for n in several:
            measured(name, rewards, rows, n)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--ours-alone", action="store_true")
    given = parser.parse_args()
    rows = cases(given.cases, given.limit)
    for name, some in (("all responses", rows), ("those with a box", [row for row in rows if "\\boxed" in row["prediction"]])):
        if not some:
            continue
        print(f"\n{name}: {len(some)}, {sum(row['expected'] for row in some)} right by their labels\n", flush=True)
        table(some, given.threads, given.ours_alone)


if __name__ == "__main__":
    main()
