"""`ucas ...` on the command line: the native program inside this package takes this process over."""
import os
import sys


def path() -> str:
    """Where the native program stands."""
    return os.path.join(os.path.dirname(__file__), "bin", "ucas")


def main() -> None:
    os.environ.setdefault("UCAS_PYTHON", sys.executable)  # for rewards and trackers in Python
    os.execv(path(), ["ucas", *sys.argv[1:]])
