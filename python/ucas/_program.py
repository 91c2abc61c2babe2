"""`ucas ...` on the command line: the native program inside this package takes this process over."""
import importlib.util
import os
import sys


def path() -> str:
    """Where the native program stands."""
    return os.path.join(os.path.dirname(__file__), "bin", "ucas")


def environment() -> dict[str, str]:
    """Where this Python would import torch from, whose libraries the program loads when a command needs them; does not import it. And this
    Python, for what it runs in Python: rewards, chat templates, Parquet."""
    found = {"UCAS_PYTHON": sys.executable}
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin is not None:
        found["UCAS_TORCH_DIR"] = os.path.dirname(spec.origin)
    return {**found, **os.environ}


def main() -> None:
    os.execve(path(), ["ucas", *sys.argv[1:]], environment())
