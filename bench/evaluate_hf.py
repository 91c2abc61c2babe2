"""The five-set suite beside transformers: problems per second, greedy, on one random checkpoint, in the same sitting.

    PEER_PYTHON=.../bin/python bench/evaluate_hf.py [--ucas build/ucas] [--data ../shared/data] [--max-tokens 32]
                                                    [--limit 0] [--stops 0] [--threads 2] [--keep DIR]

The checkpoint is Qwen2-shaped (hidden 256, 4 layers, vocabulary 151,936, untied, f32) with the real Qwen2 tokenizer.
`ucas evaluate --suite math5` is timed as a whole command: start, weights, prompts, generation, grading, files. Of
transformers only generate() is timed, on prompts already encoded, sorted by length and padded to the longest of a
batch, with the batch size of 8, 16, 32 and 64 that a trial on about 130 problems finds fastest. With --stops N the
checkpoint names N further random tokens as ends of a response, so that lengths differ as they do with a real model;
without it every response has --max-tokens tokens. --limit N takes
the first N problems of each set. PEER_PYTHON has torch, transformers and tokenizers. See bench/README.md.
"""
import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
SETS = ["aime24", "math500", "amc83", "minerva", "olympiadbench"]
END, IM_END, VOCABULARY = 151643, 151645, 151936
PROMPT = ("<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{{}}.<|im_end|>\n"
          "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ucas", default=f"{HERE}/../build/ucas")
    parser.add_argument("--data", default=f"{HERE}/../../shared/data")
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--limit", type=int, default=0, help="only the first N problems of each set")
    parser.add_argument("--stops", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", default="", help="folder for checkpoint and results instead of a temporary one")
    parser.add_argument("--peer", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read_set(data, name):
    for folder in ("eval", "."):
        if os.path.exists(f"{data}/{folder}/{name}.jsonl"):
            return rows(f"{data}/{folder}/{name}.jsonl")
    sys.exit(f"{name}.jsonl is not in {data}")


def make(a, folder):
    """Runs inside PEER_PYTHON: weights large enough that the best token depends on the whole prompt."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    stops = [IM_END, END] + sorted(random.Random(0).sample(range(1000, 150000), a.stops))
    config = Qwen2Config(vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                         num_key_value_heads=2, intermediate_size=688, max_position_embeddings=4096,
                         tie_word_embeddings=False, rope_theta=1e6, bos_token_id=END, eos_token_id=stops,
                         pad_token_id=END)
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, 1.0 / parameter.shape[-1] ** 0.5)
    model.generation_config.eos_token_id = stops
    model.save_pretrained(folder)
    shutil.copy(f"{a.data}/tokenizer-qwen2/tokenizer.json", folder)
    with open(f"{folder}/tokenizer_config.json", "w", encoding="utf-8") as file:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>",
                   "pad_token": "<|endoftext|>"}, file)


def generate(torch, model, prompts, batch, limit):
    """Sorted by length, left-padded: the responses in the prompts' order and the seconds of generate()."""
    order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
    stops = set(model.generation_config.eos_token_id)
    responses, seconds = [None] * len(prompts), 0.0
    for first in range(0, len(order), batch):
        part = order[first:first + batch]
        longest = max(len(prompts[i]) for i in part)
        ids = torch.full((len(part), longest), END)
        mask = torch.zeros((len(part), longest), dtype=torch.long)
        for row, i in enumerate(part):
            ids[row, longest - len(prompts[i]):] = torch.tensor(prompts[i])
            mask[row, longest - len(prompts[i]):] = 1
        began = time.perf_counter()
        with torch.inference_mode():
            out = model.generate(ids, attention_mask=mask, max_new_tokens=limit, do_sample=False, pad_token_id=END)
        seconds += time.perf_counter() - began
        for row, i in enumerate(part):
            response = []
            for token in out[row, longest:].tolist():
                response.append(token)
                if token in stops:
                    break
            responses[i] = response
    return responses, seconds


def peer(a, folder):
    """Runs inside PEER_PYTHON: figures on standard output, responses in folder/peer.json."""
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    if not os.path.exists(f"{folder}/model/config.json"):
        make(a, f"{folder}/model")
    if a.peer == "make":
        return
    torch.set_num_threads(a.threads)
    model = AutoModelForCausalLM.from_pretrained(f"{folder}/model", dtype=torch.float32).eval()
    tokenizer = Tokenizer.from_file(f"{folder}/model/tokenizer.json")
    names = [(name, row) for name in SETS for row in read_set(a.data, name)[:a.limit or None]]
    prompts = [tokenizer.encode(PROMPT.format(row["problem"])).ids for _, row in names]
    by_length = sorted(prompts, key=len)
    by_length = by_length[::max(1, len(by_length) // 130)]
    generate(torch, model, by_length[:8], 8, 4)  # warm
    trial = {}
    for batch in (8, 16, 32, 64):
        began = time.process_time()
        generate(torch, model, by_length, batch, a.max_tokens)
        trial[batch] = time.process_time() - began
    batch = min(trial, key=trial.get)
    used = resource.getrusage(resource.RUSAGE_SELF)
    responses, seconds = generate(torch, model, prompts, batch, a.max_tokens)
    after = resource.getrusage(resource.RUSAGE_SELF)
    with open(f"{folder}/peer.json", "w", encoding="utf-8") as file:
        json.dump({"seconds": seconds, "cpu": after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime,
                   "batch": batch, "trial": trial, "prompt_tokens": sum(map(len, prompts)),
                   "responses": {f"{name}/{row['id']}": response
                                 for (name, row), response in zip(names, responses, strict=True)}}, file)


def timed(command):
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed with status {status}: {' '.join(command)}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def outputs(path):
    return {f"{row['source']}/{row['id']}": row for row in rows(path) if "format" not in row}


def same_until(a, b):
    """Tokens before the first difference."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def report(a, ours, theirs, wall, cpu):
    tokens = sum(len(row["ids"]) for row in ours.values())
    count = len(ours)
    equal = sum(theirs["responses"][key] == row["ids"] for key, row in ours.items())
    agreed = sum(same_until(theirs["responses"][key], row["ids"]) for key, row in ours.items())
    peer_tokens = sum(map(len, theirs["responses"].values()))
    print(f"problems {count}, prompt tokens {theirs['prompt_tokens'] / count:.0f} a problem, response tokens "
          f"{tokens / count:.1f} a problem (at most {a.max_tokens}), {a.threads} threads, load {os.getloadavg()[0]:.1f}")
    print(f"{'':14}{'problems/s':>12}{'tokens/s':>12}{'seconds':>10}{'CPU s':>10}")
    for name, n, seconds, used in (("ucas", tokens, wall, cpu),
                                   ("transformers", peer_tokens, theirs["seconds"], theirs["cpu"])):
        print(f"{name:14}{count / seconds:12.2f}{n / seconds:12.0f}{seconds:10.1f}{used:10.1f}")
    print(f"ratio {theirs['seconds'] / wall:.2f} (wall), {theirs['cpu'] / cpu:.2f} (CPU); transformers in batches of "
          f"{theirs['batch']}; CPU seconds of the trials: "
          + ", ".join(f"{size}: {seconds:.1f}" for size, seconds in theirs["trial"].items()))
    print(f"identical responses {equal}/{count} ({equal / count:.2%}), tokens before the first difference "
          f"{agreed / max(tokens, 1):.2%}")


def main():
    a = arguments()
    if a.peer:
        peer(a, a.keep)
        return
    folder = a.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    python = os.environ.get("PEER_PYTHON", sys.executable)
    common = ["--data", a.data, "--max-tokens", str(a.max_tokens), "--limit", str(a.limit), "--stops", str(a.stops),
              "--threads", str(a.threads), "--keep", folder]
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    subprocess.run([python, __file__, *common, "--peer", "make"], check=True, env=quiet)
    shutil.rmtree(f"{folder}/out", ignore_errors=True)
    common_ucas = [a.ucas, "evaluate", f"m={folder}/model", "--data", a.data, "--out", f"{folder}/out", "--threads",
                   str(a.threads)]
    wall, cpu = timed([*common_ucas, "--suite", "math5", "--max-tokens", str(a.max_tokens), "--limit",
                        str(a.limit)])
    subprocess.run([python, __file__, *common, "--peer", "run"], check=True, env=quiet)
    with open(f"{folder}/peer.json", encoding="utf-8") as file:
        theirs = json.load(file)
    report(a, outputs(f"{folder}/out/m/eval/math5.outputs.jsonl"), theirs, wall, cpu)
    if not a.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
