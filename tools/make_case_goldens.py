#!/usr/bin/env python3
"""Writes tests/goldens/algorithm_cases.json: one or more worked cases of each formula, as tests/support/algorithm_cases.h reads them (schema 1),
with what a second implementation in plain Python and float64 makes of them, from the articles' and the released programs' formulas (docs/paper.md).

    tools/make_case_goldens.py                  renews the goldens; never needed to build or run
    tools/make_case_goldens.py --against FILE   holds this implementation to another file of cases of that schema
"""
import json
import math
import pathlib
import random
import sys

REFERENCES = {}


def reference(*names):
    def add(function):
        for name in names:
            REFERENCES[name] = function
        return function
    return add


def clamp(x, low, high):
    return min(max(x, low), high)


def each(function, *tables):
    return [[function(*cells) for cells in zip(*rows)] for rows in zip(*tables)]


def masked(table, mask):
    return each(lambda x, m: x if m else 0.0, table, mask)


def counted(table, mask):
    return [x for row, bits in zip(table, mask) for x, bit in zip(row, bits) if bit]


def mean(values):
    return math.fsum(values) / len(values)


def deviation(values, ddof):
    m = mean(values)
    return math.sqrt(math.fsum((x - m) ** 2 for x in values) / (len(values) - ddof))


def whitened(table, mask, ddof=1):
    values = counted(table, mask)
    m, root = mean(values), math.sqrt(deviation(values, ddof) ** 2 + 1e-8)
    return masked(each(lambda x: (x - m) / root, table), mask)


def of_group(uid, i):
    return [j for j in range(len(uid)) if uid[j] == uid[i]]


def over_tokens(values, mask):
    return [[float(v) if bit else 0.0 for bit in bits] for v, bits in zip(values, mask)]


def z_of(values, uid, eps, ddof, alone=lambda x, eps: x / (1 + eps)):
    out = []
    for i, value in enumerate(values):
        others = [values[j] for j in of_group(uid, i)]
        if len(others) == 1:
            out.append(alone(value, eps))
        else:
            out.append((value - mean(others)) / (deviation(others, ddof) + eps))
    return out


def aggregated(loss, mask, const=None):
    """By name, as verl names them; a response without a token counts in drgrpo-oat's denominator alone."""
    rows = [[x for x, bit in zip(row, bits) if bit] for row, bits in zip(loss, mask)]
    full = [row for row in rows if row]
    total = math.fsum(x for row in full for x in row)
    out = {"token-mean": total / sum(map(len, full)), "seq-mean-token-sum": total / len(full), "seq-mean-token-mean": mean([mean(row) for row in full])}
    if const:
        out |= {"seq-mean-token-sum-norm": total / const, "drgrpo-oat": total / const / len(rows)}
    return out


def ratio_of(new, old):
    return math.exp(clamp(new - old, -20, 20))


def clipped_token(new, old, advantage, low, high, c=None):
    """Loss, its derivative by the log-prob, whether the clip and whether the lower clip decides."""
    ratio = ratio_of(new, old)
    free, cut = -advantage * ratio, -advantage * clamp(ratio, 1 - low, 1 + high)
    loss, slope = max(free, cut), free if free >= cut else 0.0
    if c and advantage < 0 and loss > -advantage * c:
        return -advantage * c, 0.0, cut > free, True
    return loss, slope, cut > free, False


def clipped(x, low, high, c=None):
    cells = each(lambda n, o, a: clipped_token(n, o, a, low, high, c), x["logp"], x["old_logp"], x["advantages"])
    return [masked(each(lambda cell, k=k: float(cell[k]), cells), x["mask"]) for k in range(4)]


@reference("grpo/dual-clip", "dapo/dual-clip")
def dual_clip(x):
    loss, slope, cut, lower = clipped(x, x["clip_low"], x["clip_high"], x["clip_c"])
    mask, const = x["mask"], len(x["mask"][0])
    sums = aggregated(loss, mask, const)
    named = {name + (f"(const={const})" if name in ("seq-mean-token-sum-norm", "drgrpo-oat") else ""): value for name, value in sums.items()}
    return {"ratio": masked(each(ratio_of, x["logp"], x["old_logp"]), mask), "per_token": loss, "grad_per_token": slope,
            "clipfrac": mean(counted(cut, mask)), "clipfrac_lower": mean(counted(lower, mask)),
            "ppo_kl": mean(counted(each(lambda n, o: o - n, x["logp"], x["old_logp"]), mask)), "loss": named}


