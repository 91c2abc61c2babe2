#!/usr/bin/env python3
"""Keeps of a study's runs what its table and decision are made of, without weights and texts, small enough to commit:

    tools/keep_runs.py OUT/runs [MORE/runs ..] --to docs/studies/data/NAME

A run becomes NAME/ROW-seedN/: config.toml, study.json, eval/test.json, eval/test.jsonl (a line a problem: how many samples were right, and
each sample's verdict as 0 or 1 where all are stored) and steps.jsonl (the metrics below). Of several folders the same run is one: of a problem the evaluation
with more samples counts. `ucas study NAME --from docs/studies/data/NAME` makes the table and the decision again. Runs that are not evaluated
yet are left out; what was kept before is replaced."""
import argparse
import glob
import json
import os
import shutil

METRICS = ("training/global_step", "critic/score/mean", "train/accuracy", "train/groups_trained", "train/updates", "actor/entropy",
           "actor/grad_norm", "response_length/mean", "response_length/clip_ratio", "timing_s/step")


def number(value):
    return float(f"{value:.6g}") if isinstance(value, float) else value


def problem(row):
    kept = {key: row[key] for key in ("id", "source", "samples", "correct") if key in row}
    if row.get("greedy"):
        kept["greedy"] = {"verdict": row["greedy"].get("verdict", "unequal")}
    responses = row.get("responses", [])
    if responses and len(responses) == row["samples"]:  # evaluate.stored_responses
        kept["verdicts"] = "".join("1" if response.get("verdict") == "equal" else "0" for response in responses)
    return kept


def problems_of(folder):
    with open(os.path.join(folder, "eval", "test.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def keep(name, folders, to):
    whole = [f for f in folders if os.path.exists(os.path.join(f, name, "eval", "test.json"))]
    if not whole:
        return 0
    first, out = os.path.join(whole[0], name), os.path.join(to, name)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(os.path.join(out, "eval"))
    for file in ("config.toml", "study.json"):
        if os.path.exists(os.path.join(first, file)):
            shutil.copyfile(os.path.join(first, file), os.path.join(out, file))
    problems = {}
    for folder in whole:
        for row in problems_of(os.path.join(folder, name)):
            key = row.get("source", ""), row["id"]
            if key not in problems or row["samples"] > problems[key]["samples"]:
                problems[key] = problem(row)
    with open(os.path.join(out, "eval", "test.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in problems.values())
    with open(os.path.join(first, "eval", "test.json"), encoding="utf-8") as file:
        figures = json.load(file)
    for key in ("model", "calibration", "asked", "seconds", "tokens_per_second"):
        figures.pop(key, None)
    with open(os.path.join(out, "eval", "test.json"), "w", encoding="utf-8") as file:
        json.dump(figures, file, indent=1)
        file.write("\n")
    steps = os.path.join(first, "steps.jsonl")
    if os.path.exists(steps):
        with open(steps, encoding="utf-8") as file, open(os.path.join(out, "steps.jsonl"), "w", encoding="utf-8") as kept:
            for line in file:
                row = json.loads(line)
                kept.write(json.dumps({k: number(v) for k, v in row.items() if k in METRICS or k.startswith("val-core/")},
                                      separators=(",", ":")) + "\n")
    return sum(os.path.getsize(os.path.join(home, f)) for home, _, files in os.walk(out) for f in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="folders with a run each below, OUT/runs of ucas study")
    parser.add_argument("--to", required=True, help="folder to keep them in")
    args = parser.parse_args()
    names = sorted({os.path.basename(path) for folder in args.runs for path in glob.glob(os.path.join(folder, "*"))})
    sizes = [size for name in names if (size := keep(name, args.runs, args.to))]
    print(f"{args.to}: {len(sizes)} runs, {max(sizes, default=0) / 1000:.0f} kB at most")


if __name__ == "__main__":
    main()
