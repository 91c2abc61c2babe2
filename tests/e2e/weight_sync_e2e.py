"""Weights to servers by a group of torch.distributed over Gloo, joined by PyTorch itself as SGLang's workers do: the bits of weights that
went by a directory, and one line where a server does not join, joins another group, or ends amid the weights. It needs a Python that
imports torch: this one, or this one with the build's wheel."""
import glob
import os
import subprocess
import sys

from support import SamplingServer, check, clean, finish, path, rows, same_bytes, same_steps, served_words, small_task, start_ranks, ucas

HERE = os.path.dirname(os.path.realpath(__file__))
STEPS = 3
packages = glob.glob(os.path.join(HERE, "../../.venv/lib/python3*/site-packages"))
WITH_TORCH = {**os.environ, "TORCH_CPP_LOG_LEVEL": "FATAL", "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), *packages])}
if subprocess.run([sys.executable, "-W", "ignore", "-c", "import torch.distributed as d; assert d.is_gloo_available()"], env=WITH_TORCH,
                  capture_output=True).returncode != 0:
    print("skipped: no torch for Python here")
    sys.exit(77)
small_task()


def server_of(*words):
    return SamplingServer("sglang", *words, env=WITH_TORCH)


def words(run, servers, *more):
    return served_words(run, servers, "--train.steps", STEPS, "--rollout.weight_sync", "gloo", *more)


server = server_of()
ucas(*served_words("disk", [server], "--train.steps", STEPS))
ucas(*words("one", [server]))
counts = server.stop()
check(counts["/init_weights_update_group"] == 1 and counts["/destroy_weights_update_group"] == 1, "a run joins once and leaves")
check(counts["/update_weights_from_distributed"] == STEPS and counts["/update_weights_from_disk"] == STEPS, f"before each step: {counts}")
check(not os.path.exists(path("one", "weights")), "no directory of weights is written")
check(all(r["rollout/weight_sync_diff"] < 1e-5 for r in rows(path("one")) if r["training/global_step"] > 0), "the servers have ours")
same_steps("one", "disk", "by a group", STEPS)

servers = [server_of(), server_of()]
ucas(*words("two", servers))
check(all(s.stop()["/update_weights_from_distributed"] == STEPS for s in servers), "two servers in one group")
same_steps("two", "disk", "two servers", STEPS)

for shard in ("moments", "weights"):
    server, run = server_of(), f"ranks-{shard}"
    codes, said = finish(start_ranks(2, words(run, [server], "--update.shard", shard)))
    check(codes == [0, 0], f"two ranks that share {shard}: {said}")
    server.stop()
    for step in range(1, STEPS + 1):
        at = os.path.join("checkpoints", f"step-{step:07d}", "model.safetensors")
        check(same_bytes(path(run, at), path("disk", at)), f"two ranks that share {shard}: {at} is the same")

# Patience is the product's own limit here: a server that stays away is waited for so long.
for fault, words_of_it in (
        ("absent", "the group of 2 ranks that gets weights (rollout.weight_sync = \"gloo\") was not joined: no one came within 6 s"),
        ("larger", "the group of 2 ranks that gets weights (rollout.weight_sync = \"gloo\") was not joined"),
        ("pipeline", "/get_server_info: pp_size = 2: only servers of tensor parallel workers join a group"),
        ("unknown", "/update_weights_from_distributed: the weights of step 0 are not taken"),
        ("dies", "the weights of step 1 are not taken")):
    server = server_of("--fault", fault)
    more = ("--rollout.patience", 6) if fault in ("absent", "larger") else ()
    done = ucas(*words(fault, [server], *more), expect=75)
    errors = [line for line in (done.stdout + done.stderr).splitlines() if "error[" in line]
    check(len(errors) == 1 and words_of_it in errors[0] and server.address in errors[0], f"{fault}: {errors}")
    if fault == "dies":
        server.process.wait()
        check(len(rows(path(fault))) >= 1, "a run whose server dies is saved")
        server = server_of()
        ucas("train", "--resume", path(fault), "--rollout.servers", server.address)
        same_steps(fault, "disk", "gone on with by another server", STEPS)
    server.process.kill() if fault in ("absent", "larger") else server.process.poll() is None and server.stop()
clean()