@reference("grpo/verl", "grpo/oat-grpo", "grpo/trl-group", "grpo/population-std")
def grpo(x):
    return {"advantages": over_tokens(z_of(x["rewards"], x["uid"], x["eps"], x["ddof"]), x["mask"])}


@reference("kl/k1", "kl/abs", "kl/k2", "kl/k3", "kl/k3+")
def kl(x, variant):
    value, slope = [], []
    for new, ref in zip(x["logp"], x["ref_logp"]):
        d = new - ref
        third = math.exp(clamp(-d, -20, 20)) + d - 1
        value.append({"k1": d, "abs": abs(d), "k2": d * d / 2}.get(variant, clamp(third, -10, 10)))
        slope.append({"k1": 1.0, "abs": (d > 0) - (d < 0), "k2": d, "k3+": d}.get(variant, 1 - math.exp(-d) if -10 < third < 10 else 0.0))
    return {"value": value, "grad_logp": slope}


@reference("agg_loss/verl-current")
def agg_loss(x):
    return aggregated(x["loss"], x["mask"], x["const"])


@reference("accumulation/exact-vs-legacy")
def accumulation(x):
    rows, mask = x["per_token"], x["mask"]
    return {"exact": aggregated(rows, mask)["token-mean"]}


@reference("dapo/verl")
def dapo(x):
    if "lengths" in x:
        expected = x["max_len"] - x["buffer"]
        share = [min(0.0, (expected - n) / x["buffer"]) for n in x["lengths"]]
        return {"penalty": [s * x["factor"] for s in share], "paper_penalty": share}
    kept, batches = [], 0
    for batch in x["gen_batches"]:
        batches += 1
        kept += [name for name, outcome in batch if len(set(outcome)) > 1]
        if len(kept) >= x["train_batch"]:
            break
    return {"action": "train", "num_gen_batches": batches, "kept": kept, "trained": kept[:x["train_batch"]], "dropped_surplus": kept[x["train_batch"]:]}


@reference("drgrpo/oat")
def drgrpo(x):
    return {"advantages": over_tokens([r - mean([x["rewards"][j] for j in of_group(x["uid"], i)]) for i, r in enumerate(x["rewards"])], x["mask"])}


@reference("drgrpo/oat-vs-verl")
def drgrpo_loss(x):
    loss, mask = clipped(x, x["clip"], x["clip"])[0], x["mask"]
    total = math.fsum(counted(loss, mask))
    return {"per_token": loss, "oat": total / x["const"] / len(mask), "verl": total / x["const"]}


@reference("ucas/paper", "ucas/released")
def ucas(x, variant):
    rewards, mask, uid, released = x["rewards"], x["mask"], x["uid"], variant == "released"
    A = z_of(rewards, uid, x["eps"], x["ddof"])
    rows = [[v for v, bit in zip(row, bits) if bit] for row, bits in zip(x["confidence"], mask)]
    conf = [math.fsum(row) for row in x["confidence"]] if released else [mean(row) for row in rows]
    C_hat = z_of(conf, uid, x["eps"], x["ddof"], lambda value, eps: 0.0)
    up, down = (x["alpha_pos"], x["alpha_neg"]) if released else (x["alpha"], x["alpha"])
    W = [math.exp(-up * z) if a > 0 else math.exp(down * z) if a < 0 or released else 1.0 for a, z in zip(A, C_hat)]
    A_mod = [w * a for w, a in zip(W, A)]
    everything = counted(x["chosen_logit"], mask)
    l_hat, final = [], []
    for row, bits, a in zip(x["chosen_logit"], mask, A_mod):
        own = everything if released else [v for v, bit in zip(row, bits) if bit]
        low, high = min(own), max(own)
        if released:
            hats = [0.5 if high == low else (v - low) / (high - low) for v in row]
        else:
            hats = [(v - low) / (high - low + x["eps"]) for v in row]
        shaped = [a - x["beta"] * hat for hat in hats]
        if not released:  # no token of a response that is pushed up is pushed down
            shaped = [max(0.0, v) if a >= 0 else v for v in shaped]
        l_hat.append(hats)
        final.append(shaped)
    return {"A": A, "conf_sum" if released else "conf": conf, "C_hat": C_hat, "W": W, "A_mod": A_mod, "l_hat": masked(l_hat, mask),
            "advantages": masked(final, mask)}


