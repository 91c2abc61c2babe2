"""tests/goldens/method_cases.json: random batches for the methods and the objective, with what a second, independent implementation
(padded arrays, torch autograd, float64) makes of them."""
import math

import torch

from . import catalogue, family, recent
from .common import MAKER, rounded, torch_version, write


def lengths_to_mask(lengths):
    width = max(lengths)
    return torch.tensor([[1 if t < n else 0 for t in range(width)] for n in lengths])


def quarter_steps(x):  # inputs that float32 holds exactly
    return torch.round(x * 64) / 64


def z_by_group(values, uid, eps, ddof, counted, alone):
    out = [0.0] * len(values)
    for group in set(uid):
        rows = [i for i in range(len(uid)) if uid[i] == group and counted[i]]
        everyone = [i for i in range(len(uid)) if uid[i] == group]
        xs = [values[i] for i in rows]
        if len(everyone) == 1 and alone == "reward":
            out[everyone[0]] = values[everyone[0]] / (1 + eps)
            continue
        if len(xs) < 2 or max(xs) == min(xs):
            continue
        mean = math.fsum(xs) / len(xs)
        std = math.sqrt(math.fsum((x - mean) ** 2 for x in xs) / (len(xs) - ddof))
        for i in rows:
            out[i] = (values[i] - mean) / (std + eps)
    return out


def ucas(rewards, confidence, logit, mask, uid, alpha_pos, alpha_neg, beta, eps, ddof, alone, c=None):
    B, T = mask.shape
    A = z_by_group(rewards, uid, eps, ddof, [True] * B, alone)
    lengths = mask.sum(1).tolist()
    if c is None:
        c = [float((confidence[i] * mask[i]).sum() / lengths[i]) if lengths[i] else 0.0 for i in range(B)]
    C_hat = z_by_group(c, uid, eps, ddof, [n > 0 for n in lengths], "zero")
    W = [math.exp(-alpha_pos * z) if a > 0 else math.exp(alpha_neg * z) if a < 0 else 1.0 for a, z in zip(A, C_hat)]
    A_mod = [w * a for w, a in zip(W, A)]
    l_hat = torch.zeros(B, T)
    final = torch.zeros(B, T)
    for i in range(B):
        n = lengths[i]
        if n == 0:
            continue
        low, high = float(logit[i, :n].min()), float(logit[i, :n].max())
        for t in range(n):
            l_hat[i, t] = (float(logit[i, t]) - low) / (high - low + eps) if high > low else 0.0
            shaped = A_mod[i] - beta * float(l_hat[i, t])
            final[i, t] = shaped if A_mod[i] < 0 else max(0.0, shaped)
    return A, C_hat, W, A_mod, l_hat, final


