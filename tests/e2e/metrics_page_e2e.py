"""The tables of docs/metrics.md are what the program says."""
import os
import sys

from support import check

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
from make_metrics import PAGE, page  # noqa: E402

with open(PAGE) as kept:
    text = kept.read()
check(text == page(sys.argv[1], text), "docs/metrics.md is as tools/make_metrics.py makes it (if not: tools/make_metrics.py build)")
