"""A server that speaks what training asks of samplers, vLLM's interface as its documentation has it, in front of
ucas-fake-server, which is started anew for every directory of weights that is handed over; and that can be told to be at
fault.

    sampling_server.py UCAS --model DIR [--fault NAME] [--faults N]

Faults of the hand-over: "ignore" acknowledges weights and keeps those it has, "refuse" says no. Faults of replies, each request's first N of them: stall, drop, damaged, cut, 429, 500, fewer, outside,
lengths, abort, positive; "mixed" takes them in turn, "always NAME" never ends. Prints its port; on SIGTERM what it did, as
one line of JSON."""
import argparse
import collections
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import zlib

from server_base import Handler, Server

REPLIES = ["stall", "drop", "damaged", "cut", "429", "500", "fewer", "outside", "lengths", "abort", "positive"]


class Backend:
    """A model of one directory, which samples and scores."""

    def __init__(self, directory):
        self.process = subprocess.Popen([os.path.join(os.path.dirname(OPTIONS.ucas), "ucas-fake-server"), directory], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split(":")[2])

    def ask(self, **body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        choice = json.loads(connection.getresponse().read())["choices"][0]
        connection.close()
        return choice

    def complete(self, prompt, tokens, temperature, seed, stops):
        choice = self.ask(prompt=prompt, max_tokens=tokens, temperature=temperature, seed=seed, stop_token_ids=stops)
        return choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"]

    def score(self, ids):
        """Log-probs of all ids but the first, at temperature 1."""
        return [next(iter(one.values()))["logprob"] for one in self.ask(prompt=ids, prompt_logprobs=0)["prompt_logprobs"][1:]]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def take(directory):
    """True where the weights are loaded, or said to be."""
    global BACKEND
    with LOCK:
        COUNTS["hand_over"] += 1
    if OPTIONS.fault == "refuse":
        return False
    if OPTIONS.fault != "ignore" or BACKEND is None:
        before, BACKEND = BACKEND, Backend(directory)
        if before:
            before.stop()
    return True


class Answers(Handler):
    def do_GET(self):
        if self.path == "/v1/models":
            return self.reply(200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        self.reply(404, {"detail": "Not Found"})

    def do_POST(self):
        global VERSION
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with LOCK:
            COUNTS[self.path] += 1
        if self.path in ("/pause?mode=wait", "/resume"):
            return self.reply(200, {"status": "paused" if "pause" in self.path else "resumed"})
        if self.path == "/collective_rpc" and asked["method"] == "reload_weights":
            good = take(asked["kwargs"]["weights_path"])
            return self.reply(200, {"results": [None]}) if good else self.reply(400, {"error": {"message": "no such path"}})
        if self.path == "/reset_prefix_cache":
            return self.reply(200, "")
        if self.path == "/update_weight_version":
            VERSION = asked["new_version"]
            return self.reply(200, {"success": True, "new_version": VERSION})
        if self.path == "/v1/completions":
            if "prompt_logprobs" in asked:
                return self.scored(asked["prompt"])
            return self.sampled(asked["prompt"], asked["max_tokens"], asked["temperature"], asked["seed"],
                                asked["stop_token_ids"])
        self.reply(404, {"detail": "Not Found"})

    def scored(self, ids):
        values = [None, *BACKEND.score(ids)]
        self.reply(200, {"choices": [{"index": 0, "text": "", "finish_reason": "length", "logprobs": None, "prompt_logprobs": [
            None if v is None else {str(i): {"logprob": v, "rank": 1, "decoded_token": ""}} for v, i in zip(values, ids)]}]})

    def sampled(self, prompt, limit, temperature, seed, stops):
        ids, values, reason = BACKEND.complete(prompt, limit, temperature, seed, stops)
        fault = OPTIONS.fault
        if fault == "mixed" or fault in REPLIES or fault.startswith("always "):
            name = f"{prompt} {seed} {VERSION}"
            with LOCK:
                tries = TRIES[name] = TRIES[name] + 1
            if fault.startswith("always "):
                fault = fault[len("always "):]
            elif tries > OPTIONS.faults:
                fault = ""
            elif fault == "mixed":
                fault = REPLIES[(zlib.crc32(name.encode()) + tries) % len(REPLIES)]
            with LOCK:
                COUNTS[fault or "answered"] += 1
            if fault == "stall":
                return self.stall()
            if fault == "drop":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if fault == "429":
                return self.reply(429, {"error": {"message": "slow down"}}, [("Retry-After", "0")])
            if fault == "500":
                return self.reply(500, {"error": {"message": "trouble"}})
            if fault == "fewer":
                ids, values, reason = (ids[:-1], values[:-1], "length") if len(ids) > 1 else ([], [], "length")
            if fault == "outside":
                ids = [*ids[:-1], 100000]
            if fault == "lengths":
                values = values[:-1]
            if fault == "abort":
                reason = "abort"
            if fault == "positive":
                values = [0.5, *values[1:]]
        body = self.body(ids, values, reason)
        if fault == "damaged":
            return self.reply(200, json.dumps(body)[:-3] + "\x00")
        if fault == "cut":
            self.reply(200, body, length=len(json.dumps(body)) + 100)
            self.close_connection = True
            return
        self.reply(200, body)

    def body(self, ids, values, reason):
        return {"id": "x", "object": "text_completion", "model": "tiny", "choices": [{
            "index": 0, "text": "", "finish_reason": reason, "token_ids": ids,
            "logprobs": {"token_logprobs": values, "tokens": [f"token_id:{i}" for i in ids], "top_logprobs": None}}]}


parser = argparse.ArgumentParser()
parser.add_argument("ucas")
parser.add_argument("--model", required=True)
parser.add_argument("--fault", default="")
parser.add_argument("--faults", type=int, default=1)
OPTIONS = parser.parse_args()
LOCK = threading.Lock()
COUNTS, TRIES = collections.Counter(), collections.Counter()
VERSION = "default"
BACKEND = Backend(OPTIONS.model)
server = Server(("127.0.0.1", 0), Answers)
print(server.server_address[1], flush=True)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
BACKEND.stop()
print(json.dumps(COUNTS))
sys.stdout.flush()
