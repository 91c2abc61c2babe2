"""What the end-to-end tests share: a scratch folder, the program, a small task and a briefly trained base.

Nothing here or in a test asks how long something takes (tests/guards/timing.py). What is waited for is waited for by wait_until(), and HANG
seconds later a test is a hanging one: that bound ends it and decides nothing else. UCAS_PATIENCE=20 is for a machine of a twentieth of the
usual speed."""
import atexit
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

UCAS = os.path.join(os.path.abspath(sys.argv[1]), "ucas")
HERE = os.path.dirname(os.path.realpath(__file__))
# What is waited for at most takes longer with sanitizers; tests/CMakeLists.txt says the same to ctest.
with open(os.path.join(sys.argv[1], "CMakeCache.txt")) as cache:
    SANITIZED = "UCAS_SANITIZE:BOOL=ON" in cache.read()
PATIENCE = int(os.environ.get("UCAS_PATIENCE", "1")) * (10 if SANITIZED else 1)
HANG = 1700 * PATIENCE
SCRATCH = tempfile.mkdtemp(prefix="ucas-e2e-")


def ucas(*words, expect=0, **options):
    done = subprocess.run([UCAS, *map(str, words)], capture_output=True, text=True, timeout=HANG, **options)
    if done.returncode != expect:
        fail(f"ucas {' '.join(map(str, words))}: exit {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}")
    return done


def fail(message):
    atexit.unregister(clean)  # what is there is to be looked at
    print("FAILED:", message, "in", SCRATCH)
    sys.exit(1)


def check(condition, message):
    if not condition:
        fail(message)
    print("ok:", message)


def path(*parts):
    return os.path.join(SCRATCH, *parts)


def small_task():
    """A task folder and a base model that already ends most of its answers: what ctest has made for all (make_base.py), or our own."""
    if made := os.environ.get("UCAS_E2E_BASE"):
        for name in ("task", "base"):
            shutil.copytree(os.path.join(made, name), path(name))
        return
    make_small_task()


def make_small_task():
    ucas("make-task", "--out", path("task"), "--count_train", 400, "--count_dev", 20, "--count_test", 20,
         "--count_worked", 4000, "--count_mixed", 1000, "--n_max", 6)
    ucas("sft", "--init", "qwen2", "--tokenizer", path("task", "tokenizer"), "--data",
         f"{path('task', 'sft_worked.jsonl')},{path('task', 'sft_mixed.jsonl')}", "--steps", "30,20",
         "--batch_size", 64, "--optimizer.lr", "5e-3", "--out", path("base"))


def train_words(out, *more):
    return ["train", "dapo-tiny", "--model", path("base"), "--data", path("task", "train.jsonl"), "--val",
            path("task", "dev.jsonl"), "--out", out, "--data.train_batch_size", 6, "--data.gen_batch_size", 8,
            "--update.mini_batch_size", 3, "--rollout.n", 8, "--objective.keep_mixed_groups", "false",
            "--train.test_freq", 4, *more]


def rows(run):
    """steps.jsonl without what a clock or a memory gauge says."""
    with open(os.path.join(run, "steps.jsonl")) as lines:
        return [{k: v for k, v in json.loads(line).items() if not k.startswith(("timing_", "perf/"))} for line in lines]


def same_steps(a, b, name, steps, but=()):
    """The weights and moments that run b keeps of steps 1 .. `steps`, and all lines of the log but these metrics."""
    for step in range(1, steps + 1):
        for file in ("model.safetensors", "state/optimizer.safetensors"):
            at = os.path.join("checkpoints", f"step-{step:07d}", file)
            if os.path.exists(path(b, at)):
                check(same_bytes(path(a, at), path(b, at)), f"{name}: {at} is the same")
    without = lambda run: [{k: v for k, v in r.items() if k not in but} for r in rows(path(run))]
    check(without(a) == without(b), f"{name}: steps.jsonl is the same")


def wait_until(happened, process=None, pause=0.002):
    """Until happened() is true, which is returned; False once the process has ended without it."""
    until = time.monotonic() + HANG
    while time.monotonic() < until:
        ended = process is not None and process.poll() is not None
        if result := happened():
            return result
        if ended:
            return False
        time.sleep(pause)
    fail("it hangs")


def wait_for_step(run, step, process):
    steps = os.path.join(run, "steps.jsonl")
    return wait_until(lambda: os.path.exists(steps) and f'"training/global_step": {step},' in open(steps).read(), process)


def stopped_at(words, fault, **options):
    """The program, standing still (SIGSTOP) at a call that UCAS_FAULT names, "step:3" or "write:70": src/base/files/file.h."""
    process = subprocess.Popen([UCAS, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "UCAS_FAULT": f"{fault}:0:stop"}, **options)
    stopped = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED
    if not stopped:
        fail(f"it ends before {fault}: exit {process.wait()}\n{process.stderr.read()}")
    return process


def end(process, number):
    """By a signal, whether it stands still or not; exit code and what it said."""
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    errors = process.communicate(timeout=HANG)[1]
    return process.returncode, errors


