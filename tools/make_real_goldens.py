"""Writes tests/goldens/real: what transformers makes of SmolLM2-135M-Instruct and of Gemma 3 270M, which tests/real holds ucas to.

    PYTHON -B tools/make_real_goldens.py MODEL.gguf CONVERTED_DIR [gemma3]

CONVERTED_DIR is that GGUF by `python -m ucas.convert`; first transformers loads the GGUF itself, and both must be the same bits.
weights.json: the first 16 digits of the SHA-256 of each tensor in f32. answers.json: greedy answers of at most 128 tokens to
the prompts of tests/real/prompts.py, one at a time, in f32 and in bf16: ids, their log-probabilities, and by how much the best
logit leads. texts.json: ids of 135 texts by `tokenizers`, the missing bytes among them. sft.json: the loss on rows of
prompts.py. gemma3.json, of the base model Gemma 3 270M in f32: the digest of its tensors, ids of texts by the tokenizer that transformers makes of
the GGUF, greedy continuations. PYTHON has torch, transformers and gguf; only needed to change the goldens.
"""
import hashlib
import json
import os
import random
import sys

import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = os.path.dirname(os.path.realpath(__file__))
TESTS = os.path.join(HERE, "..", "tests")
for folder in ("support", "real"):
    sys.path.insert(0, os.path.join(TESTS, folder))
from many_texts import FIXED, SPECIAL, scripts  # noqa: E402
from prompts import CONTINUED, LONGEST, PROMPTS, SHORT, TUNED  # noqa: E402

OUT = os.path.join(TESTS, "goldens", "real")
TEMPLATE = {"tokenize": True, "add_generation_prompt": True, "return_tensors": "pt", "return_dict": True}


def save(name, rows):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")


def weights(gguf, converted):
    """(name, shape, digest) of each tensor, the same bits by transformers and by ucas.convert."""
    folder, name = os.path.split(os.path.realpath(gguf))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    rows = []
    with safe_open(os.path.join(converted, "model.safetensors"), "pt") as file:
        for key in sorted(file.keys()):
            ours, theirs = file.get_tensor(key), model.state_dict()[key].contiguous()
            assert torch.equal(ours.view(torch.int32), theirs.view(torch.int32)), key
            rows.append([key, list(ours.shape), hashlib.sha256(theirs.numpy().tobytes()).hexdigest()[:16]])
    return rows


def answer(model, ids, longest=LONGEST):
    with torch.no_grad():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=longest, do_sample=False, pad_token_id=2)[0]
        made = out[ids.shape[1]:]
        logits = model(out[None]).logits[0, ids.shape[1] - 1:-1].float()
    logs = torch.log_softmax(logits.double(), -1)
    best = logits.topk(2, -1).values
    return {"ids": made.tolist(), "logprob": [round(x, 6) for x in logs.gather(1, made[:, None])[:, 0].tolist()],
            "lead": [round(x, 3) for x in (best[:, 0] - best[:, 1]).tolist()]}


def some_texts():
    rng = random.Random(7)
    return FIXED + SPECIAL + [scripts(rng) for _ in range(100)]


def gemma3(gguf, converted):
    rows = weights(gguf, converted)
    tokenizer = AutoTokenizer.from_pretrained(os.path.dirname(os.path.realpath(gguf)), gguf_file=os.path.basename(gguf))
    model = AutoModelForCausalLM.from_pretrained(converted, dtype=torch.float32).eval()
    answers = []
    for prompt in CONTINUED:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        answers.append({"prompt": prompt, "prompt_ids": ids[0].tolist(), "f32": answer(model, ids, SHORT)})
    save("gemma3.json", [{"weights": hashlib.sha256(json.dumps(rows).encode()).hexdigest()},
                         {"texts": [[text, tokenizer(text, add_special_tokens=False).input_ids] for text in some_texts()]}, {"answers": answers}])


def main():
    gguf, converted = sys.argv[1:3]
    os.makedirs(OUT, exist_ok=True)
    if sys.argv[3:] == ["gemma3"]:
        return gemma3(gguf, converted)
    save("weights.json", weights(gguf, converted))
    tokenizer = AutoTokenizer.from_pretrained(converted)
    raw = Tokenizer.from_file(os.path.join(converted, "tokenizer.json"))
    save("texts.json", [[text, raw.encode(text, add_special_tokens=False).ids] for text in some_texts()])

    rows = [{"prompt": p, "prompt_ids": tokenizer.apply_chat_template([{"role": "user", "content": p}], **TEMPLATE).input_ids[0].tolist()} for p in PROMPTS]
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        model = AutoModelForCausalLM.from_pretrained(converted, dtype=dtype).eval()
        for row in rows:
            row[name] = answer(model, torch.tensor([row["prompt_ids"]]))
            print(name, len(row[name]["ids"]), row["prompt"], flush=True)
    save("answers.json", rows)

    model = AutoModelForCausalLM.from_pretrained(converted, dtype=torch.float32).eval()
    losses = []
    for row in TUNED:
        prompt, response = raw.encode(row["prompt"]).ids, raw.encode(row["response"]).ids + [2]
        with torch.no_grad():
            logs = torch.log_softmax(model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1:-1].double(), -1)
        losses.append([len(response), -logs.gather(1, torch.tensor(response)[:, None]).sum().item()])
    save("sft.json", losses)


if __name__ == "__main__":
    main()
