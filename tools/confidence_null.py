#!/usr/bin/env python3
"""How often z(C) > 0 among all responses, right ones, rare right ones, and as many drawn at random in their place; and the factors that
stage 1 and its placebos give. Of an evaluation that stored all samples (docs/studies/confidence.md):
    ucas evaluate base=MODEL --data FILE --samples 64 --stored_responses 64 --out OUT
    python3 tools/confidence_null.py OUT/base/eval/FILE.jsonl"""
import json
import math
import random
import sys

ALPHA, RARE, DRAWS = 0.25, 0.25, 20
draw = random.Random(0)


def mean(values):
    return sum(values) / len(values) if values else math.nan


def z_scores(values):
    m = mean(values)
    s = math.sqrt(sum((v - m) ** 2 for v in values) / (len(values) - 1)) + 1e-6
    return [(v - m) / s for v in values]


def groups(problems, size):
    """Verdicts and z(C) of the mixed groups of that size."""
    for problem in problems:
        for at in range(0, len(problem["responses"]) - size + 1, size):
            some = problem["responses"][at:at + size]
            right = [float(r["verdict"] == "equal") for r in some]
            if 0 < sum(right) < size:
                yield right, z_scores([r["confidence"] for r in some])


def shares(problems, size):
    found = {"all": [], "right": [], "rare right": [], "drawn in place of rare right": []}
    for right, z in groups(problems, size):
        found["all"] += z
        found["right"] += (of_right := [value for value, r in zip(z, right) if r])
        if mean(right) <= RARE:
            found["rare right"] += of_right
            for _ in range(DRAWS):
                found["drawn in place of rare right"] += draw.sample(z, len(of_right))
    said = ", ".join(f"{name} {100 * mean([value > 0 for value in values]):.1f} %" for name, values in found.items())
    print(f"groups of {size}, z(C) > 0: {said}; {len(found['rare right'])} rare right ones")


def permuted(z, right, kind):
    z = list(z)
    for members in ([range(len(z))] if kind == "permuted" else [[i for i in range(len(z)) if right[i] == v] for v in (0, 1)]):
        values = [z[i] for i in members]
        draw.shuffle(values)
        for i, value in zip(members, values):
            z[i] = value
    return z


def factors(problems, size):
    sums = {kind: {0.0: [], 1.0: []} for kind in ("DAPO", "UCAS", "permuted", "permuted within sign")}
    for right, z in groups(problems, size):
        A = z_scores(right)
        for kind, sides in sums.items():
            for _ in range(1 if kind in ("DAPO", "UCAS") else DRAWS):
                w = [0.0] * size if kind == "DAPO" else z if kind == "UCAS" else permuted(z, right, kind)
                for a, value, r in zip(A, w, right):
                    sides[r].append(math.exp((-ALPHA if a > 0 else ALPHA) * value) * a)
    for kind, sides in sums.items():
        size_of = {side: mean([abs(a) for a in sides[side]]) / mean([abs(a) for a in sums["DAPO"][side]]) for side in sides}
        print(f"{kind}: right x{size_of[1.0]:.3f}, wrong x{size_of[0.0]:.3f}, mean A {mean(sides[0.0] + sides[1.0]):+.4f}")


with open(sys.argv[1], encoding="utf-8") as file:
    rows = [json.loads(line) for line in file]
shares(rows, len(rows[0]["responses"]))
shares(rows, 8)
factors(rows, 8)
