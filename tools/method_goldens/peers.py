"""tests/goldens/peer_method_cases.json: what verl's and TRL's own functions make of the batches of tests/goldens/method_cases.json, for
src/methods/algorithm_cases_test.cpp. verl's file is loaded alone, without what it does not use of its package; of TRL's trainer its loss is
called."""
import collections
import importlib.metadata
import importlib.util
import pathlib
import sys
import types

import numpy as np
import torch
from trl.trainer.grpo_trainer import GRPOTrainer

from .common import MAKER, Source, rounded, write

SITE = pathlib.Path(importlib.util.find_spec("verl").origin).parent.parent


def stub(name, **values):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(values)


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, SITE / (path + ".py"))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Config(dict):
    """An actor's configuration: keys as attributes, None where there is none."""
    def __getattr__(self, key):
        return self.get(key)


def by_group(scores, index):
    """verl.utils.group_mean_std is used by estimators that are not compared."""
    raise NotImplementedError


stub("omegaconf", DictConfig=dict)
stub("tensordict", TensorDict=dict)
stub("verl")
stub("verl.utils", as_torch_index=by_group, group_mean_std=by_group)
stub("verl.utils.device", get_device_name=lambda: "cpu", get_torch_device=lambda: torch.cpu)
stub("verl.utils.import_utils", deprecated=lambda *a, **k: lambda f: f)
stub("verl.trainer")
stub("verl.trainer.config", AlgoConfig=type("AlgoConfig", (), {}))
stub("verl.workers")
stub("verl.workers.config", ActorConfig=Config)
sys.modules["verl.utils"].torch_functional = load("verl/utils/torch_functional", "verl.utils.torch_functional")
core = load("verl/trainer/ppo/core_algos", "verl.trainer.ppo.core_algos")

source = Source()
cases = []


def add(peer, id, expected, **changed):
    case = source[id]
    inputs = {**case["inputs"], **changed}
    cases.append({"id": f"{peer}: {id}", "method": case["method"], "variant": case["variant"], "inputs": inputs, "expected": expected})


def at_the_end(rewards, mask):
    out = torch.zeros_like(mask)
    out[torch.arange(len(mask)), (mask.sum(1) - 1).clamp(min=0).long()] = rewards
    return out


# Advantages of one reward a response.
def outcome(estimator, id, changed=None, **settings):
    inputs, mask = {**source[id]["inputs"], **(changed or {})}, source.tensor(id, "mask")
    found, _ = core.get_adv_estimator_fn(estimator)(token_level_rewards=at_the_end(torch.tensor(inputs["rewards"]), mask),
                                                    response_mask=mask, index=np.array(inputs["uid"]), **settings)
    add("verl", id, {"advantages": rounded(found * mask)}, **(changed or {}))


def gdpo():
    """A response alone in its group is worth its reward in verl and nothing here (methods/advantage/gdpo.cpp): it earns nothing."""
    uid = source["gdpo-verl-one"]["inputs"]["uid"]
    held = [float(uid.count(u) > 1) for u in uid]
    rewards = {"rewards": [r * h for r, h in zip(source["gdpo-verl-one"]["inputs"]["rewards"], held)]}
    outcome("gdpo", "gdpo-verl-one", rewards)
    for id in ("gdpo-verl-equal", "gdpo-verl-weighted"):
        inputs, mask = source[id]["inputs"], source.tensor(id, "mask")
        terms = {name: [r * h for r, h in zip(term, held)] for name, term in inputs["terms"].items()}
        # A response without tokens: verl would put its reward before the first one.
        attended = torch.cat([torch.ones(len(mask), 1), torch.where(mask.sum(1, keepdim=True) > 0, mask, torch.eye(1, mask.shape[1]))], 1)
        outcome("gdpo", id, {**rewards, "terms": terms}, non_tensor_batch=terms,
                config=Config(gdpo_reward_keys=list(terms), gdpo_reward_weights=[inputs["term_weights"][k] for k in terms]),
                batch={"prompts": torch.ones(len(mask), 1), "attention_mask": attended.long()})


