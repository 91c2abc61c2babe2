"""Cases of every method for tools/make_method_goldens.py: advantages by plain loops over padded rows, losses by torch
autograd of the loss as the paper writes it. Nothing here shares a line with the program."""
import itertools
import math
from fractions import Fraction

import torch


def column(A, mask):
    return torch.tensor(A)[:, None] * mask


def rows_of(uid):
    return [[i for i in range(len(uid)) if uid[i] == g] for g in dict.fromkeys(uid)]


def centre(r, uid, alone):
    out = [0.0] * len(r)
    for rows in rows_of(uid):
        mean = math.fsum(r[i] for i in rows) / len(rows)
        for i in rows:
            out[i] = r[i] if len(rows) == 1 and alone else r[i] - mean
        if max(r[i] for i in rows) == min(r[i] for i in rows) and len(rows) > 1:
            for i in rows:
                out[i] = 0.0
    return out


def whitened(x, mask):
    values = x[mask > 0]
    return (x - values.mean()) / torch.sqrt(values.var(unbiased=True) + 1e-8) * mask


def to_go(x, mask, gamma):
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        after = 0.0
        for t in reversed(range(x.shape[1])):
            if mask[i, t]:
                after = float(x[i, t]) + gamma * after
                out[i, t] = after
    return out


# KTAE, with Fisher's test in exact fractions.
def table_p(a, b, c, d):
    return Fraction(math.comb(a + c, a) * math.comb(b + d, b), math.comb(a + b + c + d, a + b))


def two_sided(a, b, c, d):
    seen, p = table_p(a, b, c, d), Fraction(0)
    for k in range(max(0, (a + b) - (b + d)), min(a + c, a + b) + 1):
        q = table_p(k, a + b - k, a + c - k, d - a + k)
        p += q if q <= seen else 0
    return float(p)


def H2(p):
    return -sum(x * math.log2(x) for x in (p, 1 - p) if x > 0)


def ktae(rewards, ids, mask, uid, preset, zero):
    K = torch.zeros(mask.shape)
    lists = [[int(v) for v, m in zip(row, marks) if m] for row, marks in zip(ids.tolist(), mask.tolist())]
    for rows in rows_of(uid):
        right = [i for i in rows if rewards[i] > 0]
        wrong = [i for i in rows if rewards[i] <= 0]
        if not right or not wrong:
            continue
        R, W = sum((lists[i] for i in right), []), sum((lists[i] for i in wrong), [])
        average = (len(R) + len(W)) / 2
        value = {}
        for v in set(R + W):
            a, b = sum(v in lists[i] for i in right), sum(v in lists[i] for i in wrong)
            c, d = len(right) - a, len(wrong) - b
            p = two_sided(a, b, c, d) if preset == "released" else float(table_p(a, b, c, d))
            F = 0.0 if p >= 1 - 1e-6 else math.exp(-2 * p)
            n = a + b + c + d
            IG = H2((a + c) / n) - sum((x + y) / n * H2(x / (x + y)) for x, y in ((a, b), (c, d)) if x + y)
            tf = []
            for tokens in (R, W):
                f = tokens.count(v) / len(tokens) if tokens else 0.0
                tf.append(f * 3 / (f + 2 * (0.5 + 0.5 * len(tokens) / average)) if f else 0.0)
            D = math.asin(math.sqrt(a / (a + c))) - math.asin(math.sqrt(b / (b + d)))
            D += tf[0] / (tf[1] + 1e-5) - tf[1] / (tf[0] + 1e-5)
            x = (F + IG) * D
            sigmoid = lambda z: 0.5 * (1 + math.tanh(z / 2))
            value[v] = 2 * sigmoid(x / 2) - 1 if preset == "released" else sigmoid(x) - 0.5
            if v == zero and preset == "released":
                value[v] = 0.0
        for i in rows:
            for t in range(mask.shape[1]):
                if mask[i, t]:
                    K[i, t] = value[int(ids[i, t])]
    return K


def seed_scale(answers, lp, estimator, f, alpha):
    n = len(answers)
    if n == 1:
        return 0.0, 1.0
    w = [1 / n] * n if estimator == "count" else torch.softmax(torch.tensor(lp), 0).tolist()
    mass = {}
    for i, answer in enumerate(answers):
        mass[answer if answer is not None else f"unread {i}"] = mass.get(answer, 0.0) + w[i]
    p = list(mass.values())
    SE = -sum(math.log(x) for x in p) / len(p) if estimator == "mc" else -sum(x * math.log(x) for x in p)
    x = SE / math.log(n)
    forms = {"linear": 1 - alpha * x, "exponential": math.exp(-alpha * x), "focal": max(0.0, 1 - x) ** alpha,
             "reciprocal": 1 / (1 + alpha * x)}
    return SE, max(0.0, forms[f])


