"""Is what `ucas convert` makes of a GGUF file what transformers loads from the same file?

    PEER_PYTHON -B tools/check_convert.py FILE.gguf [--ucas build/ucas] [--texts 5000]

Weights in f32 bit by bit, in bf16 those of f32 rounded; config values; ids of texts (data sets beside the checkout where they
are, sources, documents, mixed scripts) by ucas, by `tokenizers` on the converted tokenizer.json, and by transformers' own
tokenizer of the GGUF file; the chat template on three conversations. transformers cuts a text of tokenizer.ggml.pre = smollm
as GPT-2 does, without the digits apart: its pre-tokenizer is replaced by the published one, and what differed before is
counted. Ends with 1 if anything differs. PEER_PYTHON has torch, transformers, gguf.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "support"))
from many_texts import many_texts  # noqa: E402

CHATS = [[{"role": "user", "content": "What is 12 + 7?"}],
         [{"role": "system", "content": "You are terse."}, {"role": "user", "content": " 1\n"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]]
CONFIG = ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size", "head_dim",
          "max_position_embeddings", "tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id", "rope_parameters")


def weights_of(folder):
    values = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            with safe_open(os.path.join(folder, name), "pt") as file:
                values.update({key: file.get_tensor(key) for key in file.keys()})
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--ucas", default=os.path.join(HERE, "..", "build", "ucas"))
    parser.add_argument("--texts", type=int, default=5000)
    a = parser.parse_args()
    wrong = 0

    def say(good, what):
        nonlocal wrong
        wrong += not good
        print(("ok    " if good else "WRONG ") + what, flush=True)

    folder, name = os.path.split(os.path.realpath(a.file))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    theirs = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    with tempfile.TemporaryDirectory() as work:
        made = {}
        for dtype in ("f32", "bf16"):
            made[dtype] = os.path.join(work, dtype)
            subprocess.run([a.ucas, "convert", a.file, made[dtype], "--dtype", dtype], check=True)
        expected = dict(model.state_dict())
        if model.config.tie_word_embeddings:
            expected.pop("lm_head.weight")
        f32, bf16 = weights_of(made["f32"]), weights_of(made["bf16"])
        say(sorted(f32) == sorted(expected), f"{len(f32)} tensors by the same names")
        bits = sum(torch.equal(f32[k].view(torch.int32), v.contiguous().view(torch.int32)) for k, v in expected.items())
        say(bits == len(expected), f"f32: {bits} of {len(expected)} tensors the same bits, {sum(v.numel() for v in f32.values()):,} values")
        same = sum(torch.equal(bf16[k].view(torch.int16), f32[k].bfloat16().view(torch.int16)) for k in f32)
        say(same == len(f32), f"bf16: {same} of {len(f32)} tensors those of f32, rounded by torch")
        with open(os.path.join(made["f32"], "config.json")) as file:
            ours = json.load(file)
        config = model.config.to_dict()
        differs = [k for k in CONFIG if k in ours and ours[k] != config.get(k)]
        say(not differs, f"config: {len([k for k in CONFIG if k in ours])} values the same" if not differs else f"config: {differs}")
        say(torch.tensor(ours["rms_norm_eps"]) == torch.tensor(config["rms_norm_eps"]), f"rms_norm_eps {ours['rms_norm_eps']} in f32 as {config['rms_norm_eps']}")

        texts = many_texts(a.texts)
        mine = Tokenizer.from_file(os.path.join(made["f32"], "tokenizer.json"))
        ids = [e.ids for e in mine.encode_batch(texts, add_special_tokens=False)]
        with open(os.path.join(work, "ids.jsonl"), "w") as file:
            file.writelines(json.dumps({"text": t, "ids": i}) + "\n" for t, i in zip(texts, ids))
        done = subprocess.run([a.ucas, "check", made["f32"], "--ids", os.path.join(work, "ids.jsonl")], capture_output=True, text=True)
        say(done.returncode == 0, f"{len(texts)} texts, {sum(map(len, texts)):,} characters: ids of ucas and tokenizers: {(done.stdout + done.stderr).strip()[-200:]}")
        backend = theirs.backend_tokenizer
        with open(os.path.join(made["f32"], "tokenizer.json")) as file:
            digits = json.load(file)["pre_tokenizer"].get("pretokenizers", [{}])[0].get("type") == "Digits"
        if digits:
            before = sum(e.ids != i for e, i in zip(backend.encode_batch(texts, add_special_tokens=False), ids))
            print(f"note  as transformers reads the GGUF, without digits apart, {before} texts are cut otherwise")
            backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
        same = sum(e.ids == i for e, i in zip(backend.encode_batch(texts, add_special_tokens=False), ids))
        say(same == len(texts), f"{same} of {len(texts)} texts the same ids by transformers' own tokenizer of the file")

        loaded = AutoTokenizer.from_pretrained(made["f32"])
        if theirs.chat_template:
            same = sum(loaded.apply_chat_template(c, tokenize=True, add_generation_prompt=True)["input_ids"] ==
                       theirs.apply_chat_template(c, tokenize=True, add_generation_prompt=True)["input_ids"] for c in CHATS)
            say(same == len(CHATS) and loaded.chat_template == theirs.chat_template, f"chat template the same text, {same} of {len(CHATS)} conversations the same ids")
        special = [(k, getattr(loaded, k), getattr(theirs, k)) for k in ("bos_token", "eos_token", "pad_token", "unk_token")]
        say(all(x == y for _, x, y in special), f"special tokens: {', '.join(f'{k} {x!r}' for k, x, _ in special)}")
        say(sorted(loaded.all_special_ids) == sorted(theirs.all_special_ids), f"{len(loaded.all_special_ids)} special ids")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
