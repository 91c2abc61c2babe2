"""tests/goldens/released_method_cases.json: what the functions that authors released make of batches of tests/goldens/method_cases.json,
for src/methods/released_code_test.cpp. Those repositories are whole copies of a trainer that no package installs, so what one function of
each computes is written here anew, in its own order, on padded rows in torch; the repository, the file and the function are named."""
import torch

from .common import MAKER, Source, rounded, torch_version, write

cases = []
source = Source()


def add(repository, id, method, variant, inputs, expected):
    cases.append({"id": f"{repository}: {id}", "method": method, "variant": variant, "inputs": inputs, "expected": expected})


def group_scores(rewards, uid, eps=1e-6):
    """verl's outcome advantage of GRPO, which each of these repositories has."""
    A = torch.zeros(len(rewards))
    for group in set(uid):
        rows = [i for i, u in enumerate(uid) if u == group]
        r = torch.tensor([rewards[i] for i in rows])
        mean, std = (r.mean(), r.std()) if len(rows) > 1 else (torch.tensor(0.0), torch.tensor(1.0))
        A[rows] = (r - mean) / (std + eps)
    return A


# hp-luo/STARE (bffb9e7), verl/trainer/ppo/core_algos.py: compute_stare_token_weights, compute_policy_loss_stare.
def stare_weights(log_prob, advantages, mask, both, top, amplify, attenuate):
    omega = torch.ones_like(advantages)
    for sign, factor in ((1, amplify), (-1, attenuate if both else 1.0)):
        candidates = (mask > 0) & (sign * advantages > 0)
        count = int(candidates.sum())
        if count == 0:
            continue
        k = min(count, max(1, int(count * top + 0.999999)))
        chosen = torch.topk(-log_prob[candidates], k).indices
        omega.view(-1)[candidates.view(-1).nonzero().view(-1)[chosen]] = factor
    return omega


def stare():
    id = "objective-0"
    given, mask = source[id]["inputs"], source.tensor(id, "mask")
    old, A, H = source.tensor(id, "old_logp"), source.tensor(id, "advantages"), source.tensor(id, "entropy")
    mean_entropy = float((H * mask).sum() / mask.sum())
    for name, both, top, target in (("one side", False, 0.1, 100), ("both sides", True, 0.25, 100), ("above the target", True, 0.25, mean_entropy / 2)):
        lp = source.tensor(id, "logp").requires_grad_()
        ratio = torch.exp((lp - old).clamp(-20, 20))
        plain = torch.maximum(-A * ratio, -A * ratio.clamp(1 - given["clip_low"], 1 + given["clip_high"]))
        plain = torch.where(A < 0, torch.minimum(plain, -A * given["clip_c"]), plain)
        omega = stare_weights(lp.detach(), A, mask, both, top, 1.1, 0.9) if mean_entropy < target else torch.ones_like(A)
        assert target < 100 or (omega != 1).sum() >= 3
        loss = (plain * omega * mask).sum() / mask.sum()
        loss.backward()
        inputs = {key: given[key] for key in ("logp", "old_logp", "advantages", "entropy", "mask", "clip_low", "clip_high", "clip_c")}
        inputs |= {"variant": "c2" if both else "o1", "top": top, "amplify": 1.1, "attenuate": 0.9, "target_entropy": target}
        add("hp-luo/STARE", name, "stare", "paper", inputs,
            {"per_token": rounded((plain * omega).detach() * mask), "loss": rounded(loss.item()), "grad_per_token": rounded(lp.grad * mask.sum() * mask)})


# txy77/Sample-Polarity-of-RLVR, verl/trainer/ppo/core_algos.py: compute_grpo_outcome_advantage with advantage =
# "token-weighted", token_weighted_metric = "prob", positive low and negative high tokens.
def a3po():
    acc, uid = [1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0], source["grpo-groups-ddof1-reward"]["inputs"]["uid"]
    old, mask = source.tensor("objective-0", "old_logp"), source.tensor("objective-0", "mask")
    for name, share, low, high in (("a fifth", 0.2, 5.0, 5.0), ("a half", 0.5, 3.0, 1.5)):
        A = group_scores([float(a) for a in acc], uid)[:, None] * mask
        for i in range(len(acc)):
            valid = mask[i].nonzero().view(-1)
            if len(valid) == 0:
                continue
            k = max(1, int(len(valid) * share))
            chosen = valid[torch.topk(torch.exp(old[i, valid]), k, largest=not acc[i]).indices]
            A[i, chosen] *= low if acc[i] else high
        inputs = {"acc": acc, "uid": uid, "mask": mask.tolist(), "old_logp": old.tolist(), "share": share, "low_scale": low, "high_scale": high}
        add("txy77/Sample-Polarity-of-RLVR", name, "a3po", "released", inputs, {"advantages": rounded(A)})


