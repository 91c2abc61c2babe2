"""Exact verifier, RLVR advantages, statistics and LM-head kernels of `ucas`, for the trainer you already run.

Nothing is loaded before it is used and no thread outlives a call, so workers may be forked at any time between calls. Arrays go in
as numpy or as anything on the CPU that speaks DLPack (torch, JAX ...), and come out as numpy arrays, which speak DLPack, too.
"""
import importlib

_HOMES = {
    "Bug": "_ucas", "Error": "_ucas", "Verdict": "_ucas", "Verdicts": "_ucas",
    "Verifier": "verifier", "verify": "verifier",
    "Tokenizer": "tokenizer",
    "Advantages": "shaping", "advantages": "shaping", "method": "shaping", "methods": "shaping", "token_loss": "shaping",
    "explain": "explanation",
    "read": "runs", "Run": "runs",
    "train": "training", "Training": "training",
}
_MODULES = ("stats", "integrations", "lm_head", "track")

__all__ = [*_HOMES, "stats", "__version__"]


def __getattr__(name):
    if name == "__version__":
        return importlib.import_module("._ucas", __name__).version
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    if name in _HOMES:
        value = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
