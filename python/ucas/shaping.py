"""Advantages of every method that `ucas train` knows, and the loss of a token, on arrays of your own trainer.

Legend: B responses, T longest response, N = sum of the responses' lengths. A batch is a dict (or keyword arguments):

  reward [B]         R_i, what advantages are computed from
  group  [B]         which responses answer the same prompt: any integers or strings, in any order
  mask   [B, T]      1 for the tokens of a response, the end token included; or  length [B]  for packed arrays [N]
  token              ids of the tokens (methods that count them)
  old_logprob, entropy, confidence, logit, margin, min_p_logprob, ref_logprob, value, prm_logratio, teacher_logprob,
                     rollout_logprob, reward_kl
                     per token, [B, T] beside a mask or packed [N] beside lengths; only what the method needs
  right [B] bool, score [B], answer_class [B] (Verifier.classes), finished [B] bool, tail_confidence [B]
  trained [B] bool   0: masked, as TRL's mask_truncated_completions: its reward counts in its group's baseline and nothing of it
                     in the moments of the step; its advantage is 0
  terms              {name: [B]}, the parts of the reward, and  term_weights  {name: number}, 1 where none is given (GDPO; without
                     them, or with one, the reward is its own only part)
  stop_ids           ids that end a response

`method(NAME)["needs"]` says which. Without `right`, a response is right where its score (without it, its reward) is above 0.
"""
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _ucas
from ._ucas import Error
from .arrays import array

_PER_RESPONSE = {"reward": np.float32, "score": np.float32, "tail_confidence": np.float32, "right": np.uint8,
                 "finished": np.uint8, "trained": np.uint8, "answer_class": np.int32}
_PER_TOKEN = {"token": np.int32, **dict.fromkeys(
    ("old_logprob", "rollout_logprob", "ref_logprob", "entropy", "confidence", "logit", "margin", "min_p_logprob", "value", "prm_logratio",
     "teacher_logprob", "reward_kl"), np.float32)}
_BATCH = {*_PER_RESPONSE, *_PER_TOKEN, "group", "mask", "length", "stop_ids", "terms", "term_weights"}


@dataclasses.dataclass(frozen=True)
class Advantages:
    """advantage: [B, T] (0 where the mask is) or packed [N], float32. recorded: what the method notes on its way under the papers'
    symbols (UCAS: A, C, C_hat, W, A_mod [B]; l_hat per token). metrics: what a training logs. returns: what a critic learns, or None."""

    advantage: npt.NDArray[np.float32]
    recorded: dict[str, npt.NDArray[np.float32]]
    metrics: dict[str, float]
    returns: npt.NDArray[np.float32] | None = None


def methods() -> list[str]:
    """Names of the methods, as `method` takes them.

    >>> {"grpo", "dapo", "ucas"} <= set(methods())
    True
    """
    return list(_ucas.methods)


def _settings(settings: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    listed = []
    for key, value in (settings or {}).items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, (list, tuple)):
            value = list(value)
        listed.append((key, value))
    return listed