@reference(*(f"seed-grpo/{estimator}/{form}" for estimator in ("count", "shannon", "mc") for form in ("linear", "exponential", "focal", "reciprocal")))
def seed_grpo(x, variant):
    """Of its answers' clusters by count, by summed probabilities, or the mean of their -log p."""
    A, entropy, scale = [], [], []
    for i, reward in enumerate(x["rewards"]):
        group = of_group(x["uid"], i)
        A.append(reward - mean([x["rewards"][j] for j in group]))
        weight = {j: 1.0 if x["estimator"] == "count" else math.exp(x["seq_logp"][j]) for j in group}
        total = math.fsum(weight.values())
        share = {a: math.fsum(weight[j] for j in group if x["answers"][j] == a) / total for a in {x["answers"][j] for j in group}}
        if x["estimator"] == "mc":
            entropy.append(-mean([math.log(p) for p in share.values()]))
        else:
            entropy.append(-math.fsum(p * math.log(p) for p in share.values()))
        share = entropy[-1] / math.log(len(group))
        u = share * x["alpha"]
        scale.append({"linear": 1 - u, "exponential": math.exp(-u), "focal": (1 - share) ** x["alpha"] if share < 1 else 0.0,
                      "reciprocal": 1 / (1 + u)}[x["f"]])
    return {"A": A, "SE": entropy, "scale": scale, "advantages": [a * s for a, s in zip(A, scale)]}


@reference("entropy-adv/paper")
def entropy_adv(x):
    psi = masked(each(lambda h, a: min(x["alpha"] * h, abs(a) / x["kappa"]), x["entropy"], x["advantages"]), x["mask"])
    return {"psi": psi, "advantages": masked(each(lambda a, p: a + p, x["advantages"], psi), x["mask"])}


def covariance(x):
    a, l = (mean(counted(x[key], x["mask"])) for key in ("advantages", "logp"))
    return masked(each(lambda A, lp: (A - a) * (lp - l), x["advantages"], x["logp"]), x["mask"])


@reference("clip-cov/released")
def clip_cov(x):
    loss, slope, cut, _ = clipped(x, x["clip_low"], x["clip_high"])
    cov, mask = covariance(x), x["mask"]
    number = max(int(x["ratio"] * sum(map(sum, mask))), 1)
    chosen = masked(each(lambda c, was_cut: float(x["lb"] < c < x["ub"] and not was_cut), cov, cut), mask)
    assert sum(map(sum, chosen)) <= number, "which of them is left to chance"
    keep = lambda v, s: 0.0 if s else v
    loss, slope = each(keep, loss, chosen), each(keep, slope, chosen)
    return {"cov": cov, "clip_num": number, "selected": [[int(s) for s in row] for row in chosen], "per_token": loss,
            "loss": mean(counted(loss, mask)), "grad_per_token": slope, "clipfrac": mean(counted(chosen, mask))}


@reference("kl-cov/released")
def kl_cov(x):
    cov, mask = covariance(x), x["mask"]
    k = max(int(x["ratio"] * sum(map(sum, mask))), 1)
    least = sorted(counted(cov, mask))[-k]
    chosen = masked(each(lambda c: float(c >= least), cov), mask)
    d = masked(each(lambda n, o: n - o, x["logp"], x["old_logp"]), mask)
    free = masked(each(lambda n, o, a: -a * ratio_of(n, o), x["logp"], x["old_logp"], x["advantages"]), mask)
    loss = each(lambda f, s, v: f + s * x["coef"] * abs(v), free, chosen, d)
    slope = each(lambda f, s, v: f + s * x["coef"] * ((v > 0) - (v < 0)), free, chosen, d)
    return {"cov": cov, "k": k, "selected": [[int(s) for s in row] for row in chosen], "per_token": loss, "loss": mean(counted(loss, mask)),
            "grad_per_token": slope, "ppo_kl": mean([abs(v) for v in counted(d, mask)])}


