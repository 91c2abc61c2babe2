"""What the sources of method goldens share: a file of cases, and numbers with as many digits as it keeps."""
import json
import pathlib

import torch

GOLDENS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "goldens"
MAKER = "tools/make_method_goldens.py"


def rounded(x, digits=7):
    if isinstance(x, torch.Tensor):
        x = x.tolist()
    return [rounded(v, digits) for v in x] if isinstance(x, list) else round(x, digits)


def torch_version():
    return torch.__version__.split("+")[0]


class Source:
    """The batches of tests/goldens/method_cases.json, which the others are asked about, too."""
    def __init__(self):
        self.cases = {case["id"]: case for case in json.loads((GOLDENS / "method_cases.json").read_text())["cases"]}

    def __getitem__(self, id):
        return self.cases[id]

    def items(self):
        return self.cases.items()

    def tensor(self, id, key):
        return torch.tensor(self.cases[id]["inputs"][key], dtype=torch.float64)


def write(name, about, cases, last_line=False):
    """A case a line; `last_line`: the end is a line of its own."""
    text = json.dumps({"about": about, "cases": cases}).replace('{"id"', '\n{"id"')
    if last_line:
        text = text.replace("}]}", "}\n]}")
    (GOLDENS / name).write_text(text + "\n")
    print(GOLDENS / name, len(cases), "cases")