# zz-haooo/STEER (b31df71), verl/trainer/ppo/core_algos.py: compute_token_weights, at the first update, where log_prob is
# old_log_prob; the policy loss multiplies each token's loss by the weight.
def steer():
    uid = source["grpo-groups-ddof1-reward"]["inputs"]["uid"]
    rewards, mask, old, H = source["grpo-groups-ddof1-reward"]["inputs"]["rewards"], *(source.tensor("objective-0", k) for k in ("mask", "old_logp", "entropy"))
    A = group_scores(rewards, uid)[:, None] * mask
    p = torch.exp(old).clamp(1e-8, 1 - 1e-8)
    metric = (A / torch.exp(old).clamp(1e-8, 1) * (p * (1 - p) * (torch.log(p) + H))).abs()
    largest, smallest = metric[mask > 0].max(), metric[mask > 0].min()
    for form, low, high in (("linear", 0.8, 1.2), ("exponential", 0.8, 1.0)):
        if form == "linear":
            w = (high - (metric - smallest) * ((high - low) / (largest - smallest))).clamp(low, high)
        else:
            k = -torch.log(torch.tensor(low)) / torch.maximum(largest, torch.tensor(0.02))
            w = torch.exp(-k * metric).clamp(low, 1)
        inputs = {"rewards": rewards, "uid": uid, "mask": mask.tolist(), "old_logp": old.tolist(), "entropy": H.tolist(), "weight_min": low, "weight_max": high}
        add("zz-haooo/STEER", form, "steer", form, inputs, {"advantages": rounded(w * A), "w": rounded(w * mask)})


# Logits of a vocabulary of 11 tokens, sampled ones, and how the policy has moved: [12, 9, 11].
def logits():
    i, t, v = torch.meshgrid(torch.arange(12.0), torch.arange(9.0), torch.arange(11.0), indexing="ij")
    old = 2.5 * torch.sin(1.7 * i + 2.3 * t + 0.9 * v * v)
    new = old + 0.4 * torch.cos(2.9 * i + 1.3 * t + 1.1 * v)
    place = (i * 5 + t * 3)[:, :, 0].long()
    return old, new, torch.where(place % 3 == 1, new.argmax(-1), place % 11)


def of_token(z, token):
    return torch.log_softmax(z, -1).gather(-1, token.unsqueeze(-1)).squeeze(-1)


# CarlanLark/Lp-Reg-dev (33b27e2): compute_policy_loss_lp_reg of verl/trainer/ppo/core_algos.py, apply_min_p of
# verl/workers/actor/dp_actor.py, under minp_old_log_prob = True, kl_type = "low_var_kl".
def cut_by_min_p(z, min_p):
    p = torch.softmax(z, -1)
    return torch.where(p >= min_p * p.amax(-1, keepdim=True), z, torch.tensor(-1e4))


