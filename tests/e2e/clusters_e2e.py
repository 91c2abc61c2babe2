"""The examples of docs/clusters.md as far as one host can run them: the words and variables of each launcher, two ranks and more, over
Gloo. Each ends in the same bits, those of one process."""
import glob
import os
import re
import subprocess
import sys

from support import HANG, UCAS, check, clean, finish, free_port, path, rows, same_bytes, small_task, train_words, ucas

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "clusters.md")
with open(PAGE) as file:
    BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", file.read(), re.M | re.S)
small_task()


def words(run):
    return [str(word) for word in train_words(path(run), "--train.steps", 2, "--update.micro_batch_tokens", 64, "--update.reduce", "micro",
                                              "--resume", "auto")]


def the_same(run):
    check(rows(path(run)) == rows(path("one")), f"{run}: steps.jsonl is that of one process")


def block(language, part):
    found = [text for kind, text in BLOCKS if kind == language and part in text]
    check(len(found) == 1, f"one block has {part!r}")
    return found[0]


for kind, text in BLOCKS:
    if kind == "sh":
        check(subprocess.run(["sh", "-n"], input=text, text=True).returncode == 0, f"a shell reads {text[:60]!r}")
ucas(*words("one"))

# torchrun, where it is: that of the build's LibTorch, which is PyTorch's wheel.
packages = glob.glob(os.path.join(os.path.dirname(PAGE), "..", ".venv", "lib", "python3*", "site-packages"))
WITH_TORCH = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), *packages])}
command = " ".join(block("sh", "torchrun").replace("\\\n", " ").split())
if subprocess.run([sys.executable, "-c", "import torch.distributed.run"], capture_output=True, env=WITH_TORCH).returncode == 0:
    before, after = command.removeprefix("torchrun ").split(" ucas train ")
    before = before.replace("--nnodes 2", "--nnodes 1").replace("--nproc-per-node 8", "--nproc-per-node 2").replace("node0:29500",
                                                                                                        f"127.0.0.1:{free_port()}")
    check(after == "CONFIG.toml --out RUN --resume auto --device cuda", "what torchrun starts")
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", *before.split(), UCAS, *words("torchrun")], capture_output=True,
                          text=True, timeout=HANG, env=WITH_TORCH)
    check(done.returncode == 0, f"torchrun: {done.stderr[-400:]}")
    the_same("torchrun")
    # Rank 0 is killed with the third line of its log, and torchrun starts all again: the weights of a run that nothing disturbed.
    longer = ["--train.steps", "4", "--train.save_freq", "1"]
    ucas(*words("spared"), *longer)
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", *before.replace("--max-restarts 3", "--max-restarts 2").split(), UCAS,
                           *words("restarted"), *longer], capture_output=True, text=True, timeout=HANG,
                          env={**WITH_TORCH, "UCAS_FAULT": "step:3:0:kill"})
    check(done.returncode == 0 and "resuming" in done.stderr, f"torchrun restarts: {done.stderr[-400:]}")
    check(rows(path("restarted")) == rows(path("spared")), "restarted by torchrun: steps.jsonl is the same")
    # The command of the pod, as two pods run it.
    pod = re.search(r'command: \[sh, -c, "exec torchrun (.*) ucas train .*"\]', block("yaml", "kind: Job")).group(1)
    pod = pod.replace("--nproc-per-node 8", "--nproc-per-node 2").replace("ucas-0.ucas", "127.0.0.1").replace("29500", str(free_port()))
    codes, said = finish([subprocess.Popen([sys.executable, "-m", "torch.distributed.run", *pod.replace("$JOB_COMPLETION_INDEX", str(node)).split(),
                                            UCAS, *words("pods")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=WITH_TORCH)
                          for node in range(2)])
    check(codes == [0, 0], f"pods: two ranks in each of two: {[text[-300:] for text in said]}")
    the_same("pods")
    at = os.path.join("checkpoints", "step-0000004", "model.safetensors")
    check(same_bytes(path("restarted", at), path("spared", at)), "restarted by torchrun: the weights are the same")
else:
    print("torchrun is not here: its example was not run")

# The command that the page gives to srun, with what that and its script set; rank 0 comes last.
command = re.search(r"^srun --kill-on-bad-exit=1 sh -c '(.*)'$", block("sh", "#SBATCH"), re.M).group(1)
head, tail = command.split("ucas train CONFIG.toml --out RUN --resume auto --device cuda")
check(tail == "", "nothing comes after the words of a training")
port = str(free_port())
codes, said = finish([subprocess.Popen(["sh", "-c", head + '"$@"', "sh", UCAS, *words("srun")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, env={**os.environ, "SLURM_PROCID": str(task), "SLURM_LOCALID": str(task), "WORLD_SIZE": "3",
                                                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}) for task in (1, 2, 0)])
check(codes == [0, 0, 0], f"srun: {[text[-300:] for text in said]}")
the_same("srun")

try:
    import yaml
except ImportError:
    print("no YAML reader is here: the objects of Kubernetes were read as text alone")
else:
    service, job = yaml.safe_load_all(block("yaml", "kind: Job"))
    spec = job["spec"]["template"]["spec"]
    check(spec["subdomain"] == service["metadata"]["name"] and service["spec"]["selector"] == {"job-name": job["metadata"]["name"]},
          "the service is of the pods")
    command = spec["containers"][0]["command"][2]
    check(f'--nnodes {job["spec"]["completions"]} ' in command and job["spec"]["completions"] == job["spec"]["parallelism"], "as many hosts as pods")
    check(f'--master-addr {job["metadata"]["name"]}-0.{spec["subdomain"]} ' in command, "all meet at pod 0")
clean()
