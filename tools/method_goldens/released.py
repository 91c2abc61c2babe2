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


def make():
    stare()
    a3po()
    steer()
    write("released_method_cases.json", f"made by {MAKER}, torch {torch_version()} float64", cases)