def advantages():
    outcome("grpo", "grpo-groups-ddof1-reward")
    outcome("grpo", "drgrpo-verl", norm_adv_by_std_in_grpo=False)
    outcome("rloo", "rloo-groups")
    outcome("reinforce_plus_plus_baseline", "reinforce_pp_baseline-groups")
    outcome("opo", "opo-verl-groups")
    outcome("gpg", "gpg-verl-groups")
    gdpo()
    for id in ("reinforce_pp-gamma-1.0", "reinforce_pp-gamma-0.9"):
        mask = source.tensor(id, "mask")
        found, returns = core.get_adv_estimator_fn("reinforce_plus_plus")(
            token_level_rewards=source.tensor(id, "token_rewards"), response_mask=mask, config=Config(gamma=source[id]["inputs"]["gamma"]))
        add("verl", id, {"advantages": rounded(found * mask), "returns": rounded(returns * mask)})
    for id in ("ppo-gae-1.0", "ppo-gae-0.95"):
        inputs, mask = source[id]["inputs"], source.tensor(id, "mask")
        found, returns = core.compute_gae_advantage_return(source.tensor(id, "token_rewards"), source.tensor(id, "values"), mask,
                                                           torch.tensor(inputs["gamma"]), torch.tensor(inputs["lam"]))
        add("verl", id, {"whitened_verl": rounded(found * mask), "returns": rounded(returns * mask)})


# Losses of a mini-batch and their derivatives, which the program has before the mean: `share` undoes it.
def loss(name, id, aggregation, settings, share=None):
    mask = source.tensor(id, "mask")
    full = mask.sum(1) > 0  # verl's geo_mean divides by responses without tokens, too
    lp = source.tensor(id, "logp").requires_grad_()
    found, _ = core.get_policy_loss_fn(name)(
        old_log_prob=source.tensor(id, "old_logp")[full], log_prob=lp[full], advantages=source.tensor(id, "advantages")[full], response_mask=mask[full],
        loss_agg_mode=aggregation, config=Config(global_batch_info={}, **settings))
    found.backward()
    if share is None:
        share = mask.sum() if aggregation == "token-mean" else full.sum() * mask.sum(1, keepdim=True)
    add("verl", id, {"loss": rounded(found.item()), "grad_per_token": rounded(lp.grad * mask * share)})


def clip(id, **more):
    inputs = source[id]["inputs"]
    low = inputs.get("clip_low", inputs.get("clip"))
    return {"clip_ratio": low, "clip_ratio_low": low, "clip_ratio_high": inputs.get("clip_high", low), **more}


def without_empty(id):
    """verl's seq-mean-token-sum-norm counts responses that have tokens, the form of Oat all: equal where all have some."""
    given = source[id]["inputs"]
    keep = [i for i, row in enumerate(given["mask"]) if any(row)]
    keys = ("logp", "old_logp", "advantages", "mask", "clip_low", "clip_high", "clip_c", "const")
    return {key: [given[key][i] for i in keep] if isinstance(given[key], list) else given[key] for key in keys}


def losses():
    loss("gspo", "gspo-loss", "seq-mean-token-mean", clip("gspo-loss"))
    loss("geo_mean", "gmpo-loss", "seq-mean-token-mean", clip("gmpo-loss"))
    loss("sapo", "sapo-loss", "seq-mean-token-mean", {key: source["sapo-loss"]["inputs"][key] for key in ("tau_pos", "tau_neg")})
    loss("cispo", "cispo-verl-loss", "token-mean", clip("cispo-verl-loss"))
    loss("vanilla", "simplerl-loss", "token-mean", clip("simplerl-loss", clip_ratio_c=1e9))
    loss("gpg", "gpg-loss", "token-mean", {})
    of_kl, of_clip = (source[id]["inputs"] for id in ("kl_cov-loss", "clip_cov-loss"))
    loss("kl_cov", "kl_cov-loss", "token-mean", {"policy_loss": Config(kl_cov_ratio=of_kl["ratio"], ppo_kl_coef=of_kl["coef"])})
    loss("clip_cov", "clip_cov-loss", "token-mean", clip("clip_cov-loss", policy_loss=Config(
        clip_cov_ratio=of_clip["ratio"], clip_cov_lb=of_clip["lb"], clip_cov_ub=of_clip["ub"])))
    for id in ("dppo-tv-loss", "dppo-kl-loss"):
        loss(id.removesuffix("-loss").replace("-", "_"), id, "token-mean", clip(id, clip_ratio_c=source[id]["inputs"]["cap"]))

    # Every mean of the clipped ratio, with the bound of dual clip.
    given, means = without_empty("objective-0"), {}
    tensors = {key: torch.tensor(given[key], dtype=torch.float64) for key in ("old_logp", "logp", "advantages", "mask")}
    for name in ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"):
        batch = {"loss_scale_factor": given["const"]} if name.endswith("norm") else {}
        found, seen = core.get_policy_loss_fn("vanilla")(
            old_log_prob=tensors["old_logp"], log_prob=tensors["logp"], advantages=tensors["advantages"], response_mask=tensors["mask"],
            loss_agg_mode=name, config=Config(global_batch_info=batch, **clip("objective-0", clip_ratio_c=given["clip_c"])))
        means["drgrpo-oat" if name.endswith("norm") else name] = rounded(found.item())
    cases.append({"id": "verl: every mean of the clipped ratio", "method": "dapo", "variant": "default", "inputs": given, "expected": {
                      "loss": means, "ppo_kl": rounded(seen["actor/ppo_kl"]), "clipfrac": rounded(seen["actor/pg_clipfrac"]),
                      "clipfrac_lower": rounded(seen["actor/pg_clipfrac_lower"])}})