def lp_reg():
    acc, uid, mask = [1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0], source["grpo-groups-ddof1-reward"]["inputs"]["uid"], source.tensor("objective-0", "mask")
    A = group_scores([float(a) for a in acc], uid)[:, None] * mask
    old_z, z, token = logits()
    old, target = of_token(old_z, token) * mask, of_token(cut_by_min_p(old_z, 0.1), token) * mask
    for name, share in (("wrong responses", 0.8), ("one token is none", 0.05)):
        lp = (of_token(z, token) * mask).requires_grad_()
        ratio = torch.exp(lp - old)
        loss = torch.maximum(-A * ratio, -A * ratio.clamp(1 - 1.0, 1 + 9.0))
        selected = torch.zeros_like(mask)
        candidates = ((mask > 0) & (A < 0)).view(-1).nonzero().view(-1)
        k = max(1, int(len(candidates) * share))
        if k > 1:
            selected.view(-1)[candidates[torch.topk(lp.detach().view(-1)[candidates], k, largest=False).indices]] = 1
        held = (selected > 0) & (lp.detach() < target)
        kl = (torch.exp(target - lp) - (target - lp) - 1).clamp(-10, 10)
        loss = torch.where(held, -A * ratio + kl, loss)
        assert name == "one token is none" or (held.sum() >= 2 and selected.sum() > held.sum())
        mean = (loss * mask).sum() / mask.sum()
        mean.backward()
        inputs = {"logp": (lp.detach() * mask).tolist(), "old_logp": old.tolist(), "minp_logp": target.tolist(), "advantages": A.tolist(),
                  "mask": mask.tolist(), "share_wrong": share, "coef": 1, "clip_low": 1, "clip_high": 9, "clip_c": 0}
        add("CarlanLark/Lp-Reg-dev", name, "lp_reg", "released", inputs,
            {"selected": selected.tolist(), "per_token": rounded(loss.detach() * mask), "loss": rounded(mean.item()),
             "grad_per_token": rounded(lp.grad * mask.sum() * mask)})


# CLR-Lab/SimKO (306f4ff): compute_policy_loss_simko of verl/trainer/ppo/core_algos.py, on what _forward_micro_batch of
# verl/workers/actor/dp_actor.py makes of the logits before and now.
def simko():
    acc, uid, mask = [1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0], source["grpo-groups-ddof1-reward"]["inputs"]["uid"], source.tensor("objective-0", "mask")
    A = group_scores([float(a) for a in acc], uid)[:, None] * mask
    old_z, z, token = logits()
    old, old_topk = of_token(old_z, token), torch.log_softmax(old_z, -1)
    law = torch.log_softmax(z, -1)
    H, most = -(law.exp() * law).sum(-1), law.argmax(-1) == token
    for name, K, tau, mix in (("as released", 3, 0.8, 0.01), ("a half", 5, 0.5, 0.3)):
        lp = of_token(z, token).requires_grad_()
        topk = law.topk(K, -1).values.detach().requires_grad_()
        moved = topk - old_topk.topk(K, -1).values
        topk_sum = (torch.exp((lp - old).detach()).unsqueeze(-1) / (torch.exp(moved.detach()) + 1e-8) * torch.exp(moved)).sum(-1)
        threshold = torch.stack([torch.quantile(H[i][mask[i] > 0], tau) if mask[i].any() else torch.tensor(0.0) for i in range(12)])[:, None]
        share = mix * (H > threshold) * mask
        right = (torch.tensor(acc) == 1)[:, None] & (mask > 0)
        ratio = torch.exp(lp - old)
        ratio = torch.where(right, (1 - share) * ratio + share / K * topk_sum, ratio)
        harder = most & (A.sum(-1) < 0)[:, None] & (H > threshold)
        scaled = A * torch.where(harder, 1.1, 1.0)
        loss = torch.maximum(-scaled * ratio, -scaled * ratio.clamp(0.8, 1.2))
        assert (share * right > 0).sum() >= 3 and (harder & (mask > 0)).sum() >= 1
        mean = (loss * mask).sum() / mask.sum()
        mean.backward()
        assert torch.allclose(topk.grad, topk.grad[..., :1].expand_as(topk.grad), atol=1e-9)  # each of the K gets the same
        inputs = {"logp": (lp.detach() * mask).tolist(), "old_logp": (old * mask).tolist(), "advantages": A.tolist(), "mask": mask.tolist(),
                  "margin": ((lp.detach() - law.amax(-1)) * mask).tolist(), "entropy": (H * mask).tolist(), "alpha": mix, "tau": tau, "top_k": K,
                  "clip_low": 0.2, "clip_high": 0.2, "clip_c": 0}
        add("CLR-Lab/SimKO", name, "simko", "released", inputs,
            {"per_token": rounded(loss.detach() * mask), "loss": rounded(mean.item()), "grad_per_token": rounded(lp.grad * mask.sum() * mask),
             "grad_likely": rounded(topk.grad.sum(-1) * mask.sum() * mask)})


def make():
    stare()
    a3po()
    steer()
    lp_reg()
    simko()
    write("released_method_cases.json", f"made by {MAKER}, torch {torch_version()} float64", cases)
