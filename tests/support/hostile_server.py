"""An OpenAI-compatible server that fails in every way a network knows, by counts and not by chance: of each request the
first tries stall, drop, are damaged, are cut, say 429, 500 or 503, and the last answers. What it answers follows from the
prompt alone, so that a client that lost, mixed up or invented a response is found out.

    hostile_server.py --failures 2 [--refuse TEXT] [--dead]

Prints its port, and on SIGTERM what it did as one line of JSON."""
import argparse
import collections
import json
import signal
import socket
import sys
import threading
import zlib

from server_base import Handler, Server

FAULTS = ["stall", "drop", "damaged", "cut", "429", "500", "503", "html", "no choice", "half"]


def answer_to(prompt):
    """Right for every prompt with an even last digit: the box holds it."""
    digits = "".join(c for c in prompt if c.isdigit())
    return f"\\boxed{{{digits}}}" if int(digits[-1]) % 2 == 0 else f"\\boxed{{{digits}1}}"


class Answers(Handler):
    def do_GET(self):
        self.reply(200, json.dumps({"object": "list", "data": [{"id": "fake", "object": "model"}]}))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Authorization", "")
        prompt = asked["prompt"]
        with LOCK:
            COUNTS["requests"] += 1
        if not isinstance(prompt, str):
            return self.reply(400, json.dumps({"error": {"message": f"only texts, {key}"}}))
        if prompt == "1":  # the first look
            return self.good(asked, "1")
        if OPTIONS.dead:
            return self.reply(500, json.dumps({"error": {"message": f"dead; you sent {key}"}}))
        if OPTIONS.refuse and OPTIONS.refuse in prompt:
            return self.reply(400, json.dumps({"error": {"message": f"refused; you sent {key}"}}))
        name = f"{prompt} {asked.get('seed')}"
        with LOCK:
            tries = TRIES[name] = TRIES[name] + 1
        if tries <= OPTIONS.failures:
            fault = FAULTS[(zlib.crc32(name.encode()) + tries) % len(FAULTS)]
            with LOCK:
                COUNTS[fault] += 1
            return self.fault(fault, asked, prompt, key)
        with LOCK:
            COUNTS["answered"] += 1
        return self.good(asked, answer_to(prompt))

    def good(self, asked, text):
        body = {"id": "x", "object": "text_completion", "model": "fake",
                "choices": [{"index": 0, "text": text, "finish_reason": "stop", "logprobs": None}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 7}}
        self.reply(200, json.dumps(body))

    def fault(self, fault, asked, prompt, key):
        wrong = json.dumps({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
        if fault == "stall":
            self.stall()
        elif fault == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif fault == "damaged":
            self.reply(200, wrong[:-9] + "\x00" + wrong[-8:])
        elif fault == "cut":
            self.reply(200, wrong, length=len(wrong) + 100)
            self.close_connection = True
        elif fault == "html":
            self.reply(502, f"<html>bad gateway {key}</html>", kind="text/html")
        elif fault == "no choice":
            self.reply(200, json.dumps({"choices": [], "usage": {"completion_tokens": 0}}))
        elif fault == "half":  # a whole body whose response was given up
            self.reply(200, json.dumps({"choices": [{"index": 0, "text": "\\boxed{", "finish_reason": "abort"}]}))
        else:
            headers = [("Retry-After", "0")] if fault == "429" else []
            self.reply(int(fault), json.dumps({"error": {"message": f"trouble; you sent {key}"}}), headers)


LOCK = threading.Lock()
COUNTS, TRIES = collections.Counter(), collections.Counter()
parser = argparse.ArgumentParser()
parser.add_argument("--failures", type=int, default=2)
parser.add_argument("--refuse", default="")
parser.add_argument("--dead", action="store_true")
OPTIONS = parser.parse_args()
server = Server(("127.0.0.1", 0), Answers)
print(server.server_address[1], flush=True)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
print(json.dumps(COUNTS))
sys.stdout.flush()
