"""Cases of the methods that weigh tokens or responses by the policy's own probabilities, for tools/make_method_goldens.py:
STARE, differential smoothing, ACE, A3PO, QAE, STEER, Lp-Reg and SimKO. Plain loops over padded rows, as the articles write them. Nothing is drawn at
random, so that the cases of the other methods stay as they are. Nothing here shares a line with the program."""
import math

import torch

from .catalogue import column, rows_of

ACC = [1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0]


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def valid_of(mask, i):
    return [t for t in range(mask.shape[1]) if mask[i, t]]


def add_family_advantages(add, rounded, z_by_group, uid, mask, rewards, old, ref):
    A = z_by_group(rewards, uid, 1e-6, 1, [True] * len(uid), "reward")
    shared = {"rewards": rewards, "mask": mask.tolist(), "uid": uid}
    z = z_by_group([float(a) for a in ACC], uid, 1e-6, 1, [True] * len(uid), "reward")
    with_acc = {"acc": ACC, "mask": mask.tolist(), "uid": uid, "old_logp": old.tolist()}
    for length in ("sum", "mean"):
        of = lambda x, i, length=length: math.fsum(float(x[i, t]) for t in valid_of(mask, i)) / (
            max(1, len(valid_of(mask, i))) if length == "mean" else 1)
        l = [of(old, i) for i in range(len(uid))]
        smooth = [a - 0.05 * l[i] if ACC[i] else a + 0.02 * l[i] for i, a in enumerate(z)]
        add(f"ds_grpo-{length}", "ds_grpo", "paper",
            {**with_acc, "gamma_p": 0.05, "gamma_n": 0.02, "length": length}, {"advantages": rounded(column(smooth, mask)), "l": rounded(l)})
        c = [of(old - ref, i) for i in range(len(uid))]
        assert min(c) < -0.05 and max(c) > 0.05
        penalised = [a * (1 + 0.75 * softplus(c[i])) if a < 0 else a for i, a in enumerate(A)]
        add(f"ace-{length}", "ace", "paper", {**shared, "old_logp": old.tolist(), "ref_logp": ref.tolist(), "alpha": 0.75, "length": length},
            {"advantages": rounded(column(penalised, mask)), "c": rounded(c)})
    scaled = column(z, mask).clone()
    for i, right in enumerate(ACC):
        ranked = sorted(valid_of(mask, i), key=lambda t: (float(old[i, t]) * (1 if right else -1), t))
        for t in ranked[:max(1, int(0.4 * len(ranked)))]:
            scaled[i, t] *= 4 if right else 2.5
    add("a3po-tokens", "a3po", "released", {**with_acc, "share": 0.4, "low_scale": 4, "high_scale": 2.5}, {"advantages": rounded(scaled)})


def quantile(values, K):
    """The smallest value that at least K of the values do not exceed."""
    return min(x for x in values if sum(v <= x for v in values) >= K * len(values))


def add_baselines(add, rounded, uid, mask, rewards):
    for K, variant in ((0.4, "paper"), (0.75, "paper"), (0.4, "released")):
        A = [0.0] * len(uid)
        for rows in rows_of(uid):
            r = [rewards[i] for i in rows]
            mean = math.fsum(r) / len(r)
            for i in rows:
                if len(rows) == 1:
                    A[i] = rewards[i] / (1 + 1e-6)
                elif min(r) < max(r):
                    b = quantile(r, K) if variant == "paper" else float(torch.quantile(torch.tensor(r), K))
                    A[i] = (rewards[i] - b) / (math.sqrt(math.fsum((x - mean) ** 2 for x in r) / (len(r) - 1)) + 1e-6)
        add(f"qae-{K}" + ("-released" if variant == "released" else ""), "qae", variant, {"rewards": rewards, "mask": mask.tolist(), "uid": uid, "quantile": K},
            {"advantages": rounded(column(A, mask)), "A": rounded(A)})


def add_steer(add, rounded, z_by_group, uid, mask, rewards, old, H):
    A = column(z_by_group(rewards, uid, 1e-6, 1, [True] * len(uid), "reward"), mask)
    pi = torch.exp(old).clamp(1e-8, 1 - 1e-8)
    Omega = A * (1 - pi) * (torch.log(pi) + H) * mask
    sizes = Omega.abs()[mask > 0]
    for form in ("linear", "exponential"):
        if form == "linear":
            w = 1.2 - (1.2 - 0.7) * (Omega.abs() - sizes.min()) / (sizes.max() - sizes.min())
        else:
            w = torch.exp(math.log(0.7) * Omega.abs() / max(float(sizes.max()), 0.02))
        add(f"steer-{form}", "steer", form,
            {"rewards": rewards, "mask": mask.tolist(), "uid": uid, "old_logp": old.tolist(), "entropy": H.tolist(), "weight_min": 0.7, "weight_max": 1.2},
            {"advantages": rounded(w * A), "w": rounded(w * mask), "Omega": rounded(Omega)})