def method(name: str, preset: str = "", settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Who a method is: title, paper, presets, what it needs, its settings and loss with defaults and help, its equations.

    >>> method("ucas")["needs"]
    ['confidence', 'logit']
    >>> method("ucas", settings={"token_certainty": "entropy"})
    Traceback (most recent call last):
    ...
    ucas.Error: settings["token_certainty"]: method.token_certainty ...
    """
    return _ucas.describe_method(name, preset, _settings(settings))


class _Layout:
    """Where tokens lie: in rows of a mask, or packed by lengths."""

    def __init__(self, batch: Mapping[str, Any], rows: int | None = None) -> None:
        if ("mask" in batch) == ("length" in batch):
            raise Error("a batch says where its tokens are by one of mask [B, T] and length [B]")
        if "mask" in batch:
            self.mask: npt.NDArray[np.bool_] | None = array(batch["mask"], bool, "mask", 2)
            self.length: npt.NDArray[np.int64] = self.mask.sum(1).astype(np.int64)
        else:
            self.mask, self.length = None, array(batch["length"], np.int64, "length", 1)
            if (self.length < 0).any():
                raise Error("length: expected none below 0")
        if rows is not None and len(self.length) != rows:
            raise Error(f"{'mask' if self.mask is not None else 'length'}: expected {rows} rows, one a response, got {len(self.length)}")

    def pack(self, values: npt.ArrayLike, dtype: npt.DTypeLike, name: str) -> npt.NDArray[Any]:
        """[N], in the order of the rows."""
        values = array(values, dtype, name)
        if self.mask is None:
            if values.shape != (self.length.sum(),):
                raise Error(f"{name}: expected shape ({self.length.sum()},), the sum of the lengths, got {values.shape}")
            return values
        if values.shape != self.mask.shape:
            raise Error(f"{name}: expected the mask's shape {self.mask.shape}, got {values.shape}")
        return values[self.mask]

    def unpack(self, packed: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.mask is None:
            return packed
        rows = np.zeros(self.mask.shape, packed.dtype)
        rows[self.mask] = packed
        return rows


def _places(length: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Places of the packed tokens of the rows in `order`."""
    first = np.cumsum(length) - length
    moved = length[order]
    return np.repeat(first[order] - (np.cumsum(moved) - moved), moved) + np.arange(moved.sum())


def advantages(method: str, preset: str = "", settings: Mapping[str, Any] | None = None, batch: Mapping[str, Any] | None = None,
               **arrays: Any) -> Advantages:
    """A_it of every token under a method: one of `methods()`, a preset of it ("" = its first), settings that change the preset.

    batch: a dict as the module says, or its arrays as keywords. Prompts are compared in float64, whatever the order of the rows.
    What the method reads and the batch lacks is an `Error` that names it.

    >>> import numpy as np
    >>> found = advantages("grpo", reward=[1, 0, 0, 0], group=[5, 5, 5, 5], mask=np.ones((4, 2)))
    >>> found.advantage[0]
    array([1.499997, 1.499997], dtype=float32)
    >>> shaped = advantages("ucas", settings={"beta": 0.02}, reward=[1, 0], group=[0, 0], length=[2, 1],
    ...                     confidence=[14., 16., 13.], logit=[20., 24., 9.])
    >>> sorted(shaped.recorded), shaped.recorded["W"].shape
    (['A', 'A_mod', 'C', 'C_hat', 'W', 'l_hat'], (2,))
    """
    batch = {**(batch or {}), **arrays}
    batch = {key: value for key, value in batch.items() if value is not None}
    described = _ucas.describe_method(method, preset, _settings(settings))
    per_token = {**dict.fromkeys(set(described["needs"]) - set(_PER_RESPONSE), np.float32), **_PER_TOKEN}
    if unknown := sorted(set(batch) - _BATCH - set(per_token)):
        raise Error(f"batch: unknown {', '.join(unknown)}; expected some of {', '.join(sorted(_BATCH | set(per_token)))}")
    if "reward" not in batch:
        raise Error("batch: reward [B] is missing")
    given = {name: array(batch[name], dtype, name, 1) for name, dtype in _PER_RESPONSE.items() if name in batch}
    B = len(given["reward"])
    for name, values in given.items():
        if len(values) != B:
            raise Error(f"{name}: expected {B} values, one a response, got {len(values)}")
    if not np.isfinite(given["reward"]).all():
        raise Error("reward: expected finite numbers; leave responses without a verdict out")
    layout = _Layout(batch, B)
    group = np.asarray(batch.get("group", np.zeros(B, np.int64)))
    if group.shape != (B,):
        raise Error(f"group: expected {B} values, one a response, got shape {group.shape}")
    # Groups in the order of their first row, their rows together.
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    order = np.argsort(first[number], kind="stable")
    sizes = np.bincount(number, minlength=len(first))[np.argsort(first)].astype(np.int64)
    places = _places(layout.length, order)
    native: dict[str, Any] = {name: np.ascontiguousarray(values[order]) for name, values in given.items()}
    for name, dtype in per_token.items():
        if name in batch:
            native[name] = np.ascontiguousarray(layout.pack(batch[name], dtype, name)[places])
    if "terms" in batch:
        parts = {name: array(values, np.float32, f"terms[{name!r}]", 1) for name, values in batch["terms"].items()}
        for name, values in parts.items():
            if len(values) != B:
                raise Error(f"terms[{name!r}]: expected {B} values, one a response, got {len(values)}")
        weights = batch.get("term_weights", {})
        if unknown := sorted(set(weights) - set(parts)):
            raise Error(f"term_weights: {', '.join(unknown)} not among terms ({', '.join(parts)})")
        if parts:
            native["term_names"] = [str(name) for name in parts]
            native["term_weights"] = np.array([weights.get(name, 1) for name in parts], np.float32)
            native["terms"] = np.ascontiguousarray(np.stack(list(parts.values()), 1)[order].ravel())
    needs_tokens = "token" not in batch and "zero_tokens" in {s["key"] for s in described["settings"]}
    if needs_tokens:
        raise Error(f"{method} counts token ids (\"token\"), which the batch does not hold")
    stop_ids = [int(i) for i in batch.get("stop_ids", [])]
    found = _ucas.advantages(method, preset, _settings(settings), sizes, np.ascontiguousarray(layout.length[order]), native, stop_ids)

    def token_form(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        packed = np.empty_like(values)
        packed[places] = values
        return layout.unpack(packed)

    def response_form(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows = np.empty_like(values)
        rows[order] = values
        return rows

    if np.isnan(found["advantage"]).any():
        absent = [name for name in ("old_logprob", "entropy") if name not in batch]
        raise Error(f"{method}: advantages are not numbers; "
                    + (f"it reads {' or '.join(absent)}, which the batch does not hold" if absent else "some input is not finite"))
    recorded = {name: response_form(values) for name, values in found["per_response"].items()}
    recorded.update({name: token_form(values) for name, values in found["per_token"].items()})
    returns = token_form(found["returns"]) if "returns" in found else None
    return Advantages(token_form(found["advantage"]), recorded, found["metrics"], returns)


def token_loss(method: str, preset: str = "", settings: Mapping[str, Any] | None = None, objective: Mapping[str, Any] | None = None, *,
               logprob: npt.ArrayLike, old_logprob: npt.ArrayLike, advantage: npt.ArrayLike, mask: npt.ArrayLike | None = None,
               length: npt.ArrayLike | None = None, entropy: npt.ArrayLike | None = None, confidence: npt.ArrayLike | None = None,
               rollout_logprob: npt.ArrayLike | None = None, seed: int = 0, **signals: npt.ArrayLike | None) -> dict[str, Any]:
    """The loss of every token under a method, before any mean, with its derivatives: {"loss", "d_logprob", "d_entropy",
    "d_confidence", "clipped"}, each of the shape that came in, "mark" of methods that choose among the tokens given, and "d_NAME" of
    signals through which a gradient runs ("d_likely" of SimKO: by the mean log-prob of the likeliest tokens).

    objective: settings of the loss ({"clip_high": 0.28}); the method's own stand otherwise. All token arrays are [B, T] beside a mask
    or packed beside lengths. rollout_logprob: the sampler's, which DPPO reads; old_logprob where it is not given. signals: what the method's loss
    reads besides: margin, SimKO's, of `logprob`; min_p_logprob, Lp-Reg's, of the old policy. seed: of the methods that draw.

    >>> loss = token_loss("gspo", logprob=[-1., -2.], old_logprob=[-1., -2.], advantage=[0.5, 0.5], length=[2])
    >>> loss["loss"], loss["d_logprob"]
    (array([-0.5, -0.5], dtype=float32), array([-0.5, -0.5], dtype=float32))
    """
    layout = _Layout({key: value for key, value in (("mask", mask), ("length", length)) if value is not None})
    given = {"logprob": logprob, "old_logprob": old_logprob, "advantage": advantage, "entropy": entropy, "confidence": confidence,
             "rollout_logprob": rollout_logprob, **signals}
    native = {name: layout.pack(values, np.float32, name) for name, values in given.items() if values is not None}
    found = _ucas.token_loss(method, preset, _settings(settings), _settings(objective), layout.length, native, seed)
    if np.isnan(found["loss"]).any() or np.isnan(found["d_logprob"]).any():
        absent = [name for name in ("entropy", "confidence") if name not in native]
        raise Error(f"{method}: the loss is not a number; "
                    + (f"it reads {' or '.join(absent)}, which was not given" if absent else "some input is not finite"))
    return {name: layout.unpack(values) if isinstance(values, np.ndarray) else values for name, values in found.items()}
