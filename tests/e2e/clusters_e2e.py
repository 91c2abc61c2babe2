"""The examples of docs/clusters.md as far as one host can run them: the words and variables of each launcher, two ranks and more, over
Gloo. Each ends in the same bits, those of one process."""
import glob
import json
import os
import re
import subprocess
import sys

from support import HANG, UCAS, check, clean, finish, free_port, path, rows, same_bytes, small_task, start_ranks, train_words, ucas

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
    at = os.path.join("checkpoints", "step-0000004", "model.safetensors")
    check(same_bytes(path("restarted", at), path("spared", at)), "restarted by torchrun: the weights are the same")
else:
    print("torchrun is not here: its example was not run")

# srun's variables; the port is that of the job, 20000 and its last four digits.
check("srun --kill-on-bad-exit=1 ucas train CONFIG.toml" in block("sh", "#SBATCH"), "what srun starts")
job = free_port(20000)


def of_task(task):
    return {**{name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}, "SLURM_STEP_NUM_TASKS": "3",
            "SLURM_PROCID": str(task), "SLURM_LOCALID": str(task), "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": str(job)}


codes, said = finish([subprocess.Popen([UCAS, *words("srun")], env=of_task(task), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                      for task in range(3)])
check(codes == [0, 0, 0], f"srun: {said[0][-300:]}")
the_same("srun")

# One launcher a host, by the variables of the page and by the command of the pod.
page = block("sh", "NODE_RANK=1")
pod = re.search(r'command: \[sh, -c, "(.*)"\]', block("yaml", "kind: Job")).group(1)
port = str(free_port())
for name, line_of in (("hosts", lambda node: [line for line in page.splitlines() if f"NODE_RANK={node}" in line][0]), ("pods", lambda node: pod)):
    processes = []
    for node in range(2):
        command = line_of(node).split("#")[0].replace("--gpus all", "--ranks 2").replace("node0", "127.0.0.1").replace("29500", port)
        head, tail = re.split(r"ucas train .*--ranks 2 --resume auto", command)
        check(tail.strip() == "", f"{name}: nothing after the words of a training")
        command = head + '"$@"'
        environment = {**os.environ, "JOB_COMPLETION_INDEX": str(node), "NNODES": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        processes.append(subprocess.Popen(["sh", "-c", command, "sh", UCAS, *words(name), "--ranks", "2"], env=environment,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    codes, said = finish(processes)
    check(codes == [0, 0], f"{name}: two launchers of two ranks: {[text[-300:] for text in said]}")
    the_same(name)
    port = str(free_port())

# The check, by whatever sets RANK and WORLD_SIZE: rank 0 alone speaks.
processes = start_ranks(3, ["doctor", "--json"])
said = [process.communicate(timeout=HANG) for process in processes]
check([process.returncode for process in processes] == [0, 0, 0], f"three ranks: {said[0][1][-300:]}")
check(all(out == "" and errors == "" for out, errors in said[1:]), "rank 0 alone speaks")
report = json.loads(said[0][0])
check(report["ranks"] == "3" and len(report["between_ranks"]) == 7, "each call has a row")
check(all(row["ok"] and row["bytes"] > 0 for row in report["between_ranks"]), "with the bits of one process")
try:
    import yaml
except ImportError:
    print("no YAML reader is here: the objects of Kubernetes were read as text alone")
else:
    service, job = yaml.safe_load_all(block("yaml", "kind: Job"))
    spec = job["spec"]["template"]["spec"]
    check(spec["subdomain"] == service["metadata"]["name"] and service["spec"]["selector"] == {"job-name": job["metadata"]["name"]},
          "the service is of the pods")
    variables = {entry["name"]: entry["value"] for entry in spec["containers"][0]["env"]}
    check(variables["NNODES"] == str(job["spec"]["completions"]) == str(job["spec"]["parallelism"]), "as many hosts as pods")
    check(variables["MASTER_ADDR"] == f'{job["metadata"]["name"]}-0.{spec["subdomain"]}', "all meet at pod 0")
clean()
