"""Verdicts a second and agreement with the labels of the reward of TRL (math-verify) and ours, on the same responses in the same process:

    python bench/rewards.py CASES.jsonl [--threads 2] [--limit N] [--ours-alone]

CASES: rows of `gold`, `prediction`, `expected` (docs/formats.md's rows of `ucas verify`); those of kind "output", whole responses, are taken. Both
rewards get them as conversations with a column of solutions, as GRPOTrainer hands them over. Needs the package, trl and math-verify.
"""
import argparse
import json
import time


def cases(path, limit):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [row for row in rows if row.get("kind") == "output" and isinstance(row.get("expected"), bool)][:limit]


def measured(name, reward, rows, repeat=1):
    completions = [[{"role": "assistant", "content": row["prediction"]}] for row in rows]
    golds = [row["gold"] if isinstance(row["gold"], str) else str(row["gold"]) for row in rows]
    began, worst = time.perf_counter(), 0.0
    for _ in range(repeat):
        rewards = reward(completions=completions, solution=golds)
    seconds = (time.perf_counter() - began) / repeat
    for completion, gold in zip(completions, golds):
        one = time.perf_counter()
        reward(completions=[completion], solution=[gold])
        worst = max(worst, time.perf_counter() - one)
    paid = sum(bool(r) and not row["expected"] for r, row in zip(rewards, rows))
    missed = sum(not r and row["expected"] for r, row in zip(rewards, rows))
    print(f"| {name} | {len(rows) / seconds:,.0f} | {100 * (1 - (paid + missed) / len(rows)):.1f} | {paid} | {missed} | {1000 * worst:.1f} |",
          flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--ours-alone", action="store_true")
    given = parser.parse_args()
    from ucas.integrations.trl import AccuracyReward

    rows = cases(given.cases, given.limit)
    print(f"{len(rows)} responses, {sum(row['expected'] for row in rows)} right by their labels\n")
    print("| reward | verdicts/s | agrees with the label % | wrong paid | right missed | slowest, ms |\n| --- | --- | --- | --- | --- | --- |")
    for extract in ("strict", "lenient"):
        for threads in sorted({1, given.threads}):
            measured(f"ucas, {extract}, {threads} thread{'s' * (threads > 1)}", AccuracyReward(extract, threads=threads), rows, 5)
    if not given.ours_alone:
        from trl.rewards import accuracy_reward

        measured("TRL's accuracy_reward (math-verify)", accuracy_reward, rows)


main()
