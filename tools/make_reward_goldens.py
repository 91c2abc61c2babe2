#!/usr/bin/env python3
"""Writes tests/goldens/rewards.json: what TRL's and verl's own reward functions pay, for src/config/peer_rewards_test.cpp. Never needed to
build or run; the output is committed. Their files are loaded alone, without what they do not use of their packages:

    pip install --no-deps trl==1.16.0 verl==0.9.1
    pip install torch==2.13.0 numpy
    python tools/make_reward_goldens.py [SITE_PACKAGES]
"""
import importlib.metadata
import importlib.util
import json
import pathlib
import sys
import sysconfig
import types

SITE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_paths()["purelib"])
sys.path.insert(0, str(SITE))
OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "goldens" / "rewards.json"


def load(path):
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), SITE / (path + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


import torch

trl_format, trl_other = load("trl/rewards/format_rewards"), load("trl/rewards/other_rewards")
verl_math, verl_gsm8k = load("verl/utils/reward_score/math_reward"), load("verl/utils/reward_score/gsm8k")
for name, values in {"verl": {"DataProto": object}, "verl.utils": {}, "verl.utils.reward_score": {"default_compute_score": None},
                     "verl.workers": {}, "verl.workers.reward_manager": {"register": lambda name: lambda made: made},
                     "verl.workers.reward_manager.abstract": {"AbstractRewardManager": object}}.items():
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(values)
verl_dapo = load("verl/workers/reward_manager/dapo")


class Rows(list):
    """As much of verl's DataProto as its reward manager asks for."""

    @property
    def batch(self):
        return {"responses": torch.stack([row.batch["responses"] for row in self])}


def verl_overlong(lengths, limit, buffer, factor):
    rows = Rows()
    for length in lengths:
        mask = torch.tensor([1] + [1] * length + [0] * (limit - length))
        rows.append(types.SimpleNamespace(
            batch={"prompts": torch.tensor([1]), "responses": torch.ones(limit, dtype=torch.long), "attention_mask": mask},
            non_tensor_batch={"reward_model": {"ground_truth": ""}, "data_source": "none"}))
    manager = verl_dapo.DAPORewardManager(
        types.SimpleNamespace(decode=lambda ids, skip_special_tokens: "", eos_token="<eos>"), 0,
        compute_score=lambda **asked: 0.0, max_resp_len=limit,
        overlong_buffer_cfg=types.SimpleNamespace(enable=True, len=buffer, penalty_factor=factor, log=False))
    manager._extract_reward_from_rm_scores = lambda data, return_dict: None
    manager.reward_fn_key = "data_source"
    return manager(rows).sum(-1).tolist()


overlong = []
for limit, buffer, factor in ((20, 8, 1.0), (20, 8, 0.5), (64, 64, 1.0), (100, 20, 1.0), (7, 3, 1.0), (1024, 256, 2.0)):
    lengths = sorted({1, max(1, limit - buffer - 1), max(1, limit - buffer), min(limit, limit - buffer + 1), limit - buffer // 2, limit - 1, limit})
    row = {"limit": limit, "buffer": buffer, "factor": factor, "length": lengths, "verl": verl_overlong(lengths, limit, buffer, factor)}
    if factor == 1:
        row["trl"] = trl_other.get_soft_overlong_punishment(limit, buffer)([[0] * length for length in lengths])
    overlong.append(row)

FORMATS = ["<think>\nThis is my reasoning.\n</think>\nThis is my answer.", "<think>\nThis is my reasoning.\nThis is my answer.",
           "<think></think>", "<think>a</think>", " <think>a</think>b", "\n<think>a</think>b", "a<think>b</think>c", "<think>a</think>b</think>c",
           "<think>a<think>b</think>c", "<think>a</think>b<think>c</think>", "</think><think>", "<think>a</think>\n\nb\n\n", "<THINK>a</THINK>b",
           "<think >a</think>b", "<think>a</think", "", "<think>", "x\n<think>a</think>b", "<think>a\r\nb</think>\r\nc",
           "<think>\u00e9\u6f22</think>\U0001f600", "<think>a</think> <answer>7</answer>", "<think>a</think><answer>7</answer>\n",
           "<think>a</think><answer>7</answer> more", "<think>a</think> then <answer>7</answer>"]
formats = [{"text": text, "trl": trl_format.think_format_reward([[{"content": text}]])[0]} for text in FORMATS]

# response, gold, and where ours differs, why.
MATH = [(r"\boxed{72}", "72"), (r"so \boxed{7} no, \boxed{8}", "8"), (r"so \boxed{7} no, \boxed{8}", "7"), ("72", "72"), ("", "1"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"), (r"\boxed{\dfrac12}", r"\frac{1}{2}"), (r"\boxed{0.5}", r"\frac{1}{2}"),
        (r"\boxed{1/2}", r"\frac{1}{2}"), (r"\boxed{\frac{2}{4}}", r"\frac{1}{2}", "equal values are right"),
        (r"\boxed{0.25}", r"\frac{1}{4}", "equal values are right"), (r"\boxed{\sqrt{8}}", r"2\sqrt{2}", "equal values are right"),
        (r"\boxed{\sqrt3}", r"\sqrt{3}"), (r"\boxed{x+1}", "1+x", "equal values are right"), (r"\boxed{x = 5}", "5"),
        (r"\boxed{5}", "x=5"), (r"\boxed{50\%}", "50"), (r"\boxed{90^\circ}", "90"), (r"\boxed{12\text{ cm}}", "12"),
        (r"\boxed{\$5}", "5"), (r"\boxed{(1,2)}", "(1, 2)"), (r"\boxed{(2,1)}", "(1,2)"), (r"\boxed{\left(1,2\right)}", "(1,2)"),
        (r"\boxed{-3}", "-3"), (r"\boxed{3}", "-3"), (r"\boxed{1{,}000}", "1000", "equal values are right"),
        (r"\boxed{1,000}", "1000", "equal values are right"), (r"\boxed{.5}", "0.5"), (r"\boxed{2.0}", "2", "equal values are right"),
        (r"\boxed{\text{east}}", r"\text{east}"), (r"\boxed{B}", "B"), (r"\boxed{5", "5"), (r"\boxed{}", "5"),
        (r"\boxed{2^{10}}", "1024", "equal values are right"), (r"\boxed{\pi}", r"\pi"), (r"\boxed{3.14}", r"\pi"),
        (r"\boxed{\begin{pmatrix}1\\2\end{pmatrix}}", r"\begin{pmatrix}1\\2\end{pmatrix}"), (r"\fbox{7}", "7", "a frame is a box")]
math = [{"response": response, "gold": gold, "verl": verl_math.compute_score(response, gold), "differs": why[0] if why else ""}
        for response, gold, *why in MATH]

# Where ours differs from what either of verl's two forms pays, why.
GSM8K = [("He has 6.\n#### 72", "72"), ("#### 1,234", "1234"), ("#### -5", "-5"), ("#### $72", "72"), ("#### 72.0", "72", "equal values are right"), ("72", "72"),
         ("#### 7\n#### 8", "8"), ("#### 7\n#### 8", "7"), (r"\boxed{72}", "72"), ("####72", "72"), ("#### 72.", "72", "the full stop is none of the answer"), ("", "72"), ("#### ", "72")]
gsm8k = [{"response": response, "gold": gold, "strict": float(verl_gsm8k.compute_score(response, gold)),
          "flexible": float(verl_gsm8k.compute_score(response, gold, method="flexible")), "differs": why[0] if why else ""}
         for response, gold, *why in GSM8K]

versions = {name: importlib.metadata.distribution(name).version for name in ("trl", "verl")}
parts = {"versions": versions, "overlong": overlong, "format": formats, "math": math, "gsm8k": gsm8k}
OUT.write_text("{\n" + ",\n".join(
    f'"{key}": ' + ("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]" if isinstance(rows, list) else json.dumps(rows))
    for key, rows in parts.items()) + "\n}\n")
print(OUT, {key: len(rows) for key, rows in parts.items()})
