"""`ucas ...` on the command line: the native program inside this package takes this process over."""
import importlib.util
import os
import sys


def path() -> str:
    """Where the native program stands."""
    return os.path.join(os.path.dirname(__file__), "bin", "ucas")


def environment() -> dict[str, str]:
    """Where this Python would import torch and pyarrow from, whose libraries the program loads when a command needs them; imports neither. And
    this Python, for rewards and tasks in Python."""
    found = {"UCAS_PYTHON": sys.executable}
    for name in ("torch", "pyarrow"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            found[f"UCAS_{name.upper()}_DIR"] = os.path.dirname(spec.origin)
    return {**found, **os.environ}


def main() -> None:
    os.execve(path(), ["ucas", *sys.argv[1:]], environment())
