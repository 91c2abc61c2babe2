"""`ucas train --ranks N` starts its processes itself: the same bits as one process, one line for a failure, and the exit code of the rank that
failed first by itself. No other host reaches them; a stop that comes twice is one."""
import ipaddress
import os
import signal
import subprocess

from support import HANG, UCAS, check, clean, path, rows, small_task, tensors_of, train_words, ucas, wait_for_step, wait_until

STEPS = 6
ENDLESS = ("--train.steps", "4000")  # for what a signal ends: a run of a few steps may be over before it comes
small_task()


def words(run, *more):
    return [str(word) for word in train_words(run, "--train.steps", STEPS, "--update.micro_batch_tokens", 64, "--train.save_freq", 2,
                                              "--update.reduce", "micro", *more)]


def same_run(run, name):
    check(rows(run) == rows(path("one")), f"{name}: steps.jsonl is that of one process")
    at = os.path.join("checkpoints", f"step-{STEPS:07d}")
    check(tensors_of(os.path.join(run, at)) == tensors_of(os.path.join(path("one"), at)), f"{name}: weights and moments are those of one process")


def start(run, *more):
    return subprocess.Popen([UCAS, *words(run, *more)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def variables(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
    except OSError:
        return {}


def ranks_of(launcher):
    """pid by rank."""
    with open(f"/proc/{launcher.pid}/task/{launcher.pid}/children") as file:
        children = [int(pid) for pid in file.read().split()]
    return {int(variables(pid).get(b"RANK", b"-1")): pid for pid in children}


def listening_of(*pids):
    """Addresses on which these processes listen."""
    found = []
    for pid in pids:
        sockets = set()
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                sockets.add(os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                continue
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{pid}/net/{table}") as file:
                lines = [line.split() for line in file.readlines()[1:]]
            for line in lines:
                if line[3] != "0A" or f"socket:[{line[9]}]" not in sockets:
                    continue
                words = bytes.fromhex(line[1].split(":")[0])
                address = ipaddress.ip_address(b"".join(words[i:i + 4][::-1] for i in range(0, len(words), 4)))
                found.append(str(getattr(address, "ipv4_mapped", None) or address))
    return found


def gone(pid):
    """Ended, or waited for by nobody yet."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def struck(name, number, at):
    """Rank 1 gets a signal after step `at`; exit code and what was said."""
    process = start(path(name), "--ranks", "2", *ENDLESS)
    check(wait_for_step(path(name), at, process), f"{name}: two ranks reach step {at}")
    ranks = ranks_of(process)
    check(set(ranks) == {0, 1}, f"{name}: they are children of the launcher")
    os.kill(ranks[1], number)
    said = process.communicate(timeout=HANG)[1]
    check(wait_until(lambda: all(gone(pid) for pid in ranks.values())), f"{name}: no rank is left")
    return process.returncode, said


ucas(*words(path("one")))
said = ucas(*words(path("two"), "--ranks", 2)).stderr
check(said.count("DAPO on ") == 1, "one of two ranks speaks")
same_run(path("two"), "two ranks")

code, said = struck("killed", signal.SIGKILL, 3)
check(code == 70 and "rank 1 was killed by signal 9 (Killed)" in said, f"killed: {code}, said")
code, said = struck("still", signal.SIGSTOP, 3)
check(code == 70 and "rank 1: no heartbeat" in said, f"still: {code}, {said}")

# The first cause: rank 0's disk is full, and rank 1 ends because rank 0 has.
done = ucas(*words(path("full"), "--ranks", 2), expect=74, env={**os.environ, "UCAS_FAULT": "write:120:28:sticky"})
check("rank 0 ended with exit code 74" in done.stderr, f"a full disk ends all with its own code: {done.stderr[-400:]}")

process = start(path("stopped"), "--ranks", "2")
check(wait_for_step(path("stopped"), 2, process), "two ranks reach step 2")
process.send_signal(signal.SIGTERM)
said = process.communicate(timeout=HANG)[1]
check(process.returncode in (0, 75), "a stop is forwarded")
check(process.returncode == 0 or "stopped after step" in said, "saved")
ucas("train", "--resume", path("stopped"), "--ranks", 3)
same_run(path("stopped"), "stopped at two ranks, resumed by three")

# A stop that comes more than once: by GNU timeout to the child and its group, by systemd and scancel to every process. Rank 1 has a group of
# its own and hears of it by the launcher alone.
for name, more, tell in (("one-twice", (), lambda process, ranks: [process.send_signal(signal.SIGTERM) for _ in range(2)]),
                         ("one-five", (), lambda process, ranks: [process.send_signal(signal.SIGTERM) for _ in range(5)]),
                         ("group", ("--ranks", "2"), lambda process, ranks: os.killpg(process.pid, signal.SIGTERM)),
                         ("every", ("--ranks", "2"), lambda process, ranks: [os.kill(pid, signal.SIGTERM) for pid in (*ranks.values(), process.pid)]),
                         ("twice", ("--ranks", "2"), lambda process, ranks: [os.killpg(process.pid, signal.SIGTERM) for _ in range(5)])):
    process = subprocess.Popen([UCAS, *words(path(name), *more, *ENDLESS)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    check(wait_for_step(path(name), 2, process), f"{name}: step 2 is reached")
    tell(process, ranks_of(process) if more else {})
    said = process.communicate(timeout=HANG)[1]
    check(process.returncode == 75 and "stopped after step" in said, f"{name}: saved, 75: {process.returncode} {said[-300:]}")

# Nobody but this host reaches the ranks, and whoever reaches their store knows no key of it.
process = start(path("orphans"), "--ranks", "2", *ENDLESS)
check(wait_for_step(path("orphans"), 1, process), "two ranks reach step 1")
ranks = ranks_of(process)
check(set(ranks) == {0, 1}, "orphans: they are children of the launcher")
listening = listening_of(*ranks.values())
check(listening and set(listening) <= {"127.0.0.1", "::1"}, f"they listen on the loopback interface alone: {listening}")
process.kill()
process.wait()
check(wait_until(lambda: all(gone(pid) for pid in ranks.values())), "ranks end when their launcher was killed")


def refused(expected, *more, code=2, **variables_set):
    done = ucas(*words(path("refused"), *more), expect=code, env={**os.environ, **variables_set})
    lines = [line for line in done.stderr.splitlines() if "error[" in line]
    check(len(lines) == 1 and expected in lines[0], f"{more} {variables_set}: one line, {expected}")
    check(not os.path.exists(path("refused")), "and nothing is written")


refused("--ranks 0: expected a whole number from 1 to 256", "--ranks", "0")
refused("--ranks two: expected a whole number", "--ranks=two")
refused("a value is missing", "--ranks")
refused("give one", "--ranks", "2", "--gpus", "all")
DRIVER = {"LD_LIBRARY_PATH": os.path.join(os.path.dirname(UCAS), "fake-driver")}  # what it says counts, not what /proc lists
refused("no NVIDIA GPU is visible", "--gpus", "all", FAKE_CUDA_DEVICES="0", **DRIVER)
refused("--gpus 3: expected a whole number from 1 to 2", "--gpus", "3", FAKE_CUDA_DEVICES="2", **DRIVER)
refused("RANK or WORLD_SIZE is set", "--ranks", "2", RANK="0", WORLD_SIZE="2")
refused("update.lr_", "--ranks", "2", "--update.lr_", "1")  # the ranks agree on it
clean()