@reference("high-entropy-20/released", "high-entropy-20/trl")
def high_entropy(x, variant):
    mask, values = x["mask"], sorted(counted(x["entropy"], x["mask"]))
    if variant == "released":
        threshold = values[-math.ceil(len(values) * x["rho"])]
    else:
        place = (1 - x["rho"]) * (len(values) - 1)
        low = math.floor(place)
        threshold = values[low] + (place - low) * (values[min(low + 1, len(values) - 1)] - values[low])
    chosen = masked(each(lambda h: float(h >= threshold), x["entropy"]), mask)
    loss = clipped(x, x["clip_low"], x["clip_high"], x["clip_c"])[0]
    total = math.fsum(counted(each(lambda v, s: v * s, loss, chosen), mask))
    return {"threshold": threshold, "selected": [[int(s) for s in row] for row in chosen], "loss_div_selected": total / sum(map(sum, chosen)),
            "loss_div_all": total / len(values)}


@reference("rloo/verl")
def rloo(x):
    out = []
    for i, reward in enumerate(x["rewards"]):
        others = [x["rewards"][j] for j in of_group(x["uid"], i) if j != i]
        out.append(reward - mean(others) if others else reward)
    return {"advantages": over_tokens(out, x["mask"])}


def discounted(rewards, mask, gamma):
    out = []
    for row, bits in zip(rewards, mask):
        sums, later = [0.0] * len(row), 0.0
        for t in reversed(range(len(row))):
            if bits[t]:
                later = row[t] + gamma * later
                sums[t] = later
        out.append(sums)
    return out


@reference("reinforce++/verl")
def reinforce(x):
    returns = discounted(x["token_rewards"], x["mask"], x["gamma"])
    return {"returns": returns, "advantages": whitened(returns, x["mask"])}


@reference("reinforce++-baseline/verl")
def reinforce_baseline(x):
    return {"advantages": whitened(drgrpo(x)["advantages"], x["mask"])}


@reference("ppo-gae/orz/verl", "ppo-gae/verl")
def gae(x):
    mask = x["mask"]
    if "vpred" in x:
        cells = each(lambda v, r, o: ((v - r) ** 2, (clamp(v, o - x["clip"], o + x["clip"]) - r) ** 2), x["vpred"], x["returns"], x["old_values"])
        return {"loss": 0.5 * mean([max(cell) for cell in counted(cells, mask)]), "clipfrac": mean([float(b > a) for a, b in counted(cells, mask)])}
    raw = []
    for rewards, values, bits in zip(x["token_rewards"], x["values"], mask):
        row, later, after = [0.0] * len(rewards), 0.0, 0.0
        for t in reversed(range(len(rewards))):
            if bits[t]:
                later = rewards[t] + x["gamma"] * after - values[t] + x["gamma"] * x["lam"] * later
                after = values[t]
                row[t] = later
        raw.append(row)
    return {"raw": raw, "returns": masked(each(lambda a, v: a + v, raw, x["values"]), mask), "whitened_verl": whitened(raw, mask),
            "normalized_orz": whitened(raw, mask, 0)}


@reference("prime/verl-recipe")
def prime(x):
    mask, beta, uid = x["mask"], x["beta"], x["uid"]
    assert len(set(uid)) == 1
    logits = [beta * math.fsum(q for q, bit in zip(row, bits) if bit) for row, bits in zip(x["q"], mask)]
    loss = mean([math.log(1 + math.exp(-z)) if right else math.log(1 + math.exp(z)) for z, right in zip(logits, x["acc"])])
    inner = [[bit and t + 1 < sum(bits) for t, bit in enumerate(bits)] for bits in mask]  # the outcome is the last token's
    scores = masked(each(lambda q: beta * q, x["q"]), inner)
    normalizer = max(abs(v) for row in discounted(scores, mask, 1) for v in row) + 1e-6
    scores = each(lambda v: v / normalizer, scores)
    n = len(mask)
    base = math.fsum(mean([v for v, bit in zip(row, bits) if bit]) for row, bits in zip(scores, mask)) / (n - 1)
    total = masked(each(lambda v: x["coef_prm"] * (v * n / (n - 1) - base), scores), mask)
    for i, bits in enumerate(mask):
        total[i][sum(bits) - 1] += x["coef_gt"] * (x["acc"][i] - mean(x["acc"])) * n / (n - 1)
    returns = discounted(total, mask, 1)
    return {"ce_loss": loss, "token_rewards": scores, "normalizer": normalizer, "reward_sum": total, "returns": returns,
            "advantages": whitened(returns, mask)}


