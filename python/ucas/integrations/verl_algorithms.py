"""Advantages and losses of every method in verl: with VERL_USE_EXTERNAL_MODULES=ucas.integrations.verl_algorithms,

    algorithm.adv_estimator=ucas_rloo  actor_rollout_ref.actor.policy_loss.loss_mode=ucas_gspo

verl hands an estimator rewards, mask and prompts, and a loss the log-probs of a micro-batch: a method that reads more (UCAS: confidence and
raw logit) is refused by name when it is used. For settings of your own call `register` in a module that you name there instead.
"""
import torch
from verl.trainer.ppo.core_algos import agg_loss, register_adv_est, register_policy_loss

from .. import advantages, methods, token_loss


def register(name, method, preset="", settings=None, objective=None):
    """`method` under `name`, as an advantage estimator and as a policy loss."""

    @register_adv_est(name)
    def estimate(token_level_rewards, response_mask, config=None, index=None, **_):
        mask = response_mask.bool().cpu()
        if index is None:
            raise ValueError(f"{name}: verl's batch has no uid, so responses to a prompt are not known as such")
        shaped = advantages(method, preset, settings, reward=token_level_rewards.sum(-1).cpu(), group=index, mask=mask)
        advantage = torch.from_numpy(shaped.advantage).to(token_level_rewards)
        return advantage, advantage

    @register_policy_loss(name)
    def loss(old_log_prob, log_prob, advantages, response_mask, loss_agg_mode="token-mean", config=None, rollout_is_weights=None):
        given = {"logprob": log_prob, "old_logprob": old_log_prob, "advantage": advantages}
        found = token_loss(method, preset, settings, objective, mask=response_mask.bool().cpu(),
                           **{key: value.detach().float().cpu() for key, value in given.items()})
        value, slope, clipped = (torch.from_numpy(found[key]).to(log_prob) for key in ("loss", "d_logprob", "clipped"))
        mask = response_mask * torch.from_numpy(found["mark"]).to(response_mask) if found["only_marked"] else response_mask
        per_token = value + slope * (log_prob - log_prob.detach())  # its value, and its gradient
        if rollout_is_weights is not None:
            per_token = per_token * rollout_is_weights
        share = (clipped * response_mask).sum() / response_mask.sum().clamp(min=1)
        return (agg_loss(loss_mat=per_token, loss_mask=mask, loss_agg_mode=loss_agg_mode, **config.global_batch_info),
                {"actor/pg_clipfrac": share.item()})


for _name in methods():
    register(f"ucas_{_name}", _name)
