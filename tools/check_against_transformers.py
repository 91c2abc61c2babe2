"""Does transformers see in a checkpoint what ucas sees in it?

    PEER_PYTHON -B tools/check_against_transformers.py DIR [DIR ...] [--ucas build/ucas] [--rows 8] [--length 64]
    PEER_PYTHON -B tools/check_against_transformers.py --families [--only gemma3] [--lengths 4,64,1024,4096] [--keep DIR]

Random token ids are scored by `ucas score` and by transformers from each directory; log-probability, entropy,
confidence and raw logit of every token must agree within --tolerance (2e-4). Prints the largest differences and ends
with 1 if they do not agree. With --families the checkpoints are random ones of every family, with every kind of rope
scaling, tied and untied, with and without a window, and there is one sequence of each length. --dtype is that of
transformers; --score adds words to `ucas score`. PEER_PYTHON has torch and transformers.

    PEER_PYTHON -B tools/check_against_transformers.py --families --dtype bfloat16 [--tests build/ucas-tests-engine]

compares all logits of ucas in bf16, and those of transformers in bf16, with those of transformers in f32 from the same
weights, which are bf16 numbers: on the mean ucas must be no further off, and every difference must be within 1.5 times
the bound that the tests state (of two million logits: 0.093 of the largest; transformers 0.122). Where the two largest
f32 logits are more than that bound apart, the likeliest token must be the same.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=512)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=1024)
SOME_SLIDE = dict(use_sliding_window=True, sliding_window=100, max_window_layers=2)
CASES = {
    "qwen2": dict(model_type="qwen2", tie_word_embeddings=True),
    "qwen2 untied, wide theta": dict(model_type="qwen2", rope_theta=1e6),
    "qwen2 window of 100 in 2 of 4 layers": dict(model_type="qwen2", tie_word_embeddings=True, **SOME_SLIDE),
    "qwen2 linear": dict(model_type="qwen2", rope=dict(rope_type="linear", factor=4.0)),
    "qwen2 dynamic": dict(model_type="qwen2", tie_word_embeddings=True, rope=dict(rope_type="dynamic", factor=2.5)),
    "qwen2 yarn": dict(model_type="qwen2", rope_theta=1e6, rope=YARN),
    "qwen3": dict(model_type="qwen3", head_dim=48, tie_word_embeddings=True),
    "qwen3 untied": dict(model_type="qwen3", head_dim=48, rope_theta=1e6),
    "qwen3 window of 100 in 2 of 4 layers": dict(model_type="qwen3", head_dim=48, **SOME_SLIDE),
    "qwen3 yarn": dict(model_type="qwen3", head_dim=48, tie_word_embeddings=True, rope_theta=1e6, rope=YARN),
    "llama": dict(model_type="llama", tie_word_embeddings=True),
    "llama untied, head_dim apart": dict(model_type="llama", head_dim=24, rope_theta=5e5),
    "llama linear": dict(model_type="llama", rope=dict(rope_type="linear", factor=4.0)),
    "llama dynamic": dict(model_type="llama", rope=dict(rope_type="dynamic", factor=2.0)),
    "llama yarn with mscale": dict(model_type="llama", tie_word_embeddings=True, rope=dict(
        YARN, mscale=0.9, mscale_all_dim=0.5, beta_fast=20.0, beta_slow=2.0, truncate=False)),
    "llama llama3": dict(model_type="llama", rope_theta=5e5, rope=LLAMA3),
    "llama llama3, tied": dict(model_type="llama", tie_word_embeddings=True, rope_theta=5e5, rope=LLAMA3),
    "mistral window of 300": dict(model_type="mistral", sliding_window=300),
    "mistral window of 33, tied": dict(model_type="mistral", sliding_window=33, tie_word_embeddings=True),
    "mistral without window": dict(model_type="mistral", sliding_window=None, rope_theta=1e6, head_dim=40),
    "gemma3, window of 100": dict(model_type="gemma3_text", head_dim=48, sliding_window=100, tie_word_embeddings=True,
                                  layers=["sliding_attention", "full_attention"] * 2, rope_theta=1e6),
    "gemma3 linear, untied": dict(model_type="gemma3_text", head_dim=40, sliding_window=33, query_pre_attn_scalar=24,
                                  layers=["sliding_attention"] * 3 + ["full_attention"],
                                  rope=dict(rope_type="linear", factor=8.0), rope_theta=1e6),
    "smollm3": dict(model_type="smollm3", no_rope_layers=[1, 1, 0, 1], tie_word_embeddings=True, rope_theta=2e6),
    "granite": dict(model_type="granite", embedding_multiplier=12.0, attention_multiplier=0.1, residual_multiplier=0.22,
                    logits_scaling=0.5, tie_word_embeddings=True),
    "olmo2": dict(model_type="olmo2", rope_theta=5e5),
    "olmo3 yarn, window of 100": dict(model_type="olmo3", sliding_window=100, rope=YARN,
                                      layers=["sliding_attention"] * 3 + ["full_attention"]),
    "mistral yarn, window of 300": dict(model_type="mistral", sliding_window=300, rope=YARN),
}
TOOLS = os.path.dirname(os.path.abspath(__file__))
TOKENIZER_MAKER = os.path.join(TOOLS, "..", "tests", "support", "make_checkpoint.py")
SHAPE = dict(hidden_size=128, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, intermediate_size=256,
             vocab_size=512, max_position_embeddings=4096, rms_norm_eps=1e-6, bos_token_id=None, eos_token_id=3,
             pad_token_id=0)


def make_checkpoint(folder, model_type, rope=None, rope_theta=10000.0, dtype=torch.float32, layers=None, **changes):
    """Random weights, large enough that every part of the model matters, and a tokenizer of as many words."""
    small = dict(vocab=SHAPE["vocab_size"], hidden=4, layers=1, heads=1, intermediate=4)
    subprocess.run([sys.executable, TOKENIZER_MAKER, folder, "--kv-heads", "1",
                    *(word for key, value in small.items() for word in (f"--{key}", str(value)))], check=True)
    torch.manual_seed(sum(map(ord, os.path.basename(folder))))
    rotation = {"rope_type": "default", **(rope or {}), "rope_theta": rope_theta}
    if layers:   # of two kinds, each with a rotation of its own
        changes["layer_types"] = layers
        rotation = {"full_attention": rotation, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    config = CONFIG_MAPPING[model_type](**{**SHAPE, "tie_word_embeddings": False, **changes}, rope_parameters=rotation)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 0.3 if parameter.dim() == 1 else 1.5 / parameter.shape[-1] ** 0.5
            parameter.add_(torch.randn_like(parameter) * scale)
    model.to(dtype).save_pretrained(folder)


def scored_by_ucas(options, directory, rows):
    with tempfile.TemporaryDirectory(prefix="ucas-check-") as folder:
        path = os.path.join(folder, "rows.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        done = subprocess.run([options.ucas, "score", "--model", directory, *options.score.split(), path],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def scored_by_transformers(model, row):
    ids = torch.tensor([row["prompt_ids"] + row["response_ids"]])
    with torch.no_grad():
        logits = model(ids).logits[0, len(row["prompt_ids"]) - 1:-1].double()
    chosen = torch.tensor(row["response_ids"])[:, None]
    logs = torch.log_softmax(logits, -1)
    return {"logprob": logs.gather(1, chosen)[:, 0], "logit": logits.gather(1, chosen)[:, 0],
            "entropy": -(logs.exp() * logs).sum(-1), "confidence": torch.logsumexp(logits, -1) - logits.mean(-1)}


def worst_differences(options, directory, rows):
    """Of every row, the largest difference of each quantity."""
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=getattr(torch, options.dtype)).eval()
    return [{key: (theirs - torch.tensor(ours[key]).double()).abs().max().item()
             for key, theirs in scored_by_transformers(model, row).items()}
            for row, ours in zip(rows, scored_by_ucas(options, directory, rows), strict=True)]


def chosen(options):
    return [(name, case) for name, case in CASES.items() if name.startswith(options.only)]


def random_sequences(options):
    rng = random.Random(0)
    return [[rng.randrange(SHAPE["vocab_size"]) for _ in range(int(length))] for length in options.lengths.split(",")]


def write_bf16_case(directory, sequences):
    """What the test reads: the sequences, and the logits of transformers in both types."""
    logits = {}
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=dtype).eval()
        with torch.no_grad():
            for ids in sequences:
                logits[f"{name}.{len(ids)}"] = model(torch.tensor([ids])).logits[0].to(dtype).contiguous()
    save_file(logits, os.path.join(directory, "logits.safetensors"))
    with open(os.path.join(directory, "ids.json"), "w", encoding="utf-8") as file:
        json.dump({"sequences": sequences}, file)


def check_bf16(options, root):
    """A line for each case and length."""
    agree, sequences = True, random_sequences(options)
    print(f"{'':<38}{'length':>7}{'max ours':>10}{'theirs':>10}{'mean ours':>11}{'theirs':>10}{'bound':>8}"
          f"{'clear rows':>12}{'other top-1: ours':>18}{'theirs':>8}")
    for name, case in chosen(options):
        directory = os.path.join(root, name.replace(" ", "_").replace(",", ""))
        make_checkpoint(directory, dtype=torch.bfloat16, **case)
        write_bf16_case(directory, sequences)
        done = subprocess.run([options.tests, "--gtest_filter=parity.bf16_of_a_given_case*"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "UCAS_BF16_CASE": directory})
        lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("departure ")]
        if len(lines) != len(sequences):
            sys.exit(done.stdout)
        agree = agree and done.returncode == 0
        for length, most, mean, their_most, their_mean, bound, clear, wrong, their_wrong in lines:
            print(f"{name:<38}{length:>7}{float(most):>10.4f}{float(their_most):>10.4f}{float(mean):>11.5f}"
                  f"{float(their_mean):>10.5f}{float(bound):>8.3f}{clear:>12}{wrong:>18}{their_wrong:>8}", flush=True)
        if done.returncode != 0:
            print("\n".join(line for line in done.stdout.splitlines() if "Failure" in line or "Expected" in line))
        os.remove(os.path.join(directory, "logits.safetensors"))
    return agree


def random_rows(options, vocab):
    rng, rows = random.Random(0), []
    for _ in range(options.rows):
        ids = [rng.randrange(vocab) for _ in range(rng.randint(3, options.length))]
        cut = rng.randint(1, len(ids) - 1)
        rows.append({"prompt_ids": ids[:cut], "response_ids": ids[cut:]})
    return rows


def check_directories(options):
    agree = True
    for directory in options.directories:
        with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
            vocab = json.load(file)["vocab_size"]
        rows = worst_differences(options, directory, random_rows(options, vocab))
        worst = {key: max(row[key] for row in rows) for key in rows[0]}
        good = max(worst.values()) <= options.tolerance
        agree = agree and good
        print("agrees " if good else "DIFFERS", directory, " ".join(f"{k} {v:.1e}" for k, v in worst.items()))
    return agree


def check_families(options, root):
    """A line for each case: the largest difference of a logit at each length; all four quantities are held to it."""
    agree, sequences = True, random_sequences(options)
    rows = [{"prompt_ids": ids[:1], "response_ids": ids[1:]} for ids in sequences]
    print(f"{'largest difference of a logit':<40}" + "".join(f"{len(ids):>10}" for ids in sequences))
    for name, case in chosen(options):
        directory = os.path.join(root, name.replace(" ", "_").replace(",", ""))
        make_checkpoint(directory, **case)
        worst = worst_differences(options, directory, rows)
        good = max(max(row.values()) for row in worst) <= options.tolerance
        agree = agree and good
        print(f"{name:<40}" + "".join(f"{row['logit']:>10.1e}" for row in worst) + ("" if good else "  DIFFERS"),
              flush=True)
    return agree


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directories", nargs="*", metavar="DIR")
    parser.add_argument("--families", action="store_true")
    parser.add_argument("--only", default="", metavar="BEGIN", help="of the cases of --families those that begin so")
    parser.add_argument("--lengths", default="4,64,1024,4096")
    parser.add_argument("--keep", default="", metavar="DIR", help="leave the checkpoints of --families there")
    parser.add_argument("--ucas", default="build/ucas")
    parser.add_argument("--tests", default="build/ucas-tests-engine")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--score", default="", metavar="WORDS")
    parser.add_argument("--tolerance", type=float, default=2e-4)
    options = parser.parse_args()
    if options.families == bool(options.directories):
        parser.error("give directories, or --families")
    if options.directories:
        agree = check_directories(options)
    else:
        with tempfile.TemporaryDirectory(prefix="ucas-families-") as folder:
            check = check_bf16 if options.dtype == "bfloat16" else check_families
            agree = check(options, options.keep or folder)
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