def add_family_losses(add, rounded, mask, old, lp0, A, H):
    M = mask.double()
    N = M.sum()
    for name, both in (("o1", False), ("c2", True)):
        omega = torch.ones_like(M)
        for sign, factor in ((1, 1.3), (-1, 0.6 if both else 1.0)):
            ranked = sorted((float(lp0[i, t]), i, t) for i, t in (M > 0).nonzero().tolist() if sign * float(A[i, t]) > 0)
            for _, i, t in ranked[:max(1, math.ceil(0.2 * len(ranked)))]:
                omega[i, t] = factor
        lp = lp0.clone().requires_grad_()
        ratio = torch.exp((lp - old).clamp(-20, 20))
        plain = torch.maximum(-A * ratio, -A * ratio.clamp(0.8, 1.28))
        per_token = omega * torch.where(A < 0, torch.minimum(-10 * A, plain), plain)
        loss = (per_token * M).sum() / N
        loss.backward()
        add(f"stare-{name}-loss", "stare", "paper",
            {"logp": lp0.tolist(), "old_logp": old.tolist(), "advantages": A.tolist(), "entropy": H.tolist(), "mask": mask.tolist(), "top": 0.2,
             "variant": name, "amplify": 1.3, "attenuate": 0.6, "target_entropy": 100, "clip_low": 0.2, "clip_high": 0.28, "clip_c": 10.0},
            {"per_token": rounded(per_token.detach() * M), "loss": rounded(loss.item()), "grad_per_token": rounded(lp.grad * N * M)})


def add_lp_reg(add, rounded, mask, old, lp0, A):
    M = mask.double()
    N = M.sum()
    place = torch.arange(mask.numel()).reshape(mask.shape)
    lp0 = lp0 + place / 1024 * M  # no ties
    q = torch.where(place % 4 == 0, torch.tensor(-1e4), torch.minimum(lp0 + (place % 5 - 1) / 8, torch.tensor(-0.0625))) * M
    valid, wrong = M > 0, (M > 0) & (A < 0)
    fewest = sorted(float(x) for x in lp0[wrong])[:int(0.3 * int(wrong.sum()))]
    chosen_of = {"released": wrong & (lp0 <= fewest[-1]), "paper": wrong & (lp0 < torch.quantile(lp0[valid], 0.3))}
    for variant, chosen in chosen_of.items():
        paper = variant == "paper"
        held = chosen & ((torch.exp(q) > 0) if paper else (lp0 < q))
        assert held.sum() >= 2 and chosen.sum() > held.sum()
        lp = lp0.clone().requires_grad_()
        ratio = torch.exp(lp - old)
        bounded = ratio.clamp(0, 10)
        policy = -A * bounded if paper else torch.maximum(-A * ratio, -A * bounded)  # the article clips both signs
        kl = torch.exp(q - lp) - (q - lp) - 1
        per_token = torch.where(held, policy + 0.5 * kl, policy)
        loss = (per_token * M).sum() / N
        loss.backward()
        add(f"lp_reg-{variant}-loss", "lp_reg", variant,
            {"logp": lp0.tolist(), "old_logp": old.tolist(), "minp_logp": q.tolist(), "advantages": A.tolist(), "mask": mask.tolist(),
             "share_wrong": 0.3, "coef": 0.5, "clip_low": 1, "clip_high": 9, "clip_c": 10 if paper else 0},
            {"selected": chosen.double().tolist(), "per_token": rounded(per_token.detach() * M), "loss": rounded(loss.item()),
             "grad_per_token": rounded(lp.grad * N * M)})


def add_simko(add, rounded, mask, old, lp0, A, H):
    """The gradient of right responses' ratios is shared out between two directions, whose values autograd does not see."""
    M = mask.double()
    N = M.sum()
    place = torch.arange(mask.numel()).reshape(mask.shape)
    margin = torch.where(place % 3 == 0, 0.0, -0.75) * M
    for name, alpha, tau, penalty in (("fifth", 0.01, 0.8, 1.1), ("half", 0.25, 0.5, 1.5)):
        w = torch.zeros_like(M)
        for i in range(mask.shape[0]):
            if valid := valid_of(mask, i):
                w[i, valid] = (H[i, valid] > torch.quantile(H[i, valid], tau)).double()
        smooth, harder = (w > 0) & (A > 0), (w > 0) & (A < 0) & (margin == 0)
        assert smooth.sum() >= 3 and harder.sum() >= 1
        lp, likely = lp0.clone().requires_grad_(), torch.zeros_like(lp0).requires_grad_()
        share = alpha * smooth
        direction = (1 - share) * lp + share * likely
        ratio = torch.exp(lp0 - old) * torch.exp(direction - direction.detach())
        per_token = torch.maximum(-A * ratio, -A * ratio.clamp(0.8, 1.2)) * torch.where(harder, penalty, 1.0)
        loss = (per_token * M).sum() / N
        loss.backward()
        add(f"simko-{name}-loss", "simko", "released",
            {"logp": lp0.tolist(), "old_logp": old.tolist(), "margin": margin.tolist(), "advantages": A.tolist(), "entropy": H.tolist(),
             "mask": mask.tolist(), "alpha": alpha, "tau": tau, "penalty": penalty, "clip_low": 0.2, "clip_high": 0.2, "clip_c": 0},
            {"per_token": rounded(per_token.detach() * M), "loss": rounded(loss.item()), "grad_per_token": rounded(lp.grad * N * M),
             "grad_likely": rounded(likely.grad * N * M)})