def make():
    torch.manual_seed(5)
    cases = []

    def add(name, method, variant, inputs, expected):
        cases.append({"id": name, "method": method, "variant": variant, "inputs": inputs, "expected": expected})

    # Groups of 5, 1, 4 and 2; an empty response, one of a single token, an all-right group, rewards with shaping.
    uid = [0] * 5 + [1] + [2] * 4 + [3] * 2
    lengths = [7, 3, 9, 1, 4, 5, 6, 0, 9, 2, 3, 8]
    mask = lengths_to_mask(lengths)
    rewards = [1.0, -1.0, 0.75, -1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 0.5, 0.6875, 0.6875]
    confidence = quarter_steps(14 + 3 * torch.rand(mask.shape)) * mask
    logit = quarter_steps(15 + 12 * torch.rand(mask.shape)) * mask
    shared = {"rewards": rewards, "mask": mask.tolist(), "uid": uid}
    for eps, ddof, alone in ((1e-6, 1, "reward"), (1e-4, 1, "zero"), (1e-6, 0, "reward")):
        A = z_by_group(rewards, uid, eps, ddof, [True] * len(uid), alone)
        add(f"grpo-groups-ddof{ddof}-{alone}", "grpo", "verl",
            {**shared, "eps": eps, "ddof": ddof, "group_of_one": alone},
            {"advantages": rounded(torch.tensor(A)[:, None] * mask), "A": rounded(A)})
    for name, alpha_pos, alpha_neg, beta in (("both", 0.25, 0.25, 0.01), ("response-only", 0.25, 0.25, 0.0),
                                             ("token-only", 0.0, 0.0, 0.01), ("two-alphas", 0.1, 0.4, 0.3),
                                             ("clamped", 0.25, 0.25, 2.0)):
        for ddof in (1, 0):
            A, C_hat, W, A_mod, l_hat, final = ucas(rewards, confidence, logit, mask, uid, alpha_pos, alpha_neg, beta,
                                                    1e-6, ddof, "reward")
            add(f"ucas-groups-{name}-ddof{ddof}", "ucas", "paper",
                {**shared, "confidence": confidence.tolist(), "chosen_logit": logit.tolist(), "alpha_pos": alpha_pos,
                 "alpha_neg": alpha_neg, "beta": beta, "eps": 1e-6, "ddof": ddof},
                {"advantages": rounded(final), "A": rounded(A), "C_hat": rounded(C_hat), "W": rounded(W),
                 "A_mod": rounded(A_mod), "l_hat": rounded(l_hat)})

    # The whole objective by autograd: clipped ratio, entropy bonus, k3 KL, every aggregation; one response is empty.
    M = mask.double()
    for number, (low, high, c, entropy_coeff, kl_coeff) in enumerate(((0.2, 0.28, 10.0, 0.0, 0.0),
                                                                     (0.2, 0.2, 1.5, 0.001, 0.0),
                                                                     (0.1, 0.3, 0.0, -0.02, 0.04))):
        old = quarter_steps(-3 * torch.rand(mask.shape)) * M
        lp0 = old + quarter_steps(torch.randn(mask.shape)) * M
        lp0[0, 0] = old[0, 0]  # ratio 1
        ref = quarter_steps(old + 0.5 * torch.randn(mask.shape)) * M
        A = quarter_steps(torch.randn(len(uid), 1)) * M
        A[3] = 0
        H0 = quarter_steps(2 * torch.rand(mask.shape)) * M
        inputs = {"logp": lp0.tolist(), "old_logp": old.tolist(), "ref_logp": ref.tolist(), "advantages": A.tolist(),
                  "entropy": H0.tolist(), "mask": mask.tolist(), "uid": uid, "clip_low": low, "clip_high": high, "clip_c": c,
                  "const": 16, "entropy_coeff": entropy_coeff, "kl_coeff": kl_coeff}
        n = (M.sum(1) > 0).sum()
        means = {
            "token-mean": lambda x: (x * M).sum() / M.sum(),
            "seq-mean-token-mean": lambda x: ((x * M).sum(1) / M.sum(1).clamp(min=1)).sum() / n,
            "seq-mean-token-sum": lambda x: (x * M).sum() / n,
            "seq-mean-token-sum-norm": lambda x: (x * M).sum() / 16,
            "drgrpo-oat": lambda x: (x * M).sum(1).div(16).mean(),
            "group-token-mean": lambda x: torch.stack([(x * M)[rows].sum() / M[rows].sum() for rows in rows_of]).mean(),
        }
        rows_of = [[i for i in range(len(uid)) if uid[i] == group] for group in sorted(set(uid))]  # all have tokens
        expected = {}
        for name, aggregate in means.items():
            lp, H = lp0.clone().requires_grad_(), H0.clone().requires_grad_()
            ratio = torch.exp((lp - old).clamp(-20, 20))
            loss = torch.maximum(-A * ratio, -A * ratio.clamp(1 - low, 1 + high))
            if c:
                loss = torch.where(A < 0, torch.minimum(-A * c, loss), loss)
            d = lp - ref
            kl = (torch.exp((-d).clamp(-20, 20)) + d - 1).clamp(-10, 10)
            total = aggregate(loss) - entropy_coeff * aggregate(H) + kl_coeff * aggregate(kl)
            total.backward()
            H_grad = torch.zeros_like(H) if H.grad is None else H.grad
            # without kl_coeff the KL is not computed at all
            expected[name] = {"loss": rounded(total.item()), "d_logp": rounded(lp.grad), "d_entropy": rounded(H_grad),
                              "entropy": rounded(aggregate(H).item()),
                              "kl": rounded(aggregate(kl).item() if kl_coeff else 0.0)}
            with torch.no_grad():
                l1, l2 = -A * ratio, -A * ratio.clamp(1 - low, 1 + high)
                lower = (A < 0) & (torch.maximum(l1, l2) > -A * c) if c else torch.zeros_like(A, dtype=torch.bool)
                for key, value in (("clipfrac", (l2 > l1).double()), ("clipfrac_lower", lower.double()), ("ppo_kl", old - lp)):
                    expected[name][key] = rounded(((value * M).sum() / M.sum()).item())
        add(f"objective-{number}", "objective", "autograd", inputs, expected)

    catalogue.add_advantages(add, rounded, z_by_group, uid, lengths, mask, rewards, confidence)
    catalogue.add_prime(add, rounded)
    distinct_H = torch.argsort(torch.argsort(torch.rand(mask.numel()))).reshape(mask.shape) / 32 * M  # no ties
    catalogue.add_losses(add, rounded, mask, old, lp0, A, distinct_H)
    catalogue.add_verdicts(add, rounded, mask)
    recent.add_recent_advantages(add, rounded, z_by_group, uid, lengths, mask, rewards)
    recent.add_distill(add, rounded, z_by_group, uid, mask, rewards, old, ref)
    recent.add_recent_losses(add, rounded, mask, old, lp0, A)

    # UCAS with another confidence of the response: its tokens' log-probs, or how many of its group agree with it.
    answers = ["a", "b", "a", None, "a", "a", "a", "", "b", "c", "b", "b"]
    for name, c, variant, inputs in (
            ("logprob", [float((old[i] * M[i]).sum()) / n if (n := lengths[i]) else 0.0 for i in range(len(uid))], "logprob",
             {"old_logp": old.tolist()}),
            ("self_consistency", [sum(u == uid[i] and b == a for u, b in zip(uid, answers)) / uid.count(uid[i])
                                  if (a := answers[i]) else 1 / uid.count(uid[i]) for i in range(len(uid))], "paper",
             {"answers": answers, "response_confidence": "self_consistency"})):
        _, C_hat, W, _, _, final = ucas(rewards, confidence, logit, mask, uid, 0.25, 0.25, 0.01, 1e-6, 1, "reward", c)
        add(f"ucas-{name}", "ucas", variant, {**shared, **inputs, "chosen_logit": logit.tolist()},
            {"conf": rounded(c), "advantages": rounded(final), "C_hat": rounded(C_hat), "W": rounded(W)})
    family.add_family_advantages(add, rounded, z_by_group, uid, mask, rewards, old, ref)
    family.add_baselines(add, rounded, uid, mask, rewards)
    family.add_steer(add, rounded, z_by_group, uid, mask, rewards, old, distinct_H)
    family.add_family_losses(add, rounded, mask, old, lp0, A, distinct_H)
    family.add_lp_reg(add, rounded, mask, old, lp0, A)
    family.add_simko(add, rounded, mask, old, lp0, A, distinct_H)

    write("method_cases.json", f"written by {MAKER}, torch {torch_version()} float64", cases, last_line=True)