def add_advantages(add, rounded, z_by_group, uid, lengths, mask, rewards, confidence):
    B, T = mask.shape
    shared = {"rewards": rewards, "mask": mask.tolist(), "uid": uid}
    for variant, alone in (("oat", False), ("verl", True)):
        add(f"drgrpo-{variant}", "drgrpo", variant, shared, {"advantages": rounded(column(centre(rewards, uid, alone), mask))})
    A = z_by_group(rewards, uid, 1e-6, 1, [True] * B, "reward")
    for method in ("dapo", "simplerl", "gspo", "cispo", "sapo", "gmpo", "clip_cov", "kl_cov", "forking_tokens"):
        add(f"{method}-advantages", method, "default", {**shared, "eps": 1e-6, "ddof": 1},
            {"advantages": rounded(column(A, mask)), "A": rounded(A)})
    rloo = [0.0] * B
    for rows in rows_of(uid):
        for i in rows:
            others = [rewards[j] for j in rows if j != i]
            rloo[i] = rewards[i] - (math.fsum(others) / len(others) if others else 0.0)
    add("rloo-groups", "rloo", "verl", shared, {"advantages": rounded(column(rloo, mask))})
    base = column(centre(rewards, uid, True), mask)
    add("reinforce_pp_baseline-groups", "reinforce_pp_baseline", "verl", shared, {"advantages": rounded(whitened(base, mask))})
    token = torch.round(torch.randn(B, T) * 8) / 8 * mask
    for gamma in (1.0, 0.9):
        returns = to_go(token, mask, gamma)
        add(f"reinforce_pp-gamma-{gamma}", "reinforce_pp", "verl", {"token_rewards": token.tolist(), "mask": mask.tolist(), "gamma": gamma},
            {"returns": rounded(returns), "advantages": rounded(whitened(returns, mask))})
    u = [float((confidence[i] * mask[i]).sum()) / n if (n := lengths[i]) else 0.0 for i in range(B)]
    certain = z_by_group(u, uid, 1e-6, 1, [n > 0 for n in lengths], "reward")
    add("intuitor-groups", "intuitor", "paper", {**shared, "confidence": confidence.tolist(), "eps": 1e-6, "ddof": 1},
        {"u": rounded(u), "advantages": rounded(column(certain, mask))})
    ids = torch.randint(3, 9, mask.shape) * mask
    for preset in ("released", "paper"):
        K = ktae(rewards, ids, mask, uid, preset, 5)
        add(f"ktae-{preset}-groups", "ktae", preset, {**shared, "responses": ids.tolist(), "zero_token": 5},
            {"A": rounded(A), "K": rounded(K), "advantages": rounded((column(A, mask) + K) * mask)})
    answers = [None if i % 5 == 4 else str(i % 3) for i in range(B)]
    lp = [round(-0.1 - 0.07 * ((3 * i) % 7), 3) for i in range(B)]
    for estimator in ("mc", "shannon", "count"):
        for f in ("linear", "exponential", "focal", "reciprocal"):
            SE, scale = [0.0] * B, [1.0] * B
            for rows in rows_of(uid):
                s = seed_scale([answers[i] for i in rows], [lp[i] for i in rows], estimator, f, 0.3)
                for i in rows:
                    SE[i], scale[i] = s
            c = centre(rewards, uid, True)
            add(f"seed_grpo-{estimator}-{f}", "seed_grpo", f"{estimator}/{f}",
                {"rewards": rewards, "answers": answers, "uid": uid, "alpha": 0.3, "seq_logp": lp, "estimator": estimator, "f": f},
                {"SE": rounded(SE), "scale": rounded(scale), "advantages": rounded([a * s for a, s in zip(c, scale)])})
    value = torch.round(torch.randn(B, T) * 16) / 16 * mask
    for gamma, lam in ((1.0, 1.0), (0.99, 0.95)):
        nxt = torch.cat([value[:, 1:], torch.zeros(B, 1)], 1)
        raw = to_go((token + gamma * nxt - value) * mask, mask, gamma * lam)
        valid = raw[mask > 0]
        orz = (raw - valid.mean()) / torch.sqrt(valid.var(unbiased=False).clamp(min=1e-8)) * mask
        add(f"ppo-gae-{lam}", "ppo", "orz/verl", {"token_rewards": token.tolist(), "values": value.tolist(), "mask": mask.tolist(),
            "gamma": gamma, "lam": lam},
            {"raw": rounded(raw), "returns": rounded((raw + value) * mask), "whitened_verl": rounded(whitened(raw, mask)),
             "normalized_orz": rounded(orz)})


