"""Cases of the methods of 2025 and 2026 for tools/make_method_goldens.py, as the articles write them: GPG, OPO, MaxRL,
LUSPO, GDPO, DPPO and on-policy
distillation. Nothing is drawn at random, so that the cases of the other methods stay as they are. Nothing here
shares a line with the program."""
import math

import torch

from .catalogue import column, rows_of, whitened


def mean(xs):
    return math.fsum(xs) / len(xs)


# Rewards of 12 responses; every response belongs to a prompt, some prompts have equal rewards throughout.
def gpg(rewards, uid, preset):
    groups = rows_of(uid)
    if preset == "verl":
        learning = sum(r != 0 for r in rewards)
    else:
        learning = sum(len(rows) for rows in groups if len({rewards[i] for i in rows}) > 1)
    alpha = len(rewards) / max(1, learning)
    A = [0.0] * len(rewards)
    for rows in groups:
        base = mean([rewards[i] for i in rows]) if len(rows) > 1 or preset == "paper" else 0.0
        for i in rows:
            A[i] = alpha * (rewards[i] - base)
    return A


def opo(rewards, uid, lengths, preset):
    A = [0.0] * len(rewards)
    for rows in rows_of(uid):
        base = math.fsum(lengths[i] * rewards[i] for i in rows) / math.fsum(lengths[i] for i in rows)
        for i in rows:
            A[i] = rewards[i] - (0.0 if len(rows) == 1 and preset == "verl" else base)
    return A


# The right responses' mean score less that of all: what each response's score is multiplied by, times N.
def maxrl(right, uid, eps):
    A = [0.0] * len(right)
    for rows in rows_of(uid):
        N, K = len(rows), sum(right[i] for i in rows)
        if K == 0:
            continue
        for i in rows:
            A[i] = N * (right[i] / K - 1 / N) if eps == 0 else (right[i] - K / N) / (K / N + eps)
    return A


# Every part of the reward z-scored in its group, summed, then brought to one size over responses or over tokens.
def gdpo(parts, weights, uid, mask, preset):
    eps = 1e-4 if preset == "paper" else 1e-6
    S = torch.zeros(len(uid))
    for rows in rows_of(uid):
        for part, w in zip(parts, weights):
            r = torch.tensor([part[i] for i in rows])
            if len(rows) > 1:
                S[rows] += w * (r - r.mean()) / (r.std(unbiased=True) + eps)
    if preset == "paper":
        return ((S - S.mean()) / (S.std(unbiased=True) + eps))[:, None] * mask
    return whitened(S[:, None] * mask, mask)


def add_recent_advantages(add, rounded, z_by_group, uid, lengths, mask, rewards):
    shared = {"rewards": rewards, "mask": mask.tolist(), "uid": uid}
    with_zeros = [0.0 if r < 0 else r for r in rewards]  # a reward of 0 is what verl's alpha counts by
    for preset, values in (("paper", rewards), ("verl", with_zeros)):
        A = gpg(values, uid, preset)
        add(f"gpg-{preset}-groups", "gpg", preset, {**shared, "rewards": values}, {"advantages": rounded(column(A, mask)), "A": rounded(A)})
    for preset in ("paper", "verl"):
        A = opo(rewards, uid, lengths, preset)
        add(f"opo-{preset}-groups", "opo", preset, shared, {"advantages": rounded(column(A, mask)), "A": rounded(A)})
    acc = [1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0]
    for preset, eps in (("paper", 0), ("released", 1e-6)):
        A = maxrl(acc, uid, eps)
        add(f"maxrl-{preset}", "maxrl", preset, {"acc": acc, "mask": mask.tolist(), "uid": uid},
            {"advantages": rounded(column(A, mask)), "A": rounded(A)})
    form = [0.5, 0.25, 0.5, 0.0, 0.25, 0.5, 0.5, 0.0, 0.5, 0.25, 0.125, 0.375]
    for preset in ("paper", "verl"):
        add(f"gdpo-{preset}-one", "gdpo", preset, shared, {"advantages": rounded(gdpo([rewards], [1], uid, mask, preset))})
        for name, w in (("equal", 1), ("weighted", 0.375)):
            add(f"gdpo-{preset}-{name}", "gdpo", preset,
                {**shared, "terms": {"right": rewards, "form": form}, "term_weights": {"right": 1, "form": w}},
                {"advantages": rounded(gdpo([rewards, form], [1, w], uid, mask, preset))})
    A = z_by_group(rewards, uid, 1e-6, 1, [True] * len(uid), "reward")
    add("luspo-advantages", "luspo", "paper", {**shared, "eps": 1e-6, "ddof": 1}, {"advantages": rounded(column(A, mask)), "A": rounded(A)})


