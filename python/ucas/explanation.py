"""What a training config or a method does, equation by equation: `ucas explain`."""
from collections.abc import Mapping
from typing import Any

from . import _ucas


def explain(config: str = "", method: str | None = None, preset: str | None = None, settings: Mapping[str, Any] | None = None) -> str:
    """What `config` does: a TOML file, a run directory, an embedded name ("ucas-paper-7b"), or "" for the program's defaults.

    method, preset and `settings` (keys as in the file, or of the method: {"beta": 0.02}) change it before it is explained.
    Returns text for people.

    >>> print(explain(method="grpo").splitlines()[0][:4])
    GRPO
    """
    words = [("method.name", method), ("method.preset", preset)]
    words += [(key if "." in key else f"method.{key}", value) for key, value in (settings or {}).items()]
    given = [(key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in words if value is not None]
    return _ucas.explain(config, given)
