"""Training whose samples come from servers that speak vLLM's interface: right log-probs of the right weights, the same
run whatever goes wrong on the way, and a stop where weights were acknowledged and not delivered."""
import os
import signal

from support import PATIENCE, SamplingServer as Server
from support import check, clean, end, path, rows, same_steps, served_words, small_task, stopped_at, ucas

STEPS = 3
RETRIES = ("rollout/retries",)
small_task()


def words(run, servers, *more):
    return served_words(run, servers, "--train.steps", STEPS, *more)


def train(run, servers, *more, expect=0):
    done = ucas(*words(run, servers, *more), expect=expect)
    return done.stdout + done.stderr


# Right weights, right log-probs.
server = Server()
train("served", [server])
counts = server.stop()
check(counts["hand_over"] == STEPS, f"weights are handed over before each step, {counts['hand_over']}")
steps = [r for r in rows(path("served")) if r["training/global_step"] > 0]
check(len(steps) == STEPS and all(r["rollout/weight_sync_diff"] < 1e-5 for r in steps), "a known text has our log-probs")
check(all(r["rollout/logprob_diff_max"] < 1e-4 for r in steps), "so has every response")
kept = os.listdir(path("served", "weights"))
check(kept == [f"step-{STEPS - 1}"], "weights that were handed over before are removed")

# Whatever goes wrong on the way, the same run: each response has its own seed.
server = Server("--fault", "mixed", "--faults", 2)
# A stalled request costs its timeout; of eight at once an answer takes a hundredth of it.
train("faults", [server], "--rollout.request_timeout", 3 * PATIENCE, "--rollout.patience", 600 * PATIENCE)
counts = server.stop()
check(sum(counts[f] > 0 for f in ("stall", "drop", "damaged", "cut", "429", "500", "fewer", "outside", "lengths", "abort",
                                  "positive")) >= 9, f"faults came: {counts}")
same_steps("faults", "served", "a server with faults", STEPS, but=RETRIES)

servers = [Server(), Server("--fault", "mixed")]
train("two", servers, "--rollout.request_timeout", 3 * PATIENCE)
check(all(s.stop()["/v1/completions"] > 50 for s in servers), "two servers share the requests")
same_steps("two", "served", "two servers", STEPS, but=RETRIES)

# A fault that does not end, ends the run: one line, nothing trained on.
for fault, words_of_it in (("outside", "token id 100000 is outside of the vocabulary"), ("fewer", "tokens that neither ended"),
                           ("damaged", "a damaged reply"), ("lengths", "damaged reply"), ("positive", "log-prob of 0.5 is none"),
                           ("500", "HTTP 500: trouble"), ("abort", "it ended by abort")):
    server = Server("--fault", f"always {fault}")
    said = train(f"always-{fault}", [server], "--rollout.retries", 1, expect=75)
    server.stop()
    errors = [line for line in said.splitlines() if "error[" in line]
    check(len(errors) == 1 and words_of_it in errors[0], f"always {fault}: {errors}")
    check(not os.path.exists(path(f"always-{fault}", "steps.jsonl")), f"always {fault}: nothing was trained on")

# An update that is acknowledged and not delivered (the second: the first one has a learning rate of 0); the run is saved, and goes on with a server that delivers.
server = Server("--fault", "ignore")
said = train("ignored", [server], expect=75)
server.stop()
check("acknowledged the weights of step 2, but its log-probs of a known text are still those of the weights before" in said,
      f"weights that did not arrive are found out: {said.splitlines()[-1]}")
check(len(rows(path("ignored"))) == 2, "before anything is trained on what they drew")
server = Server()
ucas("train", "--resume", path("ignored"), "--rollout.servers", server.address)
check(server.stop()["hand_over"] == STEPS - 2, "a server is told the weights of the checkpoint")
same_steps("ignored", "served", "gone on with by a server that delivers", STEPS, but=RETRIES)

# One that refuses, and one that is gone when weights are handed over: after rollout.patience, and it is said before.
server = Server("--fault", "refuse")
check("/collective_rpc: the weights of step 0" in train("refused", [server], expect=75), "a refusal ends the run")
server.stop()
server = Server()
process = stopped_at(words("gone", [server], "--rollout.retries", 1000, "--rollout.patience", 5), "step:2")
server.stop()
code, said = end(process, signal.SIGCONT)
check(code == 75 and "rollout.patience" in said.split("error[")[0] and said.count("retried for up to") == 1, f"a server that is gone ends the run, saved: {code} {said[-600:]}")
check("saved after step 2" in said, "and it goes on after step 2")
server.stop()
done = ucas(*words("bad", [server], "--rollout.top_p", 0.9), expect=2)
check("rollout.top_p" in done.stderr, "a cut that servers do not tell is refused")
clean()
