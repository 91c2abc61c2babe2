#!/usr/bin/env python3
"""Writes tests/goldens/stats.json: reference figures for src/results/stats, from exact fractions and scipy.

Needed only to renew the goldens, never to build or run.   python3 tools/make_stats_goldens.py
"""
import json
import math
import pathlib
from fractions import Fraction

import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(7)
out = {"about": f"scipy {scipy.__version__}, numpy {np.__version__}; pass@k by exact fractions"}

out["pass_at_k"] = [
    {"n": n, "c": c, "k": k,
     "value": float(1 - Fraction(math.comb(n - c, k), math.comb(n, k)))}
    for n in (1, 2, 16, 64, 1000, 4096) for c in sorted({0, 1, n // 7, n // 2, n - 1, n}) if 0 <= c
    for k in sorted({1, min(2, n), max(1, n // 3), n})]

out["incomplete_beta"] = [
    {"a": a, "b": b, "x": x, "value": float(stats.beta.cdf(x, a, b))}
    for a, b in ((0.5, 0.5), (1, 1), (2, 5), (30, 1), (1, 30), (400, 113), (5000, 7))
    for x in (1e-6, 0.01, 0.3, 0.5, 0.77, 0.99, 0.999999)]

out["normal_quantile"] = [{"p": p, "value": float(stats.norm.ppf(p))} for p in (1e-9, 0.005, 0.025, 0.5, 0.9, 0.995)]

out["share"] = []
for k, n in ((0, 1), (1, 1), (0, 30), (3, 30), (30, 30), (15, 30), (256, 512), (511, 512), (7, 10000)):
    for level in (0.95, 0.8):
        test = stats.binomtest(k, n)
        exact = test.proportion_ci(level, method="exact")
        out["share"].append({"successes": k, "trials": n, "level": level,
                             "clopper_pearson": [float(exact.low), float(exact.high)]})

values = rng.beta(0.4, 0.6, size=40).round(3)
out["summary"] = {"values": values.tolist(), "mean": float(values.mean()), "std": float(values.std(ddof=1))}
boot = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=200000, rng=np.random.default_rng(1))
out["bootstrap_mean"] = {"values": values.tolist(), "level": 0.95, "tolerance": 0.006,
                         "interval": [float(boot.confidence_interval.low), float(boot.confidence_interval.high)]}

out["paired"] = []
for shift in (0.0, 0.06, 0.3):  # 14 problems: scipy enumerates all 2^14 sign flips
    a = rng.beta(0.4, 0.6, size=14).round(3)
    b = (a + shift + rng.normal(0, 0.15, size=14)).round(3)
    test = stats.permutation_test((b - a,), np.mean, permutation_type="samples", n_resamples=np.inf)
    out["paired"].append({"a": a.tolist(), "b": b.tolist(), "mean": float((b - a).mean()), "p": float(test.pvalue),
                          "tolerance": 0.015})

out["student_975"] = [{"freedom": v, "value": float(stats.t.ppf(0.975, v))} for v in (1, 2, 3, 15, 30, 31, 100, 5000)]
seeds = [0.91, 0.955, 0.87]
interval = stats.t.interval(0.95, 2, np.mean(seeds), stats.sem(seeds))
out["mean_estimate"] = {"values": seeds, "value": float(np.mean(seeds)), "interval": [float(x) for x in interval]}
# Bonett and Price 2012: add one to each discordant count, two to the pairs.
out["paired_share"] = []
for gained, lost, pairs in ((40, 3, 512), (0, 0, 30), (30, 0, 30), (5, 6, 100)):
    up, down = Fraction(gained + 1, pairs + 2), Fraction(lost + 1, pairs + 2)
    half = stats.norm.ppf(0.975) * math.sqrt((up + down - (up - down) ** 2) / (pairs + 2))
    out["paired_share"].append({"gained": gained, "lost": lost, "pairs": pairs, "value": (gained - lost) / pairs,
                                "low": max(-1.0, float(up - down) - half), "high": min(1.0, float(up - down) + half)})

out["mcnemar"] = [{"gained": a, "lost": b, "p": float(stats.binomtest(a, a + b, 0.5).pvalue)}
                  for a, b in ((1, 0), (5, 5), (5, 6), (3, 12), (40, 3), (0, 30), (200, 260))]
out["calibration"] = []
for n, bins in ((40, 10), (500, 15)):
    p = rng.beta(2, 1, size=n).round(2)  # rounded: ties, and values on borders
    right = (rng.random(n) < p ** 2).astype(int)
    u = stats.mannwhitneyu(p[right == 1], p[right == 0]).statistic
    cell = np.clip(np.ceil(p * bins) - 1, 0, bins - 1)
    ece = sum(abs(right[cell == b].mean() - p[cell == b].mean()) * (cell == b).sum() for b in set(cell)) / n
    out["calibration"].append({"p": p.tolist(), "right": right.tolist(), "bins": bins, "ece": float(ece),
                               "auroc": float(u / (right.sum() * (n - right.sum())))})


# From here on a generator of its own: what stands above keeps its numbers.
rng = np.random.default_rng(11)


def few_problems(values_of_sets, low, draws=200000):
    """Interval of the mean of the sets' means, of few values from `low` to 1: Dirichlet weights, 1 a problem and 1/2 for
    either end of the range."""
    own, drawn = np.random.default_rng(3), np.zeros(draws)
    for values in values_of_sets:
        ends = np.concatenate([values, [low, 1]])
        drawn += own.dirichlet([1.0] * len(values) + [0.5, 0.5], size=draws) @ ends
    return np.percentile(drawn / len(values_of_sets), [2.5, 97.5]).tolist()


def pass_at(n, c, k):
    return float(1 - Fraction(math.comb(n - c, k), math.comb(n, k)))


# Two models, n samples a problem: the paired difference of pass@k, on one set and averaged over sets of unequal size.
# 12 problems in all: every sign flip is enumerated.
out["paired_pass_at_k"] = []
for k, gain in ((1, 0.0), (4, 0.1), (8, 0.3)):
    n, sets = 16, []
    for size in (3, 4, 5):
        skill = rng.beta(0.6, 0.9, size=size)
        a, b = rng.binomial(n, skill), rng.binomial(n, np.clip(skill + gain, 0, 1))
        sets.append({"a": a.tolist(), "b": b.tolist()})
    differences = [np.array([pass_at(n, b, k) - pass_at(n, a, k) for a, b in zip(s["a"], s["b"])]) for s in sets]
    weights = np.concatenate([np.full(len(d), 1 / len(d) / len(sets)) for d in differences])
    flat = np.concatenate(differences)
    signs = 1 - 2 * ((np.arange(2 ** len(flat))[:, None] >> np.arange(len(flat))) & 1)
    mean = float((weights * flat).sum())
    p = float((np.abs(signs @ (weights * flat)) >= abs(mean) * (1 - 1e-12)).mean())
    out["paired_pass_at_k"].append({
        "n": n, "k": k, "sets": sets, "mean": mean, "interval": few_problems(differences, -1), "p": p,
        "last_set": few_problems(differences[-1:], -1), "tolerance": 0.02})

# Mean over benchmarks of unequal size, each counting the same.
sets = [rng.beta(0.5, 0.5, size=size).round(3).tolist() for size in (6, 30, 80)]
out["macro_mean"] = {"sets": sets, "mean": float(np.mean([np.mean(s) for s in sets])), "interval": few_problems(sets, 0),
                     "tolerance": 0.01}

# Holm (1979); scipy has only Benjamini and Hochberg, so the definition stands here in numpy.
out["holm"] = []
for p in ([0.01, 0.04, 0.03, 0.005], [0.5], [0.02, 0.02, 0.02], rng.uniform(0, 1, 12).round(4).tolist(),
          (rng.uniform(0, 1, 30) ** 4).tolist()):
    order = np.argsort(p, kind="stable")
    factor = len(p) - np.arange(len(p))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(np.asarray(p)[order] * factor))
    out["holm"].append({"p": list(p), "adjusted": adjusted.tolist()})

out["student_p"] = []
for values in ([0.1, 0.2], [0.01, -0.02, 0.03], rng.normal(0.3, 0.2, 5).tolist(), rng.normal(0.02, 0.2, 12).tolist()):
    out["student_p"].append({"values": values, "p": float(stats.ttest_1samp(values, 0).pvalue)})

path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "goldens" / "stats.json"
path.write_text(json.dumps(out, indent=1) + "\n")
print(path)