@reference("gspo/verl")
def gspo(x):
    mask, rows = x["mask"], []
    seq = [math.exp(mean([n - o for n, o, bit in zip(new, old, bits) if bit])) for new, old, bits in zip(x["logp"], x["old_logp"], mask)]
    for s, advantages in zip(seq, x["advantages"]):
        rows.append([clipped_token(math.log(s), 0, a, x["clip_low"], x["clip_high"]) for a in advantages])
    loss, slope = (masked(each(lambda cell, k=k: cell[k], rows), mask) for k in (0, 1))
    return {"seq_ratio": seq, "per_token": loss, "loss": aggregated(loss, mask)["seq-mean-token-mean"], "grad_per_token": slope}


@reference("cispo/verl")
def cispo(x):
    mask = x["mask"]
    weight = each(lambda n, o, m: clamp(ratio_of(n, o), 1 - x["clip_low"], 1 + x["clip_high"]) if m else 1.0, x["logp"], x["old_logp"], mask)
    slope = masked(each(lambda w, a: -w * a, weight, x["advantages"]), mask)
    loss = each(lambda s, lp: s * lp, slope, x["logp"])
    return {"weight": weight, "per_token": loss, "loss": mean(counted(loss, mask)), "grad_per_token": slope}


@reference("sapo/verl")
def sapo(x):
    def cell(n, o, a):
        tau = x["tau_pos"] if a > 0 else x["tau_neg"]
        ratio = ratio_of(n, o)
        s = 1 / (1 + math.exp(-tau * (ratio - 1)))
        return 4 * s / tau, -a * 4 * s / tau, -a * 4 * s * (1 - s) * ratio
    gate, loss, slope = (masked(each(lambda v, k=k: v[k], each(cell, x["logp"], x["old_logp"], x["advantages"])), x["mask"]) for k in range(3))
    return {"gate": gate, "per_token": loss, "loss": aggregated(loss, x["mask"])["seq-mean-token-mean"], "grad_per_token": slope}


@reference("tis/verl")
def tis(x):
    mask = x["mask"]
    d = masked(each(lambda o, r: o - r, x["old_logp"], x["rollout_logp"]), mask)
    weight = masked(each(lambda v: min(math.exp(v), x["C"]), d), mask)
    loss = clipped(x, x["clip"], x["clip"], x["clip_c"])[0]
    return {"token_weight": weight, "seq_weight": [min(math.exp(math.fsum(row)), x["C"]) for row in d],
            "loss_token_level": mean(counted(each(lambda a, b: a * b, loss, weight), mask))}


@reference("kl-in-reward/verl")
def kl_in_reward(x):
    d = masked(each(lambda o, r: o - r, x["old_logp"], x["ref_logp"]), x["mask"])
    return {"token_rewards": masked(each(lambda s, v: s - x["beta"] * v, x["token_scores"], d), x["mask"]),
            "reward_kl_penalty": mean([math.fsum(row) / sum(bits) for row, bits in zip(d, x["mask"])])}


@reference("lm-head/stats+grad")
def lm_head(x):
    H, W, T = x["h"], x["W"], x["temperature"]
    V, D = len(W), len(W[0])
    out = {key: [] for key in ("logp", "lse", "mean_logit", "chosen_logit_raw", "entropy", "confidence", "kl_U_p", "kl_p_U")}
    dh, dW, loss = [], [[0.0] * D for _ in range(V)], 0.0
    for h, y, g, ge in zip(H, x["y"], x["g_logp"], x["g_entropy"]):
        raw = [math.fsum(a * b for a, b in zip(h, w)) for w in W]
        z = [v / T for v in raw]
        lse = max(z) + math.log(math.fsum(math.exp(v - max(z)) for v in z))
        logs = [v - lse for v in z]
        p = [math.exp(v) for v in logs]
        entropy = -math.fsum(a * b for a, b in zip(p, logs))
        confidence = -mean(logs)  # mean of -log p over the vocabulary
        for key, value in (("logp", logs[y]), ("lse", lse), ("mean_logit", mean(z)), ("chosen_logit_raw", raw[y]), ("entropy", entropy),
                           ("confidence", confidence), ("kl_U_p", confidence - math.log(V)), ("kl_p_U", math.log(V) - entropy)):
            out[key].append(value)
        loss += g * logs[y] + ge * entropy
        dz = [(g * ((v == y) - p[v]) - ge * p[v] * (logs[v] + entropy)) / T for v in range(V)]
        dh.append([math.fsum(dz[v] * W[v][d] for v in range(V)) for d in range(D)])
        for v in range(V):
            for d in range(D):
                dW[v][d] += dz[v] * h[d]
    return {**out, "loss": loss, "dh": dh, "dW": dW}


