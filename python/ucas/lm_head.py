"""What the LM head says of given tokens, with its gradient, without ever holding [T, V]: on the CPU, for torch tensors.

Legend: T tokens, D width, V vocabulary; z = h W^T / temperature.

  logprob     [T]  ln p(y) = z_y - LSE(z)
  entropy     [T]  H = -sum_v p ln p, nats
  confidence  [T]  C = LSE(z) - mean_v z = KL(U || p) + ln V, the signal of UCAS (Eq. 5)
  logit       [T]  h . w_y before the temperature, no gradient
  margin      [T]  ln p(y) - max_v ln p(v), no gradient

torch is imported where it is used and nothing was compiled against it: its version does not matter.
"""
import functools
import typing

from . import _ucas

if typing.TYPE_CHECKING:
    import torch


class HeadStats(typing.NamedTuple):
    logprob: "torch.Tensor"
    entropy: "torch.Tensor"
    confidence: "torch.Tensor"
    logit: "torch.Tensor"
    margin: "torch.Tensor"


@functools.cache
def _function() -> typing.Any:
    import torch

    def plain(x):
        return x.detach().to(torch.float32).contiguous()

    def kept(weight):  # bf16 is widened where it is read
        weight = weight.detach()
        return (weight if weight.dtype == torch.bfloat16 else weight.to(torch.float32)).contiguous()

    class LmHeadStats(torch.autograd.Function):
        @staticmethod
        def forward(ctx, hidden, weight, target, temperature, threads):
            h, w, y = plain(hidden), kept(weight), target.detach().to(torch.int64).contiguous()
            logprob, entropy, confidence, logit, margin, lse = (torch.empty(len(h)) for _ in range(6))
            _ucas.head_stats(h, w, y, temperature, threads, logprob, entropy, confidence, logit, margin, lse)
            ctx.save_for_backward(hidden, weight, y, lse, entropy)
            ctx.how = temperature, threads
            ctx.mark_non_differentiable(logit, margin)
            ctx.set_materialize_grads(False)
            return logprob, entropy, confidence, logit, margin

        @staticmethod
        def backward(ctx, d_logprob, d_entropy, d_confidence, *_):
            hidden, weight, y, lse, entropy = ctx.saved_tensors
            wants_hidden, wants_weight = ctx.needs_input_grad[:2]
            d_hidden = torch.zeros(hidden.shape) if wants_hidden else None
            d_weight = torch.zeros(weight.shape) if wants_weight else None
            rows = [torch.zeros(len(y)) if d is None else plain(d) for d in (d_logprob, d_entropy, d_confidence)]
            _ucas.head_gradient(plain(hidden), kept(weight), y, *ctx.how, lse, entropy, *rows, d_hidden, d_weight)
            return (d_hidden.to(hidden.dtype) if wants_hidden else None, d_weight.to(weight.dtype) if wants_weight else None,
                    None, None, None)

    return LmHeadStats


def lm_head_stats(hidden: "torch.Tensor", weight: "torch.Tensor", target: "torch.Tensor", temperature: float = 1.0,
                  threads: int = 0) -> HeadStats:
    """`HeadStats` of T tokens: hidden [T, D] (or [..., D]), the head's weight [V, D], target [T] ids. CPU tensors, float32 or
    bfloat16 (sums in float32). Differentiable in hidden and weight through logprob, entropy and confidence.

    >>> import torch
    >>> h, w = torch.randn(3, 8, requires_grad=True), torch.randn(50, 8)
    >>> stats = lm_head_stats(h, w, torch.tensor([1, 2, 3]))
    >>> torch.allclose(stats.logprob, torch.log_softmax(h @ w.T, -1)[range(3), [1, 2, 3]], atol=1e-5)
    True
    >>> (stats.logprob.sum() + 0.01 * stats.entropy.sum()).backward()
    >>> h.grad.shape
    torch.Size([3, 8])
    """
    if hidden.device.type != "cpu" or weight.device.type != "cpu":
        raise _ucas.Error("lm_head_stats: expected tensors on the CPU")
    shape = hidden.shape[:-1]
    flat = _function().apply(hidden.reshape(-1, hidden.shape[-1]), weight, target.reshape(-1), float(temperature), int(threads))
    return HeadStats(*(x.reshape(shape) for x in flat))
