"""Does llama.cpp answer what ucas answers, from a checkpoint that ucas saved and llama.cpp's own converter read?

    PEER_PYTHON -B tools/check_gguf.py CONVERTER [DIR ...] [--ucas build/ucas] [--pre NAME] [--tokens 24]

Each DIR is converted by CONVERTER (convert_hf_to_gguf.py of llama.cpp) to GGUF in f32 and in bf16, and the greedy tokens of
llama.cpp and of `ucas generate --dtype` are compared on a few prompts, given as token ids and as text. Without DIR small
models of each family are trained for a few updates and saved by ucas, and an adapter that `ucas merge` has merged. The
converter knows tokenizers by their published vocabularies; --pre names the splitting of one that it cannot know (of the
small models: that of their regular expression).

Without CONVERTER (and with none in $UCAS_GGUF_CONVERTER), or where a package is missing, it says so and ends with 77;
$UCAS_PEER_PYTHON names a Python that has them: torch, transformers, gguf, and xllamacpp (llama.cpp's server as a package).
"""
import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
GOLDENS = os.path.join(HERE, "..", "tests", "goldens", "tokenizer")
PROMPTS = ["The answer is", "Let $x$ be", "First we add the numbers:\n", "A model samples"]
# family, tokenizer, how llama.cpp calls its splitting, more words for `ucas sft`
MODELS = {"qwen2": ("qwen2", "qwen2-like", "qwen2", []),
          "qwen2 untied": ("qwen2", "qwen2-like", "qwen2", ["--model.tie_word_embeddings", "false"]),
          "qwen3": ("qwen3", "qwen2-like", "qwen2", []),
          "llama": ("llama", "llama3-like", "llama-bpe", ["--model.tie_word_embeddings", "false"]),
          "mistral": ("mistral", "tekken-like", "tekken", [])}
# Runs the converter as it is, but for the name of the splitting.
CONVERT = """
import runpy, sys
sys.path.insert(0, sys.argv[1].rsplit("/", 1)[0])
sys.path.insert(1, sys.argv[1].rsplit("/", 1)[0] + "/gguf-py")
pre, sys.argv = sys.argv[2], [sys.argv[1], *sys.argv[3:]]
if pre:
    from conversion.base import TextModel
    TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words[:4])} ..\n{done.stderr[-2000:]}")
    return done.stdout


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def tokenizer_of(name, root):
    """A golden tokenizer with the file that says which tokens end and begin a text."""
    folder = os.path.join(root, "tokenizer-" + name)
    if not os.path.isdir(folder):
        shutil.copytree(os.path.join(GOLDENS, name), folder)
        # transformers adds tokens of its own for those of a family that are not named
        begin = {"bos_token": "<|begin_of_text|>" if name.startswith("llama") else "<|end|>"}
        with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
            json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "unk_token": "<|end|>",
                       "pad_token": "<|end|>", **begin}, file)
    return folder


def make_models(ucas, root):
    """[(name, directory, splitting)], each trained until its greedy tokens have clear leads."""
    data = os.path.join(root, "rows.jsonl")
    texts = ["The answer is \\boxed{4}. ", "Let $x$ be the number of apples. ", "First we add the numbers:\n  1 + 2 = 3\n",
             "A model samples an answer, a program checks it. "]
    with open(data, "w", encoding="utf-8") as file:
        for prompt, text in zip(PROMPTS, texts):
            file.write(json.dumps({"prompt": prompt, "response": text[len(prompt):] + text}) + "\n")
    train = ["--data", data, "--batch_size", "4", "--threads", "1", "--optimizer.lr", "1e-2"]
    made = []
    for name, (family, tokenizer, pre, words) in MODELS.items():
        out = os.path.join(root, name.replace(" ", "_"))
        run(ucas, "sft", "--init", family, "--tokenizer", tokenizer_of(tokenizer, root), "--model.hidden_size", "64", *words,
            *train, "--steps", "30", "--out", out)
        made.append((name, out, pre))
    base, adapter, merged = made[0][1], os.path.join(root, "adapter"), os.path.join(root, "merged")
    run(ucas, "sft", "--model", base, "--lora.rank", "4", "--dtype", "bf16", *train, "--steps", "5", "--out", adapter)
    run(ucas, "export", adapter, "--out", merged)
    return [*made, ("qwen2, adapter merged", merged, made[0][2])]


def answers_of_ucas(options, directory, dtype, root):
    prompts, out = os.path.join(root, "prompts.jsonl"), os.path.join(root, "answers.jsonl")
    with open(prompts, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"problem": prompt, "answer": "1"}) + "\n" for prompt in PROMPTS)
    if os.path.exists(out):
        os.remove(out)
    run(options.ucas, "generate", "--model", directory, "--data", prompts, "--template", "plain", "--temperature", "0",
        "--max_tokens", str(options.tokens), "--threads", "1", "--dtype", dtype, "--out", out)
    return rows_of(out)


def answers_of_llama(options, path, prompts):
    import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 512, 1, False, -1
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    answers = []
    for prompt in prompts:
        asked = {"prompt": prompt, "n_predict": options.tokens, "temperature": 0, "return_tokens": True,
                 "cache_prompt": False}
        with urllib.request.urlopen(server.listening_address + "/completion", json.dumps(asked).encode()) as got:
            answers.append(json.load(got)["tokens"])
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("converter", nargs="?", default=os.environ.get("UCAS_GGUF_CONVERTER", ""))
    parser.add_argument("directories", nargs="*", metavar="DIR")
    parser.add_argument("--ucas", default="build/ucas")
    parser.add_argument("--pre", default="")
    parser.add_argument("--tokens", type=int, default=24)
    options = parser.parse_args()
    if not options.converter:
        skip("no converter: name llama.cpp's convert_hf_to_gguf.py, or set UCAS_GGUF_CONVERTER")
    other = os.environ.get("UCAS_PEER_PYTHON")
    if other and not os.environ.get("UCAS_PEER_PYTHON_RUNS"):
        os.environ["UCAS_PEER_PYTHON_RUNS"] = "1"
        os.execv(other, [other, "-B", *sys.argv])
    absent = [name for name in ("torch", "transformers", "gguf", "xllamacpp") if importlib.util.find_spec(name) is None]
    if absent:
        skip(f"{sys.executable} lacks {', '.join(absent)}; UCAS_PEER_PYTHON names another Python")
    agree = True
    with tempfile.TemporaryDirectory(prefix="ucas-gguf-") as root:
        named = [(directory, directory, options.pre) for directory in options.directories]
        for name, directory, pre in named or make_models(options.ucas, root):
            for dtype in ("f32", "bf16"):
                path = os.path.join(root, "model.gguf")
                run(sys.executable, "-B", "-c", CONVERT, options.converter, pre, directory, "--outtype", dtype, "--outfile",
                    path)
                ours = answers_of_ucas(options, directory, dtype, root)
                by_ids = answers_of_llama(options, path, [row["prompt_ids"] for row in ours])
                by_text = answers_of_llama(options, path, [row["prompt"] for row in ours])
                answers = [row["response_ids"] for row in ours]
                same = sum(a == b == c for a, b, c in zip(answers, by_ids, by_text))
                count = sum(map(len, answers))
                agree = agree and same == len(ours)
                print(f"{name:<24}{dtype:<6}{same} of {len(ours)} answers the same, {count} tokens", flush=True)
                if same < len(ours):
                    for a, b, c in zip(answers, by_ids, by_text):
                        print(f"  ucas {a}\n  llama.cpp, from ids {b}\n  from text {c}")
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
