"""What several processes cost and share, measured on this machine.

    bench/ranks.py BUILD hosts     two hosts as network namespaces joined by a cable (root): one training, a rank on each, the
                                   bits of one process; bytes on the cable beside those that the run counts
    bench/ranks.py BUILD memory [N ..]  optimizer memory of a rank at 1, 2, 4: what f32 moments take beyond bf16 ones, beside 1 / N
    bench/ranks.py BUILD gradients [N ..]  memory of a rank at 2, 4 that update.shard = "gradients" frees, beside 1 - 1 / N of all
    bench/ranks.py BUILD masters [N ..]  memory of a rank at 1, 2, 4 in bf16 beside that in f32: 2 bytes a parameter less for weights, 4 / N more
                                   for masters; and bytes exchanged
    bench/ranks.py BUILD micro [N ..]  memory of a rank at 1, 2, 4, bytes and seconds of update.reduce = "micro" beside "sum"

Slow: minutes on two cores."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

BUILD, WHAT = os.path.abspath(sys.argv[1]), sys.argv[2]
UCAS = os.path.join(BUILD, "ucas")
FOLDER = tempfile.mkdtemp(prefix="ucas-ranks-")
NAMES = ["ucas-a", "ucas-b"]


def path(*parts):
    return os.path.join(FOLDER, *parts)


def ucas(*words):
    subprocess.run([UCAS, *map(str, words)], check=True, capture_output=True, text=True)


def start(rank, size, words, host="127.0.0.1", port=29700, before=(), more=None):
    environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": host, "MASTER_PORT": str(port),
                   **(more or {})}
    return subprocess.Popen([*before, UCAS, *map(str, words)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True)


def finish(processes):
    said = [p.communicate(timeout=900)[1] for p in processes]
    assert all(p.returncode == 0 for p in processes), said
    return said


def task(*init):
    ucas("make-task", "--out", path("task"), "--count_train", 400, "--count_dev", 20, "--count_test", 20, "--count_worked", 400,
         "--count_mixed", 100, "--n_max", 6)
    ucas("sft", "--init", "qwen2", "--tokenizer", path("task", "tokenizer"), "--data", path("task", "sft_mixed.jsonl"), "--steps", 1,
         "--batch_size", 8, "--optimizer.lr", "1e-5", *init, "--out", path("base"))


def train(out, *more):
    return ["train", "dapo-tiny", "--model", path("base"), "--data", path("task", "train.jsonl"), "--out", path(out),
            "--threads", 1, "--data.train_batch_size", 6, "--data.gen_batch_size", 6, "--update.mini_batch_size", 3,
            "--rollout.n", 8, "--objective.keep_mixed_groups", "false", "--train.test_freq", 0, "--data.val_files", "",
            "--update.micro_batch_tokens", 64, "--update.reduce", "micro", *more]


def rows(run):
    with open(path(run, "steps.jsonl")) as file:
        return [json.loads(line) for line in file]


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def join_hosts():
    for name in NAMES:
        ip("netns", "add", name)
    ip("link", "add", "cable0", "netns", NAMES[0], "type", "veth", "peer", "name", "cable1", "netns", NAMES[1])
    for i, name in enumerate(NAMES):
        ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", f"cable{i}")
        ip("-n", name, "link", "set", f"cable{i}", "up")
        ip("-n", name, "link", "set", "lo", "up")


def hosts():
    task()
    finish([start(0, 1, train("one", "--train.steps", 6))])
    try:
        join_hosts()
        sent = lambda: [int(re.search(r"TX:.*\n\s*(\d+)", ip("-n", name, "-s", "link", "show", f"cable{i}")).group(1))
                        for i, name in enumerate(NAMES)]
        before = sent()
        finish([start(rank, 2, train("two", "--train.steps", 6), "10.77.0.1", before=["ip", "netns", "exec", name])
                for rank, name in enumerate(NAMES)])
        cable = [b - a for a, b in zip(before, sent())]
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name])
    at = os.path.join("checkpoints", "step-0000006")
    assert tensors_of(path("one", at)) == tensors_of(path("two", at))
    counted = sum(r["perf/ranks/bytes"] for r in rows("two"))
    print(f"two hosts, 6 steps: weights and moments have the bits of one process; bytes that rank 0 gave to the calls "
          f"{counted / 6:,.0f} a step, on the cable from host a {cable[0] / 6:,.0f}, from b {cable[1] / 6:,.0f}")


def resident(process):
    try:
        with open(f"/proc/{process.pid}/status") as file:
            return int(re.search(r"RssAnon:\s+(\d+)", file.read()).group(1)) * 1024
    except (OSError, AttributeError):
        return 0


def large_task():
    """Parameters of its base."""
    task("--model.hidden_size", 512, "--model.num_hidden_layers", 10, "--model.intermediate_size", 2048)
    header = open(path("base", "model.safetensors"), "rb").read(8)
    with open(path("base", "model.safetensors"), "rb") as file:
        size = int.from_bytes(header, "little")
        file.read(8)
        shapes = [v["shape"] for k, v in json.loads(file.read(size)).items() if k != "__metadata__"]
    count = 0
    for shape in shapes:
        n = 1
        for d in shape:
            n *= d
        count += n
    return count


def third_step(ranks, run, *more):
    """Anonymous memory of each rank at the most in step 3, before a checkpoint gathers anything."""
    processes = [start(r, ranks, train(run, "--train.steps", 3, "--rollout.n", 2, "--rollout.response_length", 16,
                                       "--update.reduce", "sum", "--train.save_freq", 0, *more), port=29701 + ranks)
                 for r in range(ranks)]
    most = [0] * ranks
    while all(p.poll() is None for p in processes):
        steps = path(run, "steps.jsonl")
        if os.path.exists(steps) and sum(1 for _ in open(steps)) == 2:
            most = [max(a, resident(p)) for a, p in zip(most, processes)]
        time.sleep(0.02)
    finish(processes)
    return most


# Random answers are all wrong: without it there is nothing to learn, and no pass.
LEARNS = ("--objective.entropy_coeff", 1e-3)


def gradients():
    count = large_task()
    print(f"{count / 1e6:.1f} M parameters; gradients take 4 bytes each")
    for ranks in [int(n) for n in sys.argv[3:]] or (2, 4):
        took = {shard: third_step(ranks, f"gradients-{ranks}-{shard}", "--update.shard", shard, *LEARNS) for shard in ("moments", "gradients")}
        sent = {shard: rows(f"gradients-{ranks}-{shard}")[-1]["perf/ranks/bytes"] for shard in took}
        for rank in range(ranks):
            saved = took["moments"][rank] - took["gradients"][rank]
            print(f"{ranks} ranks, rank {rank}: {took['moments'][rank] / 1e6:,.0f} MB, with shares of gradients "
                  f"{took['gradients'][rank] / 1e6:,.0f} MB: {saved / 1e6:,.1f} MB apart, all but 1 / N is {4 * count * (1 - 1 / ranks) / 1e6:,.1f}")
        print(f"{ranks} ranks: rank 0 gave {sent['moments'] / 1e6:,.1f} MB to the calls in step 3, with shares {sent['gradients'] / 1e6:,.1f}")


def memory():
    count = large_task()
    print(f"{count / 1e6:.1f} M parameters; moments in f32 take 8 bytes each, in bf16 4")
    for ranks in [int(n) for n in sys.argv[3:]] or (1, 2, 4):
        took = {moments: third_step(ranks, f"memory-{ranks}-{moments}", "--optimizer.moments", moments) for moments in ("f32", "bf16")}
        for rank in range(ranks):
            saved = took["f32"][rank] - took["bf16"][rank]
            print(f"{ranks} ranks, rank {rank}: {took['f32'][rank] / 1e6:,.0f} MB with f32 moments, "
                  f"{took['bf16'][rank] / 1e6:,.0f} MB with bf16: {saved / 1e6:,.1f} MB apart, 1 / N of them all is "
                  f"{4 * count / ranks / 1e6:,.1f}")


def masters():
    count = large_task()
    print(f"{count / 1e6:.1f} M parameters; in f32 4 bytes each, in bf16 2 and masters of 4")
    for ranks in [int(n) for n in sys.argv[3:]] or (1, 2, 4):
        took = {dtype: third_step(ranks, f"masters-{ranks}-{dtype}", "--dtype", dtype, *LEARNS) for dtype in ("f32", "bf16")}
        for rank in range(ranks):
            more = took["bf16"][rank] - took["f32"][rank]
            print(f"{ranks} ranks, rank {rank}: {took['f32'][rank] / 1e6:,.0f} MB in f32, {took['bf16'][rank] / 1e6:,.0f} MB in bf16: "
                  f"{more / 1e6:,.1f} MB more, computed {(4 / ranks - 2) * count / 1e6:,.1f}", flush=True)
        if ranks > 1:
            sent = [rows(f"masters-{ranks}-{dtype}")[-1]["perf/ranks/bytes"] / 1e6 for dtype in took]
            print(f"{ranks} ranks: rank 0 gave {sent[0]:,.1f} MB to the calls in step 3 in f32, {sent[1]:,.1f} in bf16", flush=True)


def micro():
    """update.reduce = "micro" beside "sum": anonymous memory, bytes, and seconds of a step's updates."""
    count = large_task()
    print(f"{count / 1e6:.1f} M parameters; gradients take 4 bytes each")
    for ranks in [int(n) for n in sys.argv[3:]] or (1, 2, 4):
        for reduce, shard in (("sum", "moments"), ("micro", "moments"), ("micro", "gradients"))[:2 if ranks == 1 else 3]:
            run = f"micro-{ranks}-{reduce}-{shard}"
            most = third_step(ranks, run, "--update.reduce", reduce, "--update.shard", shard, *LEARNS)
            last = rows(run)[-1]
            print(f"{ranks} ranks, {reduce}, {shard}: MB {', '.join(f'{m / 1e6:,.0f}' for m in most)}; rank 0 gave "
                  f"{last.get('perf/ranks/bytes', 0) / 1e6:,.1f} MB to the calls in step 3; update {last['timing_s/update_actor']:.2f} s", flush=True)


{"hosts": hosts, "micro": micro, "masters": masters, "memory": memory, "gradients": gradients}[WHAT]()
