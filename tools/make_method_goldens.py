#!/usr/bin/env python3
"""Makes the goldens of methods, each from one file of tools/method_goldens. They are committed: never needed to build or run.

    python3 tools/make_method_goldens.py ours         tests/goldens/method_cases.json: a second implementation of each method
    python3 tools/make_method_goldens.py released     released_method_cases.json: what authors' released functions make of these batches
    python3 tools/make_method_goldens.py peers        peer_method_cases.json: what verl's and TRL's own functions make of them
        pip install --no-deps verl==0.9.1; pip install trl==1.16.0 torch==2.13.0 numpy

`ours` first: the others read its file. Without a word it is `ours released`.
"""
import importlib
import sys

import torch

SOURCES = ("ours", "released", "peers")

if __name__ == "__main__":
    asked = sys.argv[1:] or ["ours", "released"]
    if unknown := [word for word in asked if word not in SOURCES]:
        sys.exit(f"{unknown[0]}: expected {', '.join(SOURCES)}")
    torch.set_default_dtype(torch.float64)
    for source in asked:
        importlib.import_module(f"method_goldens.{source}").make()