# Pass@k training by its definition: every set of k responses, z-scored among the sets, averaged over those of a response.
def passk(right, k):
    sets = list(itertools.combinations(range(len(right)), k))
    rewards = [float(any(right[i] for i in s)) for s in sets]
    mean = math.fsum(rewards) / len(sets) if sets else 0.0
    deviation = math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / len(sets)) if sets else 0.0
    if deviation == 0:
        return [0.0] * len(right)
    share = lambda i: [(r - mean) / deviation for s, r in zip(sets, rewards) if i in s]
    return [math.fsum(share(i)) / len(share(i)) for i in range(len(right))]


def add_verdicts(add, rounded, mask):
    uid = [0] * 6 + [1] + [2] * 3 + [3] * 2
    acc = [0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0]
    inputs = {"acc": acc, "mask": mask.tolist(), "uid": uid}
    for k in (1, 2, 3, 4):
        A = [0.0] * len(uid)
        for rows in rows_of(uid):
            for i, a in zip(rows, passk([acc[i] for i in rows], k)):
                A[i] = a
        add(f"passk-{k}", "passk", "paper", {**inputs, "k": k}, {"advantages": rounded(column(A, mask)), "A": rounded(A)})
    for preset, for_right, for_wrong in (("w_reinforce", 0.1, -1.0), ("nsr", 0.0, -1.0), ("psr", 1.0, 0.0)):
        A = [for_right if right else for_wrong for right in acc]
        add(f"nsr-{preset}", "nsr", preset, inputs, {"advantages": rounded(column(A, mask)), "A": rounded(A)})


def add_prime(add, rounded):
    # No empty response here: what the codes do with one is accidental.
    uid, lengths = [0, 0, 0, 1, 2, 2], [4, 1, 3, 2, 5, 5]
    mask = torch.tensor([[1 if t < n else 0 for t in range(5)] for n in lengths])
    acc = torch.tensor([1.0, 0, 1, 1, 0, 1])
    q = torch.round(torch.randn(mask.shape) * 32) / 32 * mask
    beta = 0.05
    for variant in ("verl", "authors"):
        x = q.clone() if variant == "authors" else beta * q
        if variant == "verl":
            for i, n in enumerate(lengths):
                x[i, n - 1] = 0
        norm = float(to_go(x, mask, 1.0).abs().max()) + 1e-6
        x = x / norm
        total = torch.zeros(mask.shape)
        for rows in rows_of(uid):
            n = len(rows)
            means = [float(x[i].sum()) / lengths[i] for i in rows]
            for i in rows:
                own = x[i] * n / (n - 1) - sum(means) / (n - 1) if n > 1 else x[i]
                total[i] = 5 * own * mask[i]
                others = [float(acc[j]) for j in rows if j != i]
                total[i, lengths[i] - 1] += 5 * (float(acc[i]) - (sum(others) / len(others) if others else 0.0))
        returns = to_go(total, mask, 1.0)
        ce = torch.nn.functional.binary_cross_entropy_with_logits(beta * (q * mask).sum(1), acc)
        add(f"prime-{variant}-groups", "prime", variant, {"q": q.tolist(), "acc": acc.tolist(), "mask": mask.tolist(), "uid": uid,
            "beta": beta, "coef_prm": 5, "coef_gt": 5},
            {"ce_loss": rounded(ce.item()), "token_rewards": rounded(x * mask), "normalizer": rounded(norm),
             "reward_sum": rounded(total), "returns": rounded(returns), "advantages": rounded(whitened(returns, mask))})