def add_distill(add, rounded, z_by_group, uid, mask, rewards, old, teacher):
    k = (old - teacher) * mask
    A = column(z_by_group(rewards, uid, 1e-6, 1, [True] * len(uid), "reward"), mask)
    inputs = {"rewards": rewards, "mask": mask.tolist(), "uid": uid, "old_logp": old.tolist(), "teacher_logp": teacher.tolist()}
    add("distill-kl", "distill", "kl", inputs, {"advantages": rounded(-k), "k": rounded(k)})
    add("distill-reward", "distill", "reward", {**inputs, "kl_weight": 0.25, "reward_weight": 2.0},
        {"advantages": rounded((-0.25 * k + 2 * A) * mask)})


def add_recent_losses(add, rounded, mask, old, lp0, A):
    M = mask.double()
    N, n = M.sum(), (M.sum(1) > 0).sum()
    length = M.sum(1).clamp(min=1)
    inputs = {"logp": lp0.tolist(), "old_logp": old.tolist(), "advantages": A.tolist(), "mask": mask.tolist()}
    A = A * M

    # `total` maps lp to the loss of the mini-batch, `share` is what each token's derivative is multiplied by to undo the
    # mean that the program takes.
    def case(name, method, variant, extra, per_token, total, share, more=None):
        lp = torch.tensor(extra.get("logp", lp0.tolist())).requires_grad_()
        loss = total(lp)
        loss.backward()
        add(name, method, variant, {**inputs, **extra},
            {"per_token": rounded(per_token * M), "loss": rounded(loss.item()), "grad_per_token": rounded(lp.grad * share * M),
             **(more or {})})

    case("gpg-loss", "gpg", "paper", {}, -A * lp0, lambda lp: (-A * lp * M).sum() / N, N)

    held = torch.minimum(lp0, torch.tensor(-1 / 64)) * M  # a probability, where a log-prob of the other cases may be above 0
    mu, p0 = torch.exp(torch.minimum(old, torch.tensor(-1 / 64))), torch.exp(held)
    for variant, low, high in (("tv", 0.1, 0.15), ("kl", 0.02, 0.05)):
        if variant == "tv":
            D = (p0 - mu).abs()
        else:
            pair = [torch.stack([x, 1 - x]) for x in (mu, p0)]
            D = (pair[0] * torch.log(pair[0] / pair[1])).sum(0)
        out = ((A > 0) & (p0 > mu) & (D > high)) | ((A < 0) & (p0 < mu) & (D > low))
        assert 2 <= (out * M).sum() <= N - 2 and (D[M > 0] - high).abs().min() > 1e-4 and (D[M > 0] - low).abs().min() > 1e-4
        w = (p0 / mu).clamp(max=1.5) * ~out
        case(f"dppo-{variant}-loss", "dppo", variant, {"clip_low": low, "clip_high": high, "cap": 1.5, "logp": held.tolist(),
                                              "old_logp": torch.log(mu).tolist()}, -w * A * held,
             lambda lp, w=w: (-w * A * lp * M).sum() / N, N, {"clipfrac": rounded(((out * M).sum() / N).item())})

    def of_response(lp):  # one loss a response, as the article has it
        s = torch.exp(((lp - old) * M).sum(1) / length)
        a = A[:, 0]
        return torch.maximum(-a * s, -a * s.clamp(1 - 0.05, 1 + 0.1))

    case("luspo-loss", "luspo", "paper", {"clip_low": 0.05, "clip_high": 0.1}, of_response(lp0)[:, None] * torch.ones_like(M),
         lambda lp: (M.sum(1) * of_response(lp)).sum() / n, n)
