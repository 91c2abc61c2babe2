"""TRL's GRPOTrainer with the advantages of any method:

    trainer = UcasTrainer(model, reward_funcs=accuracy_reward, args=GRPOConfig(...), train_dataset=...,
                          method="ucas", preset="paper", settings={"beta": 0.02})

The loss stays TRL's (`loss_type`, `epsilon`, `beta` of its config). Signals of the tokens (log-prob, entropy, confidence, raw logit) come
from one more forward pass of the policy, a response at a time. A response is right where its weighted reward is above 0.
"""
import torch
from trl import GRPOTrainer

from .. import advantages, method as describe
from .._ucas import Error

_GIVEN = {"old_logprob", "entropy", "confidence", "logit", "margin", "ref_logprob"}


class UcasTrainer(GRPOTrainer):
    def __init__(self, *args, method="ucas", preset="", settings=None, **kwargs):
        if absent := set(describe(method, preset, settings)["needs"]) - _GIVEN:
            raise Error(f"{method} needs {', '.join(sorted(absent))}, which TRL's trainer does not hold")
        self._shaping = {"method": method, "preset": preset, "settings": settings}
        self._rewards = None  # [responses of all processes, reward functions]
        super().__init__(*args, **kwargs)

    def _calculate_rewards(self, *args, **kwargs):
        self._rewards = super()._calculate_rewards(*args, **kwargs)
        return self._rewards

    def _generate_and_score_completions(self, inputs):
        output = super()._generate_and_score_completions(inputs)
        if not self.model.training:
            return output
        signals = {**self._signals(output), "token": output["completion_ids"]}
        if "ref_per_token_logps" in output:
            signals["ref_logprob"] = output["ref_per_token_logps"]
        rows, width = output["completion_mask"].shape
        together = lambda x: self.accelerator.gather(self.accelerator.pad_across_processes(x.contiguous(), dim=1)).cpu()  # noqa: E731
        mask, signals = together(output["completion_mask"]).bool(), {name: together(x) for name, x in signals.items()}
        weighted = self._rewards * self.reward_weights.to(self._rewards.device)
        known = ~torch.isnan(self._rewards).all(1).cpu()  # rows that no function scored push nothing
        ended = torch.isin(signals["token"], torch.tensor(self.eos_token_ids)).logical_and(mask).any(1)
        group = torch.arange(len(mask)) // self.num_generations
        batch = {"reward": weighted.nansum(1).cpu()[known], "group": group[known], "mask": mask[known], "finished": ended[known],
                 "stop_ids": self.eos_token_ids, **{name: x[known] for name, x in signals.items()}}
        shaped = advantages(**self._shaping, batch=batch)
        every = torch.zeros(mask.shape)
        every[known] = torch.from_numpy(shaped.advantage)
        first = self.accelerator.process_index * rows
        output["advantages"] = every[first:first + rows, :width].to(output["completion_ids"].device)
        for name, value in shaped.metrics.items():
            self._metrics["train"][f"ucas/{name}"].append(value)
        return output

    @torch.no_grad()
    def _signals(self, output):
        ids = torch.cat([output["prompt_ids"], output["completion_ids"]], 1)
        attention = torch.cat([output["prompt_mask"], output["completion_mask"]], 1)
        keep, rows = output["completion_ids"].shape[1], []
        for i in range(len(ids)):
            logits = self.model(input_ids=ids[i:i + 1], attention_mask=attention[i:i + 1], logits_to_keep=keep + 1).logits
            logits = logits[0, -keep - 1:-1].float()
            z = logits / self.temperature
            logprobs = z.log_softmax(-1)
            y = output["completion_ids"][i][:, None]
            own = logprobs.gather(-1, y)[:, 0]
            rows.append({"old_logprob": own, "entropy": -(logprobs.exp() * logprobs).sum(-1), "confidence": -logprobs.mean(-1),
                         "logit": logits.gather(-1, y)[:, 0], "margin": own - logprobs.max(-1).values})
        return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