def add_losses(add, rounded, mask, old, lp0, A, H):
    M = mask.double()
    N, L = M.sum(), M.sum(1).clamp(min=1)
    n = (M.sum(1) > 0).sum()
    token_mean, token_weight = (lambda x: (x * M).sum() / N), N * torch.ones_like(M)
    seq_mean, seq_weight = (lambda x: ((x * M).sum(1) / L).sum() / n), (n * L)[:, None] * torch.ones_like(M)
    inputs = {"logp": lp0.tolist(), "old_logp": old.tolist(), "advantages": A.tolist(), "mask": mask.tolist()}
    valid = M > 0

    def clipped(lp, low, high, c=0.0, A=A):
        ratio = torch.exp((lp - old).clamp(-20, 20))
        loss = torch.maximum(-A * ratio, -A * ratio.clamp(1 - low, 1 + high))
        return torch.where(A < 0, torch.minimum(-A * c, loss), loss) if c else loss

    def case(name, method, variant, extra, per_token, aggregate, weight, more=None):
        lp = lp0.clone().requires_grad_()
        loss = aggregate(per_token(lp))
        loss.backward()
        add(name, method, variant, {**inputs, **extra},
            {"per_token": rounded(per_token(lp0).detach() * M), "loss": rounded(loss.item()),
             "grad_per_token": rounded(lp.grad * weight * M), **(more or {})})

    def gspo(lp):
        s = torch.exp((((lp - old) * M).sum(1) / L)[:, None] * torch.ones_like(M))
        return torch.maximum(-A * s, -A * s.clamp(1 - 0.05, 1 + 0.1))

    def gmpo(lp):
        x = lp - old
        x = torch.where(A > 0, torch.minimum(x, torch.tensor(0.3)), torch.maximum(x, torch.tensor(-0.2)))
        return -A * torch.exp((x * M).sum(1) / L)[:, None]

    def sapo(lp):
        tau = torch.where(A > 0, 1.3, 1.7)
        return -4 / tau * torch.sigmoid(tau * (torch.exp(lp - old) - 1)) * A

    case("gspo-loss", "gspo", "verl", {"clip_low": 0.05, "clip_high": 0.1}, gspo, seq_mean, seq_weight)
    case("gmpo-loss", "gmpo", "paper", {"clip_low": 0.2, "clip_high": 0.3}, gmpo, seq_mean, seq_weight)
    case("sapo-loss", "sapo", "verl", {"tau_pos": 1.3, "tau_neg": 1.7}, sapo, seq_mean, seq_weight)
    for variant, extra, w in (("verl", {"clip_low": 0.2, "clip_high": 0.28}, torch.exp(lp0 - old).clamp(0.8, 1.28)),
                              ("trl", {"cap": 1.4}, torch.exp(lp0 - old).clamp(max=1.4))):
        case(f"cispo-{variant}-loss", "cispo", variant, extra, lambda lp, w=w: -w * A * lp, token_mean, token_weight,
             {"weight": rounded(w * M)})
    case("simplerl-loss", "simplerl", "clip", {"clip": 0.2}, lambda lp: clipped(lp, 0.2, 0.2), token_mean, token_weight)
    psi = torch.minimum(0.4 * H, A.abs() / 2) * M
    case("entropy_adv-loss", "entropy_adv", "paper", {"entropy": H.tolist(), "alpha": 0.4, "kappa": 2.0, "clip_low": 0.2,
         "clip_high": 0.28, "clip_c": 10.0}, lambda lp: clipped(lp, 0.2, 0.28, 10.0, A + psi), token_mean, token_weight,
         {"psi": rounded(psi), "advantages": rounded((A + psi) * M)})

    cov = (A - A[valid].mean()) * (lp0 - lp0[valid].mean()) * M
    order = sorted((-float(cov[i, t]), i, t) for i, t in valid.nonzero().tolist())
    k = max(1, int(0.2 * float(N)))
    chosen = torch.zeros_like(M)
    for _, i, t in order[:k]:
        chosen[i, t] = 1
    case("kl_cov-loss", "kl_cov", "released", {"ratio": 0.2, "coef": 0.7},
         lambda lp: -A * torch.exp(lp - old) + 0.7 * chosen * (lp - old).abs(), token_mean, token_weight,
         {"cov": rounded(cov), "selected": chosen.tolist(), "k": k})
    ratio = torch.exp(lp0 - old)
    held = torch.maximum(-A * ratio, -A * ratio.clamp(0.5, 1.5)) > -A * ratio
    candidates = ((cov > 0.2) & (cov < 0.9) & ~held & valid).double()
    assert 1 <= candidates.sum() <= int(0.5 * float(N))  # all of them are taken: nothing is left to chance
    case("clip_cov-loss", "clip_cov", "released", {"ratio": 0.5, "lb": 0.2, "ub": 0.9, "clip_low": 0.5, "clip_high": 0.5},
         lambda lp: clipped(lp, 0.5, 0.5) * (1 - candidates), token_mean, token_weight,
         {"cov": rounded(cov), "selected": candidates.tolist(), "clip_num": int(0.5 * float(N))})
    for variant in ("released", "trl"):
        if variant == "released":
            keep = sorted((-float(H[i, t]), i, t) for i, t in valid.nonzero().tolist())[:max(1, int(float(N) * 0.3 + 0.9999))]
            threshold = -keep[-1][0]
        else:
            threshold = float(torch.quantile(H[valid], 0.7))
            keep = [(0, i, t) for i, t in valid.nonzero().tolist() if float(H[i, t]) >= threshold]
        chosen = torch.zeros_like(M)
        for _, i, t in keep:
            chosen[i, t] = 1
        loss = (clipped(lp0, 0.2, 0.28, 10.0) * chosen).sum()
        add(f"forking_tokens-{variant}-loss", "forking_tokens", variant,
            {**inputs, "entropy": H.tolist(), "rho": 0.3, "clip_low": 0.2, "clip_high": 0.28, "clip_c": 10.0},
            {"threshold": rounded(threshold), "selected": chosen.tolist(), "loss_div_selected": rounded((loss / chosen.sum()).item()),
             "loss_div_all": rounded((loss / N).item())})