def free_port(first=10000):
    """Of 10,000, below the ports that Linux gives to outgoing connections and to servers that ask for any."""
    while True:
        with socket.socket() as s:
            port = random.randrange(first, first + 10000)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Nobody:
    """An address where no server listens, kept so: the port of one that has ended may be another's by now."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]


def start_ranks(size, words, of_rank={}, world=None, **more):
    """`of_rank`: by rank what one has that the others lack: `more` words, an `env`, a `cwd`. `world`: variables of all."""
    environment = {**os.environ, "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **(world or {}), **more}
    processes = []
    for rank in range(size):
        own = of_rank.get(rank, {})
        processes.append(subprocess.Popen([UCAS, *map(str, [*words, *own.get("more", ())])], cwd=own.get("cwd"),
                                          env={**environment, "RANK": str(rank), **own.get("env", {})}, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True))
    return processes


def finish(processes):
    said = [process.communicate(timeout=HANG) for process in processes]
    return [process.returncode for process in processes], [errors for _, errors in said]


class SamplingServer:
    """tests/support/sampling_server.py in a process of its own, with the base model."""

    def __init__(self, *words):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "..", "support", "sampling_server.py"), UCAS, "--model",
                                         path("base"), *map(str, words)], stdout=subprocess.PIPE, text=True)
        self.address = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def stop(self):
        self.process.terminate()
        return json.loads(self.process.communicate(timeout=HANG)[0])


def served_words(run, servers, *more):
    return train_words(path(run), "--rollout.servers", ",".join(s.address for s in servers),
                       "--train.test_freq", 0, "--train.save_freq", 1, "--train.stored_signals", 1, "--train.keep", 9,
                       "--update.reduce", "micro", "--update.micro_batch_tokens", 64, "--rollout.request_timeout", 600, *more)


SHARD = re.compile(r"-\d+-of-\d+(?=\.safetensors$)")


def tensors_of(checkpoint):
    """By file and name: type, shape and bytes. What each of several ranks has written of a file of state/ counts as that file's."""
    found = {}
    for folder, _, names in os.walk(checkpoint):
        for name in (n for n in names if n.endswith(".safetensors")):
            with open(os.path.join(folder, name), "rb") as file:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
                data = file.read()
            part = os.path.relpath(os.path.join(folder, SHARD.sub("", name) if folder.endswith("state") else name), checkpoint)
            for tensor, entry in header.items():
                if tensor == "__metadata__":
                    continue
                check_quietly((part, tensor) not in found, f"{checkpoint}: duplicate {tensor} in {part}")
                begin, end = entry["data_offsets"]
                found[part, tensor] = entry["dtype"], entry["shape"], data[begin:end]
    return found


def same_checkpoint(a, b, name, config=True):
    """The same tensors, and the same bytes of every other file: but the manifest, which lists files, and, of runs with other configs,
    state.json, which keeps a mark of them."""
    x, y = tensors_of(a), tensors_of(b)
    check_quietly(len(y) > 6, f"{name}: tensors of {b}")
    check_quietly(x.keys() == y.keys(), f"{name}: tensors of one alone: {sorted(x.keys() ^ y.keys())[:4]}")
    for key in y:
        check_quietly(x[key] == y[key], f"{name}: {key} of {os.path.basename(a)}")
    others = []
    for at in (a, b):
        others.append({os.path.relpath(os.path.join(folder, file), at) for folder, _, names in os.walk(at) for file in names
                       if not file.endswith(".safetensors") and file != "manifest.json" and (config or file != "state.json")})
    check_quietly(others[0] == others[1], f"{name}: files of one alone: {others[0] ^ others[1]}")
    for file in sorted(others[1]):
        check_quietly(same_bytes(os.path.join(a, file), os.path.join(b, file)), f"{name}: {file} of {os.path.basename(a)}")
    print(f"ok: {name}: {os.path.basename(a)} has the same {len(y)} tensors and {len(others[1])} other files")


def check_quietly(condition, message):
    if not condition:
        fail(message)


def same_bytes(a, b):
    with open(a, "rb") as x, open(b, "rb") as y:
        return x.read() == y.read()


def same_bits_over_inserts(words):
    """Trains the runs `one` in f32 and `bf16` by words(run, ..): both have inserts, and sampler and trainer the same bits over them. What `one` said."""
    done = ucas(*words("one"))
    ucas(*words("bf16", "--dtype", "bf16"))
    for run in ("one", "bf16"):
        trained = [row for row in rows(path(run)) if row["training/global_step"] > 0]
        check(all(row["rollout/logprob_diff_max"] == 0 for row in trained), f"{run}: sampler and trainer have the same bits over answers")
        check(all(row["rollout/turns/mean"] > 1 for row in trained), f"{run}: the environment was asked")
    return done


def environment_of_responses(run, test):
    """What the responses of an evaluation of a run on test.jsonl say of the environment."""
    ucas("evaluate", path(run), "--data", path(f"{test}.jsonl"), "--out", path("evaluated"), "--threads", 1)
    [place] = os.listdir(path("evaluated"))
    with open(path("evaluated", place, "eval", f"{test}.outputs.jsonl")) as lines:
        return json.loads(lines.readline())["environment"]


def resumes_and_replays(killed, steps):
    """The run `one` again as the run `killed`, by the words `killed`: killed after step 2 and resumed it is the same, and `one` can be replayed."""
    process = stopped_at(killed, "step:2")
    end(process, signal.SIGKILL)
    ucas("train", "--resume", path("killed"))
    for step in range(1, steps + 1):
        files = [os.path.join("checkpoints", f"step-{step:07d}", "model.safetensors")]
        files += [os.path.join(folder, f"step-{step:07d}.jsonl") for folder in ("rollouts", "signals")]
        check(all(same_bytes(path("one", at), path("killed", at)) for at in files), f"step {step} of a killed and resumed run is the same")
    check(rows(path("one")) == rows(path("killed")), "steps.jsonl is the same")
    done = ucas("replay", path("one"), "--step", 2)
    check("16 of 16 responses identical" in done.stdout, "all responses of a step are replayed")


def clean():
    shutil.rmtree(SCRATCH, ignore_errors=True)


atexit.register(clean)