@reference("pass@k/unbiased")
def pass_at_k(x):
    return {"value": [[1 - math.comb(x["n"] - c, k) / math.comb(x["n"], k) for k in x["k"]] for c in x["c"]]}


@reference("adamw/torch")
def adamw(x):
    p, m, v, steps = list(x["p"]), [0.0] * len(x["p"]), [0.0] * len(x["p"]), []
    for t, grads in enumerate(x["grads"], 1):
        norm = math.sqrt(math.fsum(g * g for g in grads))
        grads = [g * min(1.0, x["clip"] / (norm + 1e-6)) for g in grads]
        for i, g in enumerate(grads):
            p[i] *= 1 - x["lr"] * x["wd"]
            m[i] += (1 - x["b1"]) * (g - m[i])
            v[i] = x["b2"] * v[i] + (1 - x["b2"]) * g * g
            p[i] -= x["lr"] * (m[i] / (1 - x["b1"] ** t)) / (math.sqrt(v[i] / (1 - x["b2"] ** t)) + x["eps"])
        steps.append({"grad_norm": norm, "p": list(p)})
    return {"steps": steps}


@reference("lr/verl-constant")
def learning_rate(x):
    return {"factor": [min(1.0, step / x["warmup"]) for step in x["steps"]]}


def expected_of(case):
    function = REFERENCES[f"{case['method']}/{case['variant']}"]
    takes_variant = "variant" in function.__code__.co_varnames[:function.__code__.co_argcount]
    return function(case["inputs"], case["variant"]) if takes_variant else function(case["inputs"])


def furthest(mine, other, where):
    """The largest difference of two values of the same shape, relative above 1."""
    if isinstance(mine, dict) or isinstance(other, dict):
        if set(mine) != set(other):
            sys.exit(f"{where}: {sorted(mine)} and {sorted(other)}")
        return max(furthest(mine[k], other[k], f"{where} {k}") for k in mine)
    if isinstance(mine, list):
        if len(mine) != len(other):
            sys.exit(f"{where}: {len(mine)} and {len(other)} values")
        return max([0.0, *(furthest(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(mine, other)))])
    if isinstance(mine, str):
        return 0.0 if mine == other else math.inf
    return abs(mine - other) / max(1.0, abs(other))


def rounded(x):
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    if isinstance(x, list):
        return [rounded(v) for v in x]
    return round(x, 7) + 0.0 if isinstance(x, float) else x


