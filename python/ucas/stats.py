"""Figures of evaluations and what may be said of them: pass@k, intervals, paired tests, Holm's correction.

Arrays are one value a problem (or a run), float64. Bootstraps and sign flips draw from a seeded stream: the same digits every time.
"""
import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ._ucas import Error
from ._ucas import stats as _native
from .arrays import array, same_length


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A value with the interval that covers it with the level asked for (nan where nothing can be said), and, of a test, the two-sided p."""

    value: float
    low: float
    high: float
    p: float = math.nan


def _series(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    values = array(values, np.float64, name, 1)
    if len(values) == 0:
        raise Error(f"{name}: expected at least one value")
    return values


def _level(level: float) -> float:
    if not 0 < level < 1:
        raise Error(f"level: expected a number between 0 and 1, got {level}")
    return float(level)


def _count(value: float, name: str, low: int = 0, high: int = 10**9) -> int:
    if int(value) != value or not low <= value <= high:
        raise Error(f"{name}: expected a whole number from {low} to {high}, got {value}")
    return int(value)


def pass_at_k(n: npt.ArrayLike, c: npt.ArrayLike, k: npt.ArrayLike) -> Any:
    """Unbiased chance that at least one of k samples is right, from n samples with c right: 1 - C(n-c, k) / C(n, k).

    Whole numbers or arrays of them; one number, or an array of the shape they share. Average over problems for a benchmark's figure.

    >>> pass_at_k(4, 1, 2)
    0.5
    >>> pass_at_k([4, 4], [0, 4], 2)
    array([0., 1.])
    """
    parts = np.broadcast_arrays(*(np.asarray(x) for x in (n, c, k)))
    if any(x.dtype.kind not in "iu" for x in parts):
        raise Error("pass_at_k: expected whole numbers n, c, k")
    N, C, K = (np.ascontiguousarray(x, dtype=np.int64).ravel() for x in parts)
    bad = np.flatnonzero((N < 1) | (C < 0) | (C > N) | (K < 1) | (K > N))
    if len(bad):
        i = bad[0]
        raise Error(f"pass_at_k: expected 0 <= c <= n and 1 <= k <= n, got n = {N[i]}, c = {C[i]}, k = {K[i]}")
    found = _native.pass_at_k(N, C, K).reshape(parts[0].shape)
    return float(found) if found.ndim == 0 else found


def majority(answer_class: npt.ArrayLike) -> int | None:
    """maj@n: the place of the sample whose answer stands for the vote, from the class of each (-1 does not vote), or None.

    >>> majority([0, 1, 1, -1])
    1
    """
    return _native.majority(array(answer_class, np.int32, "answer_class", 1))


def share(right: int, n: int, level: float = 0.95) -> Estimate:
    """A share of n independent yes/no trials with its exact (Clopper-Pearson) interval.

    >>> found = share(0, 10)
    >>> found.value, found.low, round(found.high, 6)
    (0.0, 0.0, 0.308497)
    """
    right, n = _count(right, "right"), _count(n, "n")
    if right > n or n == 0:
        raise Error(f"share: expected 0 <= right <= n and n > 0, got {right} of {n}")
    return Estimate(right / n, *_native.clopper_pearson(right, n, _level(level)))


def mean(values: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Mean of values [n] with its t interval, for a few runs over seeds. Without bounds for fewer than two values and for constant ones.

    >>> found = mean([0.50, 0.54, 0.52])
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.52, 0.47, 0.57)
    """
    return Estimate(*_native.mean_estimate(_series(values, "values"), _level(level)))


def bootstrap_mean(values: npt.ArrayLike, seed: int = 0, level: float = 0.95, draws: int = 2000) -> Estimate:
    """Mean over problems [n] of shares, themselves means over samples, with its bootstrap interval, as `ucas evaluate` has it.

    >>> found = bootstrap_mean([0.25, 1.0, 0.5, 0.0])
    >>> found.value, found.low < found.value < found.high
    (0.4375, True)
    """
    values = _series(values, "values")
    if not ((values >= 0) & (values <= 1)).all():
        raise Error("values: expected shares, numbers from 0 to 1")
    return Estimate(*_native.bootstrap_mean(values, _count(seed, "seed", high=2**63), _level(level), _count(draws, "draws", 1, 10**7)))


def mcnemar(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Exact two-sided p of McNemar's test on two yes/no series [n] of the same problems.

    >>> round(mcnemar([0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]), 6)
    0.0625
    """
    a, b = array(a, bool, "a", 1), array(b, bool, "b", 1)
    same_length(a=a, b=b)
    return _native.mcnemar(int((b & ~a).sum()), int((a & ~b).sum()))


def share_difference(a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """b - a of two yes/no series [n] of the same problems, a share: the Bonett-Price interval, McNemar's p.

    >>> found = share_difference([0, 0, 0, 1], [1, 1, 0, 1])
    >>> found.value, found.p
    (0.5, 0.5)
    """
    a, b = array(a, bool, "a", 1), array(b, bool, "b", 1)
    n = same_length(a=a, b=b)
    if n == 0:
        raise Error("share_difference: expected at least one pair")
    gained, lost = int((b & ~a).sum()), int((a & ~b).sum())
    return Estimate(*_native.paired_share_difference(gained, lost, n, _level(level)), p=_native.mcnemar(gained, lost))


def paired(a: Any, b: Any, seed: int = 0, level: float = 0.95, draws: int = 10000) -> Estimate:
    """Mean of b - a over the same problems: bootstrap interval, p of the sign-flip permutation test.

    a, b: arrays [n], or lists of arrays, one a benchmark, each benchmark then counting the same.

    >>> estimate = paired([0, 0, 0, 1, 0, 1, 0, 0], [1, 0, 1, 1, 1, 1, 0, 1])
    >>> estimate.value, estimate.p < 0.2
    (0.5, True)
    """
    nested = isinstance(a, (list, tuple)) and len(a) > 0 and np.ndim(a[0]) == 1
    sets = list(zip(a, b, strict=True)) if nested else [(a, b)]
    pairs = [(_series(x, "a"), _series(y, "b")) for x, y in sets]
    sizes = np.array([same_length(a=x, b=y) for x, y in pairs], np.int64)
    before, after = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
    value, low, high, p = _native.paired(before, after, sizes, _count(seed, "seed", high=2**63), _level(level), _count(draws, "draws", 1, 10**7))
    return Estimate(value, low, high, p)


def welch(a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Mean of b [m] less mean of a [n], two independent samples: Welch's t interval and p.

    >>> found = welch([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    >>> found.value, round(found.p, 3)
    (1.0, 0.288)
    """
    return Estimate(*_native.welch(_series(a, "a"), _series(b, "b"), _level(level)))


def student_p(differences: npt.ArrayLike) -> float:
    """Two-sided p of Student's t for a mean of 0: differences [n] between runs that are paired by seed.

    >>> round(student_p([0.01, 0.02, 0.03]), 3)
    0.074
    """
    return _native.student_p(_series(differences, "differences"))


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Holm's step-down correction: adjusted p [n], in the order given. Values that are not finite stay out.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    return _native.holm(array(p, np.float64, "p", 1))


def auroc(score: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """Chance that a random right answer scores above a random wrong one, ties counting half; nan unless there are both.

    score [n], any unit; right [n] yes/no.

    >>> auroc([0.9, 0.4, 0.6], [True, False, False])
    1.0
    """
    score, right = array(score, np.float64, "score", 1), array(right, bool, "right", 1)
    same_length(score=score, right=right)
    return _native.auroc(score, right.view(np.uint8))