class Trainer(types.SimpleNamespace):
    """What GRPOTrainer._compute_loss asks its trainer for."""
    get_high_entropy_mask = GRPOTrainer.get_high_entropy_mask

    def __init__(self, lp, entropy, **settings):
        args = types.SimpleNamespace(delta=settings.pop("delta", None), sapo_temperature_pos=settings.pop("tau_pos", 0),
                                     sapo_temperature_neg=settings.pop("tau_neg", 0))
        super().__init__(**{"aux_loss_enabled": False, "top_entropy_quantile": 1.0, "off_policy_mask_threshold": None, "beta": 0.0,
                            "importance_sampling_level": "token", "use_vllm": False, "_entropy_bonus_enabled": False, "args": args,
                            "model": types.SimpleNamespace(training=False), "current_gradient_accumulation_steps": 1,
                            "_metrics": collections.defaultdict(lambda: collections.defaultdict(list)), **settings})
        self.accelerator = types.SimpleNamespace(num_processes=1, gather=lambda x: x, reduce=lambda x, **_: x, pad_across_processes=lambda x, **_: x, device="cpu")
        self._get_per_token_logps_and_entropies = lambda *_, **__: (lp, entropy, None)


def of_trl(id, **settings):
    """Loss and its derivative by the log-probs; without the responses that have no tokens, by which TRL divides, too."""
    mask = source.tensor(id, "mask")
    full = mask.sum(1) > 0
    lp = source.tensor(id, "logp").requires_grad_()
    entropy = source.tensor(id, "entropy")[full] if "entropy" in source[id]["inputs"] else torch.zeros_like(mask[full])
    given = {"prompt_ids": torch.zeros(int(full.sum()), 1), "prompt_mask": torch.ones(int(full.sum()), 1), "completion_ids": mask[full],
             "completion_mask": mask[full], "advantages": source.tensor(id, "advantages")[full], "old_per_token_logps": source.tensor(id, "old_logp")[full],
             "num_items_in_batch": mask.sum()}
    found = GRPOTrainer._compute_loss(Trainer(lp[full], entropy, **settings), None, given)
    found.backward()
    return found.item(), lp.grad, mask, full


def trl():
    inputs = {id: case["inputs"] for id, case in source.items()}
    clipped = {id: {"epsilon_low": case["clip_low"], "epsilon_high": case["clip_high"]} for id, case in inputs.items() if "clip_low" in case}
    for id, settings in {
            "gspo-loss": {"loss_type": "grpo", "importance_sampling_level": "sequence", **clipped["gspo-loss"]},
            "luspo-loss": {"loss_type": "luspo", "importance_sampling_level": "sequence", **clipped["luspo-loss"]},
            "sapo-loss": {"loss_type": "sapo", **{key: inputs["sapo-loss"][key] for key in ("tau_pos", "tau_neg")}},
            "cispo-trl-loss": {"loss_type": "cispo", "epsilon_high": inputs["cispo-trl-loss"]["cap"]}}.items():
        loss, gradient, mask, full = of_trl(id, epsilon_low=settings.pop("epsilon_low", 0), **settings)
        share = {"cispo": mask.sum(), "luspo": full.sum()}.get(settings["loss_type"], full.sum() * mask.sum(1, keepdim=True))
        add("TRL", id, {"loss": rounded(loss), "grad_per_token": rounded(gradient * mask * share)})
    id = "forking_tokens-trl-loss"
    loss, *_ = of_trl(id, loss_type="bnpo", delta=inputs[id]["clip_c"], top_entropy_quantile=inputs[id]["rho"], **clipped[id])
    add("TRL", id, {"loss_div_all": rounded(loss)})

    id, given = "objective-0", without_empty("objective-0")
    means = {}
    for name, kind in (("token-mean", "bnpo"), ("seq-mean-token-mean", "grpo"), ("drgrpo-oat", "dr_grpo")):
        loss, *_ = of_trl(id, loss_type=kind, delta=given["clip_c"], max_completion_length=given["const"], **clipped[id])
        means[name] = rounded(loss)
    cases.append({"id": "TRL: three means of the clipped ratio", "method": "dapo", "variant": "default", "inputs": given,
                  "expected": {"loss": means}})


def make():
    advantages()
    losses()
    trl()
    about = f"made by {MAKER} with " + ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("verl", "trl"))
    write("peer_method_cases.json", about, cases)
