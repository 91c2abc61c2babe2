"""What comes in: numpy, lists, or anything on the CPU that speaks DLPack."""
from typing import Any

import numpy as np
import numpy.typing as npt

from ._ucas import Error


def array(values: Any, dtype: npt.DTypeLike, name: str, ndim: int | None = None) -> npt.NDArray[Any]:
    """`values` as a contiguous numpy array of `dtype`, without a copy where it is one already."""
    if hasattr(values, "detach"):  # a torch tensor; one that requires a gradient exports nothing
        values = values.detach()
    if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack__"):
        device = values.__dlpack_device__()[0]
        if int(device) not in (1, 3):  # the CPU, and memory that a GPU has pinned there
            raise Error(f"{name}: expected an array on the CPU; move it there first (.cpu())")
        if str(getattr(values, "dtype", "")).endswith("bfloat16"):
            values = values.float()
        values = np.from_dlpack(values)
    try:
        made = np.ascontiguousarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise Error(f"{name}: expected numbers, {error}") from None
    if made.ndim == 0 and ndim == 1:
        made = made.reshape(1)
    if ndim is not None and made.ndim != ndim:
        raise Error(f"{name}: expected {ndim} dimension{'s' * (ndim != 1)}, got shape {made.shape}")
    return made


def same_length(**arrays: npt.NDArray[Any]) -> int:
    """The common length; an error that names who differs."""
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise Error("expected as many of each, got " + ", ".join(f"{n} {name}" for name, n in lengths.items()))
    return next(iter(lengths.values()))
