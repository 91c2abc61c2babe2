"""`ucas serve` on one checkpoint gives what `ucas evaluate` gives by itself; streams say the same
in pieces; what is not there is refused; SIGTERM ends it."""
import gzip
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
import zlib

from support import HANG, UCAS, check, clean, path, ucas

HERE = os.path.dirname(os.path.realpath(__file__))
subprocess.run([sys.executable, os.path.join(HERE, "..", "support", "make_checkpoint.py"), path("model"), "--words",
                "\\boxed{,},0,1,2,3,4,5,6,7,8,9,+,?", "--hidden", "64", "--layers", "2", "--heads", "4", "--kv-heads", "2",
                "--intermediate", "128", "--positions", "512", "--spread", "0.3"], check=True)
with open(path("sums.jsonl"), "w") as file:
    for i in range(30):
        file.write(json.dumps({"id": f"s{i}", "problem": f"{i % 10}+{i // 10}?", "answer": i % 10 + i // 10}) + "\n")


class Served:
    def __init__(self, *words, template="plain", **environment):
        self.process = subprocess.Popen([UCAS, "serve", path("model"), "--port", "0", "--template", template, *map(str, words)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})
        line = self.process.stdout.readline()
        check(line.startswith("serving model on http://127.0.0.1:"), "it says where it listens")
        self.url = line.split()[-1]

    def post(self, route, body, **headers):
        request = urllib.request.Request(self.url + route, body if isinstance(body, bytes) else json.dumps(body).encode(),
                                         {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=HANG) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def complete(self, prompt, **more):
        status, text = self.post("/completions", {"prompt": prompt, "temperature": 0, **more})
        check(status == 200, f"answered: {prompt} {more}")
        return json.loads(text)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        errors = self.process.communicate(timeout=HANG)[1]
        return self.process.returncode, errors


def outputs(out):
    with open(path(out, "m", "eval", "sums.outputs.jsonl")) as file:
        return {(r["id"], r["sample"]): r for r in map(json.loads, file.readlines()[1:])}


def figures(out):
    with open(path(out, "m", "eval", "sums.json")) as file:
        return json.load(file)


COMMON = ["--data", path("sums.jsonl"), "--template", "plain", "--max_tokens", "40", "--samples", "2"]
server = Served("--max_slots", 8)
ucas("evaluate", f"m={path('model')}", *COMMON, "--out", path("own"))
own = {k: r for k, r in outputs("own").items() if k[1] < 0}
check(len(own) == 30 and len({r["text"] for r in own.values()}) > 5, "greedy answers that differ")
with open(path("sums.jsonl")) as file:
    problems = [json.loads(line) for line in file]
for out in ("text", "chat"):
    with open(path(f"{out}.jsonl"), "w") as file:
        for p in problems:
            if out == "text":
                reply = server.complete(p["problem"], max_tokens=40)
                text = reply["choices"][0]["text"]
            else:
                reply = json.loads(server.post("/chat/completions", {"messages": [{"role": "user", "content": p["problem"]}],
                                                                     "temperature": 0, "max_tokens": 40})[1])
                text = reply["choices"][0]["message"]["content"]
            mine = own[p["id"], -1]
            check(text == mine["text"] and (reply["choices"][0]["finish_reason"] == "stop") == mine["finished"]
                  and reply["usage"]["completion_tokens"] == len(mine["ids"]), f"{out}, {p['id']}: text, end and length of ucas evaluate")
            file.write(json.dumps({"id": p["id"], "response": text}) + "\n")
    ucas("evaluate", "--responses", f"m={path(f'{out}.jsonl')}", "--data", path("sums.jsonl"), "--out", path(out))
    check(figures(out)["greedy"] == figures("own")["greedy"], f"{out}: and the scores")
    ucas("verify", path(out, "m"))
samples = {(k[0], r["text"]) for k, r in outputs("own").items() if k[1] >= 0}
check(len(samples) > 45, "sampled answers differ from one another")

longest = max(range(30), key=lambda i: len(own[f"s{i}", -1]["text"]))
ASKED = f"{longest % 10}+{longest // 10}?"

# One answer, whole and in pieces, cut at a text, with what else there is.
whole = server.complete(ASKED, max_tokens=30, logprobs=1, return_token_ids=True)
choice = whole["choices"][0]
check(len(choice["token_ids"]) == len(choice["logprobs"]["token_logprobs"]) == whole["usage"]["completion_tokens"], "counted")
check(whole["usage"]["prompt_tokens"] == 4 and max(choice["logprobs"]["token_logprobs"]) <= 0, "its prompt, too")
status, text = server.post("/completions", {"prompt": ASKED, "temperature": 0, "max_tokens": 30, "stream": True,
                                            "stream_options": {"include_usage": True}})
events = [line[6:] for line in text.split("\n\n") if line]
pieces = [json.loads(e) for e in events[:-1]]
check(status == 200 and events[-1] == "[DONE]" and len(pieces) > 5, f"a stream of {len(pieces)} pieces")
check("".join(p["choices"][0]["text"] for p in pieces[:-1]) == choice["text"], "that say the same")
check(pieces[-2]["choices"][0]["finish_reason"] == choice["finish_reason"] and pieces[-1]["usage"] == whole["usage"], "and its end")
middle = len(choice["text"]) // 2
stop = choice["text"][middle:middle + 2]
cut = server.complete(ASKED, max_tokens=30, stop=[stop])["choices"][0]
check(cut["text"] == choice["text"][:choice["text"].index(stop)] and cut["finish_reason"] == "stop", "cut at a stop")
chat = json.loads(server.post("/chat/completions", {"messages": [{"role": "user", "content": ASKED}], "temperature": 0,
                                                    "max_tokens": 30})[1])
check(chat["choices"][0]["message"] == {"role": "assistant", "content": choice["text"]}, "a chat, by the template")
many = server.complete(ASKED, max_tokens=8, n=3, temperature=1, seed=5)
check([c["index"] for c in many["choices"]] == [0, 1, 2] and len({c["text"] for c in many["choices"]}) > 1, "several of one prompt")
again = server.complete(ASKED, max_tokens=8, n=3, temperature=1, seed=5)
check([c["text"] for c in again["choices"]] == [c["text"] for c in many["choices"]], "a seed gives the same again")

# At once, with settings that do not share a batch.
answers = {}


def ask(i):
    answers[i] = server.complete(ASKED, max_tokens=30, **({"temperature": 0.7, "seed": 3} if i % 3 == 0 else {}))["choices"][0]["text"]


threads = [threading.Thread(target=ask, args=(i,)) for i in range(24)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
check({answers[i] for i in answers if i % 3} == {choice["text"]} and len({answers[i] for i in answers if i % 3 == 0}) == 1,
      "24 at once, of two kinds")

for body, status, words in [({"prompt": "3"}, 200, ""), ({"prompt": "3", "frequency_penalty": 1}, 400, "frequency_penalty"),
                            ({"prompt": "3", "temperatur": 1}, 400, "temperatur"), ({}, 400, "prompt"), (b"{", 400, "request"),
                            ({"prompt": [99]}, 400, "token ids from 0 to"), ({"prompt": "3", "max_tokens": 600}, 400, "room"),
                            ({"prompt": ["3", "4"]}, 400, "one prompt"), ({"prompt": "3", "model": "other"}, 404, "model"),
                            ({"prompt": "3", "n": 0}, 400, "n"), ({"prompt": "3", "temperature": -1}, 400, "temperature")]:
    got, text = server.post("/completions", body)
    check(got == status and words in text and ("error" in json.loads(text)) == (status != 200), f"{status}: {body}")
check(server.post("/nowhere", {})[0] == 404, "no other path")
with urllib.request.urlopen(server.url[:-3] + "/health", timeout=HANG) as reply:
    check(json.load(reply) == {"status": "ok"}, "it is well")
taken = subprocess.run([UCAS, "serve", path("model"), "--port", server.url.split(":")[2].split("/")[0]], capture_output=True, text=True)
check(taken.returncode == 2 and "cannot listen there" in taken.stderr, "a taken port is said")

# A long answer under way when it is told to stop: one that was asked for after it has begun to come.
where = urllib.parse.urlsplit(server.url)
waiting, later = (http.client.HTTPConnection(where.hostname, where.port, timeout=HANG) for _ in range(2))
waiting.request("POST", where.path + "/completions", json.dumps({"prompt": "3", "n": 128, "max_tokens": 500}), {"Content-Type": "application/json"})
later.request("POST", where.path + "/completions", json.dumps({"prompt": "3", "stream": True, "max_tokens": 500}),
              {"Content-Type": "application/json"})
later.getresponse().readline()
code, errors = server.stop()
check(code == 0 and "served" in errors, f"SIGTERM ends it: {errors.strip().splitlines()[-1]}")
status = waiting.getresponse().status
check(status in (200, 503), f"and who waits is told: {status}")

locked = Served(UCAS_API_KEY="secret-of-the-house")
check(locked.post("/completions", {"prompt": "3"})[0] == 401, "a key is asked for")
check(locked.post("/completions", {"prompt": "3"}, Authorization="Bearer secret-of-the-house")[0] == 200, "and opens")

# What a client without the key, or with it, cannot do to the server.
def peak():
    with open(f"/proc/{locked.process.pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) >> 10  # MiB


KEY = {"Authorization": "Bearer secret-of-the-house"}
packed = zlib.compressobj(9, zlib.DEFLATED, 31)
bomb = b"".join([packed.compress(b" " * (1 << 20)) for _ in range(512)] + [packed.flush()])  # 512 MiB in 0.5 MB
before = peak()
check(locked.post("/completions", bomb)[0] == 401, "a body is refused without a key")
check(locked.post("/nowhere", bomb)[0] == 401, "wherever it goes")
check(locked.post("/nowhere", bomb, **KEY)[0] == 404, "and for a path that is none")
status, text = locked.post("/completions", bomb, **{"Content-Encoding": "gzip"}, **KEY)
check(status in (413, 415) and peak() - before < 64, f"a packed one is not unpacked: {peak() - before} MiB more")
small = gzip.compress(json.dumps({"prompt": "3"}).encode())
check(locked.post("/completions", small, **{"Content-Encoding": "gzip"}, **KEY)[0] == 415, "a small one is refused, too")
check(locked.post("/completions", b"--x--", **{**KEY, "Content-Type": "multipart/form-data; boundary=x"})[0] == 415, "no forms")
PORT = int(locked.url.split(":")[2].split("/")[0])


def raw(request):
    """The status of the reply to these bytes; 0 where the connection was closed without one."""
    with socket.create_connection(("127.0.0.1", PORT), HANG) as s:
        try:
            s.sendall(request)
            reply = s.recv(65536)
        except OSError:  # closed while we were sending
            return 0
        return int(reply.split()[1]) if reply else 0


check(raw(b"GET /health HTTP/1.1\r\n" + b"A: b\r\n" * 100 + b"\r\n") == 200, "100 lines of a head")
check(raw(b"GET /health HTTP/1.1\r\n" + b"A: b\r\n" * 50000 + b"\r\n") == 431, "50,000 are too many")
check(raw(b"GET /health HTTP/1.1\r\n" + (b"A: " + b"b" * 4000 + b"\r\n") * 40 + b"\r\n") == 431, "and so are 160 kB")
check(raw(b"GET /" + b"a" * (1 << 24)) in (400, 414, 431, 0), "a line without an end")
check(raw(b"GET /health HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n") == 400, "two lengths")
check(raw(b"POST /v1/completions HTTP/1.1\r\nAuthorization: Bearer secret-of-the-house\r\nContent-Length: 99999999999\r\n\r\n") == 413,
      "a length above the limit")
check(peak() - before < 512, f"none of it is kept: {peak() - before} MiB more")


def replies(request):
    """The statuses of all replies to these bytes, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", PORT), HANG) as s:
        s.sendall(request)
        return [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", b"".join(iter(lambda: s.recv(65536), b"")))]


# What is malformed ends the connection: nothing of it is taken for a further request.
HEAD, NEXT = b"POST /v1/completions HTTP/1.1\r\nAuthorization: Bearer secret-of-the-house\r\n", b"GET /health HTTP/1.1\r\n\r\n"
BODY = json.dumps({"prompt": "3", "temperature": 0, "max_tokens": 1}).encode()
for what, request, statuses in [
        ("a body in chunks", HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n", [411]),
        ("chunks beside a length", HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", [411]),
        ("a line of a head without its CR", b"GET /health HTTP/1.1\r\nA: b\n\r\n", [400]),
        ("a first line without it", b"GET /health HTTP/1.1\n\r\n", [400]),
        ("another encoding", HEAD + b"Transfer-Encoding: gzip\r\n\r\n" + BODY, [411]),
        ("no length", HEAD + b"\r\n", [411]),
        ("two keys", HEAD + b"Authorization: Bearer x\r\nContent-Length: 0\r\n\r\n", [400])]:
    got = replies(request + NEXT)
    check(got == statuses, f"{what}: {got}")
check(locked.post("/completions", BODY, Authorization="bearer secret-of-the-house")[0] == 200, "the scheme in any case")


def resident():
    with open(f"/proc/{locked.process.pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) >> 10  # MiB


# Bodies of many values take some times their text.
nested = b'{"prompt": [' + b"[1]," * (1 << 17) + b"[1]]}"
before, refused = resident(), []
threads = [threading.Thread(target=lambda: refused.append(locked.post("/completions", nested, **KEY)[0])) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
check(refused == [400] * 8 and resident() - before < 256, f"large bodies are refused: {resident() - before} MiB more")
# Clients that come while it does something else wait in a queue.
locked.process.send_signal(signal.SIGSTOP)
waiting = [socket.socket() for _ in range(200)]
for s in waiting:
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", PORT))
connected = {s for s in waiting if select.select([], [s], [], 1)[1] and s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0}
locked.process.send_signal(signal.SIGCONT)
check(len(connected) == 200, f"{len(connected)} of 200 connect at once")
for s in waiting:
    s.close()
check(locked.post("/completions", {"prompt": "3"}, **KEY)[0] == 200, "and it answers")
check("secret" not in locked.stop()[1], "and is not logged")

# Who sends a byte now and then, of a head or of a body, holds no place for long.
slow = Served("--connections", 2, UCAS_API_KEY="key-of-a-file\n")
for begin in (b"GET /health HTTP/1.1\r\nA: ", b"POST /v1/completions HTTP/1.1\r\nAuthorization: Bearer key-of-a-file\r\nContent-Length: 999\r\n\r\n"):
    places = [socket.create_connection(("127.0.0.1", int(slow.url.split(":")[2].split("/")[0])), HANG) for _ in range(2)]
    for s in places:
        s.sendall(begin)
    ended = threading.Event()

    def drip():
        while not ended.wait(0.5):
            for s in places:
                try:
                    s.send(b" ")
                except OSError:
                    pass

    thread = threading.Thread(target=drip)
    thread.start()
    check(slow.post("/completions", {"prompt": "3"}, Authorization="Bearer key-of-a-file")[0] == 200, f"answered beside {begin[:4]}")
    ended.set()
    thread.join()
slow.stop()
empty = subprocess.run([UCAS, "serve", path("model")], capture_output=True, text=True, env={**os.environ, "UCAS_API_KEY": ""})
check(empty.returncode == 2 and "UCAS_API_KEY is empty" in empty.stderr, "an empty key is refused")

# The checkpoint's own chat template has a place for every turn.
with open(path("model", "chat_template.jinja"), "w") as file:
    file.write("{% for m in messages %}{{ m.content }}{{ '+' if m.role == 'user' else '?' }}{% endfor %}")
chats = Served(template="chat")
TURNS = [{"role": "user", "content": "3"}, {"role": "assistant", "content": "4"}, {"role": "user", "content": "5"}]
status, text = chats.post("/chat/completions", {"messages": TURNS, "temperature": 0, "max_tokens": 30})
as_text = json.loads(chats.post("/completions", {"prompt": "3+4?5+", "temperature": 0, "max_tokens": 30})[1])
check(status == 200 and json.loads(text)["choices"][0]["message"]["content"] == as_text["choices"][0]["text"], "three turns")
check(json.loads(text)["usage"]["prompt_tokens"] == 6, "of six tokens")
check(chats.post("/chat/completions", {"messages": [*TURNS, {"role": "tool", "content": "5"}, TURNS[0]]})[0] == 400, "no tools")
chats.stop()
clean()
