"""docs/options.md is what the program says."""
import os
import sys

from support import check

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
from make_options import page  # noqa: E402

with open(os.path.join(ROOT, "docs", "options.md")) as kept:
    check(kept.read() == page(sys.argv[1]), "docs/options.md is as tools/make_options.py makes it (if not: tools/make_options.py build)")