def cases():
    draw = random.Random(11)

    def grid(n):  # what float32 holds exactly
        return round(n * 64) / 64

    lengths, uid = [4, 2, 3, 1, 4, 3], ["a", "a", "a", "b", "b", "b"]
    mask = [[int(t < n) for t in range(4)] for n in lengths]
    rewards = [1, 0, 0.5, -1, 1, 1]

    def table(low, high):
        return [[grid(draw.uniform(low, high)) if bit else 0.0 for bit in bits] for bits in mask]

    def one(method, variant, inputs, name=""):
        made.append({"id": "-".join(filter(None, (method, variant.replace("/", "-"), name))), "method": method, "variant": variant,
                     "inputs": inputs})

    made = []
    more = {"rewards": [*rewards, 0.25], "mask": [*mask, [1, 1, 1, 0]], "uid": [*uid, "c"]}  # and a group of one
    for variant, eps, ddof in (("verl", 1e-6, 1), ("oat-grpo", 1e-8, 1), ("trl-group", 1e-4, 1), ("population-std", 1e-6, 0)):
        inputs = more if variant == "verl" else {"rewards": rewards, "mask": mask, "uid": uid}
        one("grpo", variant, {**inputs, "eps": eps, "ddof": ddof})
    one("grpo", "verl", {"rewards": [1, 1, 1, 0, 0, 0], "mask": mask, "uid": uid, "eps": 1e-6, "ddof": 1}, "all-alike")
    for variant in ("k1", "abs", "k2", "k3", "k3+"):
        one("kl", variant, {"logp": [-0.25, -1.5, -2.0, -0.125, -3.5, -26.0], "ref_logp": [-0.375, -1.0, -2.0, -5.25, -2.25, -1.5]})
    old = table(-3, -0.05)
    new = [[grid(o + draw.uniform(-0.9, 0.9)) if bit else 0.0 for o, bit in zip(row, bits)] for row, bits in zip(old, mask)]
    new[2][1] = old[2][1] + 2.5    # clipped below
    new[5][0] = old[5][0]          # ratio 1
    new[0][3] = old[0][3] + 1.375
    ref, sampler = ([[grid(o + draw.uniform(-0.5, 0.5)) if bit else 0.0 for o, bit in zip(row, bits)] for row, bits in zip(old, mask)]
                    for _ in range(2))
    advantages = [[a if bit else 0.0 for bit in bits] for a, bits in zip((0.875, -0.75, -1.125, 0.625, 0.25, -0.5), mask)]
    policy = {"logp": new, "old_logp": old, "advantages": advantages, "mask": mask}
    one("grpo", "dual-clip", {**policy, "clip_low": 0.2, "clip_high": 0.2, "clip_c": 3.0})
    one("dapo", "dual-clip", {**policy, "clip_low": 0.2, "clip_high": 0.28, "clip_c": 10.0})
    one("agg_loss", "verl-current", {"loss": [[2.0, -1.0, 0.5], [3.0, 8.0, 8.0], [6.0, 6.0, 6.0], [1.0, 1.5, 7.0]],
                                     "mask": [[1, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0]], "const": 5})
    one("accumulation", "exact-vs-legacy", {"per_token": [[2.0, 1.0, 4.0], [5.0, 0.0, 0.0], [3.0, 3.5, 0.0], [8.0, 7.0, 6.0]],
                                            "mask": [[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]]})
    one("dapo", "verl", {"lengths": [3, 1536, 1537, 1700, 2047, 2048], "max_len": 2048, "buffer": 512, "factor": 0.25}, "overlong")
    one("dapo", "verl", {"train_batch": 2, "max_num_gen_batches": 6, "gen_batches": [
        [["q0", [0, 0]], ["q1", [1, 1]], ["q2", [0, 1]]], [["q3", [1, 0]], ["q4", [0, 1]], ["q5", [1, 1]]]]}, "dynamic-sampling")
    one("drgrpo", "oat", {"rewards": rewards, "mask": mask, "uid": uid})
    one("drgrpo", "oat-vs-verl", {**policy, "clip": 0.2, "const": 512})
    confidence, logit = table(11, 19), table(15, 26)
    beyond = [[v if bit else grid(draw.uniform(11, 19)) if t == n else 0.0 for t, (v, bit) in enumerate(zip(row, bits))]
              for row, bits, n in zip(confidence, mask, lengths)]  # a padded batch's first slot behind a response
    for name, rs, ls in (("", rewards, logit), ("all-right", [1] * 6, logit), ("equal-logits", rewards, [[17.5] * 4 for _ in mask])):
        one("ucas", "paper", {"rewards": rs, "confidence": confidence, "chosen_logit": ls, "mask": mask, "uid": uid, "alpha": 0.25,
                              "beta": 0.01, "eps": 1e-6, "ddof": 1}, name)
        one("ucas", "released", {"rewards": rs, "confidence": beyond, "chosen_logit": ls, "mask": mask, "uid": uid, "alpha_pos": 0.2,
                                 "alpha_neg": 0.3, "beta": 0.05, "eps": 1e-6, "ddof": 1}, name)
    for estimator in ("count", "shannon", "mc"):
        for form in ("linear", "exponential", "focal", "reciprocal"):
            one("seed-grpo", f"{estimator}/{form}", {"rewards": [1, 0, 1, 0, 0], "answers": ["4", "9", "4", "1", "9"], "uid": [0] * 5,
                                                     "alpha": 0.03, "seq_logp": [-0.25, -0.75, -0.5, -1.25, -0.375], "estimator": estimator,
                                                     "f": form})
    entropy = table(0.05, 3)
    one("entropy-adv", "paper", {"advantages": advantages, "entropy": entropy, "mask": mask, "alpha": 0.4, "kappa": 2.0})
    one("clip-cov", "released", {**policy, "ratio": 0.25, "lb": 0.5, "ub": 1.25, "clip_low": 1.0, "clip_high": 1.0})
    one("kl-cov", "released", {**policy, "ratio": 0.25, "coef": 1.0})
    for variant in ("released", "trl"):
        one("high-entropy-20", variant, {"entropy": entropy, "rho": 0.2, **policy, "clip_low": 0.2, "clip_high": 0.28, "clip_c": 10.0})
    one("rloo", "verl", more)
    at_end = [[float(r) if t + 1 == n else 0.0 for t in range(4)] for r, n in zip(rewards, lengths)]
    one("reinforce++", "verl", {"token_rewards": at_end, "mask": mask, "gamma": 1.0})
    one("reinforce++-baseline", "verl", {"rewards": rewards, "mask": mask, "uid": uid})
    values = table(-0.5, 1)
    one("ppo-gae", "orz/verl", {"token_rewards": at_end, "values": values, "mask": mask, "gamma": 1.0, "lam": 1.0})
    one("ppo-gae", "verl", {"token_rewards": at_end, "values": values, "mask": mask, "gamma": 0.98, "lam": 0.9})
    returns = [[float(r) * bit for bit in bits] for r, bits in zip(rewards, mask)]
    predicted = [[grid(v + draw.uniform(-0.5, 0.5)) if bit else 0.0 for v, bit in zip(row, bits)] for row, bits in zip(values, mask)]
    one("ppo-gae", "verl", {"vpred": predicted, "returns": returns, "old_values": values, "mask": mask, "clip": 0.2}, "value-loss")
    one("prime", "verl-recipe", {"q": table(-1, 1), "acc": [1, 0, 0, 1, 1, 0], "mask": mask, "uid": [0] * 6, "beta": 0.05, "coef_prm": 5,
                                 "coef_gt": 5})
    one("gspo", "verl", {**policy, "clip_low": 0.0003, "clip_high": 0.0004})
    one("cispo", "verl", {**policy, "clip_low": 0.2, "clip_high": 0.28})
    one("sapo", "verl", {**policy, "tau_pos": 1.0, "tau_neg": 1.05})
    one("tis", "verl", {**policy, "rollout_logp": sampler, "C": 1.25, "clip": 0.2, "clip_c": 3.0})
    one("kl-in-reward", "verl", {"token_scores": at_end, "old_logp": old, "ref_logp": ref, "mask": mask, "beta": 0.002})
    W = [[grid(draw.uniform(-1, 1)) for _ in range(4)] for _ in range(6)]
    h = [[grid(draw.uniform(-2, 2)) for _ in range(4)] for _ in range(3)]
    head = {"h": h, "W": W, "y": [1, 4, 0], "g_logp": [0.5, -1.25, 0.75], "g_entropy": [0.0625, -0.25, 0.125]}
    one("lm-head", "stats+grad", {**head, "temperature": 1.0})
    one("lm-head", "stats+grad", {**head, "temperature": 0.75}, "cooler")
    one("lm-head", "stats+grad", {**head, "W": [W[0]] * 6, "temperature": 1.0}, "uniform")
    one("pass@k", "unbiased", {"n": 12, "c": [0, 1, 4, 11, 12], "k": [1, 2, 3, 6, 12]})
    one("adamw", "torch", {"p": [0.5, -1.5, 2.0], "grads": [[0.25, -0.5, 0.125], [2.0, 3.0, -6.0], [-0.125, 0.375, 0.0]], "lr": 0.02, "wd": 0.1,
                           "b1": 0.9, "b2": 0.99, "eps": 1e-8, "clip": 1.0})
    one("lr", "verl-constant", {"lr": 2e-6, "warmup": 4, "steps": [0, 1, 2, 3, 4, 5, 9]})
    return [{**case, "expected": expected_of(case)} for case in made]


def main():
    if "--against" in sys.argv:
        path = sys.argv[sys.argv.index("--against") + 1]
        with open(path) as file:
            others = json.load(file)["cases"]
        known = [case for case in others if f"{case['method']}/{case['variant']}" in REFERENCES]
        for case in known:
            if (far := furthest(expected_of(case), case["expected"], case["id"])) > 2e-6:
                print(f"{case['id']}: {far:.1e}")
        print(f"{len(known)} of {len(others)} cases computed; the furthest {max(furthest(expected_of(c), c['expected'], c['id']) for c in known):.1e}")
        return
    out = {"schema": 1, "about": "written by tools/make_case_goldens.py, float64", "cases": rounded(cases())}
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "goldens" / "algorithm_cases.json"
    path.write_text(json.dumps(out).replace('{"id"', '\n{"id"').replace("}]}", "}\n]}") + "\n")
    print(path, len(out["cases"]), "cases")


main()
