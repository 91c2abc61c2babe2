"""The dashboard of `ucas train` on a pseudo-terminal: it rewrites itself in place, no line breaks, the last state
stands when the run is over, an interruption leaves the terminal usable, and text of the data cannot command it."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios

from support import UCAS, check, clean, path, small_task, train_words, ucas

ESCAPE = re.compile(rb"\x1b(\[[?0-9;]*[A-Za-z])?")
ALLOWED = re.compile(rb"\x1b\[(\d+A|K|J|\?7[hl]|[0-9;]*m)")


class Screen:
    """As much of a terminal as the program may use; anything else is an error. One cell a character."""

    def __init__(self, columns):
        self.columns, self.rows, self.x, self.y, self.wrap, self.wraps = columns, [[]], 0, 0, True, 0

    def feed(self, data):
        text, at = data.decode("utf-8"), 0
        while at < len(text):
            c = text[at]
            if c == "\x1b":
                found = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])").match(text, at)
                self.command(found.group(1), found.group(2))
                at = found.end()
                continue
            at += 1
            if c == "\r":
                self.x = 0
            elif c == "\n":
                self.y += 1
                while len(self.rows) <= self.y:
                    self.rows.append([])
            else:
                self.put(c)

    def put(self, c):
        if self.x >= self.columns:
            if not self.wrap:
                self.x = self.columns - 1
            else:
                self.wraps += 1
                self.x, self.y = 0, self.y + 1
                self.rows.append([])
        row = self.rows[self.y]
        row.extend(" " * (self.x + 1 - len(row)))
        row[self.x] = c
        self.x += 1

    def command(self, number, letter):
        if letter == "A":
            self.y = max(0, self.y - int(number))
        elif letter == "K":
            del self.rows[self.y][self.x:]
        elif letter == "J":
            del self.rows[self.y][self.x:]
            del self.rows[self.y + 1:]
        elif letter in "hl":
            self.wrap = letter == "h"

    def text(self):
        return ["".join(row).rstrip() for row in self.rows]


def read_all(main):
    """What has been written so far; the kernel hands it over in its own time, so others get their turn before nothing is believed."""
    data, turns = b"", 0
    while turns < 2000:
        if select.select([main], [], [], 0)[0]:
            data += os.read(main, 65536)
            turns = 0
        else:
            os.sched_yield()
            turns += 1
    return data


def on_terminal(words, columns=100, rows=40, environment=(), resize=False, pause=False, interrupt=False):
    """Runs the program under a terminal of its own; returns exit status and all bytes that it wrote there. Once the block stands it may be
    made narrower or stopped and let go on; and, once the block has been drawn again, interrupted."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("CI", "NO_COLOR", "NO_TTY", "LC_ALL", "LC_CTYPE")}
    env.update({"TERM": "xterm", "LANG": "C.UTF-8"}, **dict(environment))
    # From the folder of the test: a long path of it would break a line by itself.
    words = [str(word).replace(path(""), "") for word in words]
    process = subprocess.Popen([UCAS, *words], stdin=side, stdout=side, stderr=side, env=env, cwd=path(""))
    os.close(side)
    data, since = b"", 0
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        data += part
        if data.count(b"steps/s", since) < 2:
            continue
        if resize:
            fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 70, 0, 0))
            data += read_all(main)  # what was written before
        elif pause:
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            data += read_all(main)
            if data.rfind(b"\x1b[?7l") > data.rfind(b"\x1b[?7h"):  # in the middle of a block: later
                process.send_signal(signal.SIGCONT)
                continue
            data += b"$ fg\r\n"
            process.send_signal(signal.SIGCONT)
        elif interrupt:
            process.send_signal(signal.SIGINT)
        resize, pause, interrupt, since = False, False, interrupt and (resize or pause), len(data)
    os.close(main)
    return process.wait(), data


def screen_of(data, columns=100):
    screen = Screen(columns)
    screen.feed(data)
    return screen


def block_of(data, columns=100):
    """What stood there when the block was done; what is said after it is text, and breaks where it must."""
    return screen_of(data[: data.rfind(b"\x1b[?7h")], columns)


def only_known_commands(data):
    return all(ALLOWED.match(data, m.start()) for m in ESCAPE.finditer(data)) and b"\xc2\x9b" not in data


small_task()
STEPS = 6
status, data = on_terminal(train_words(path("run"), "--train.steps", STEPS))
screen = screen_of(data)
lines = screen.text()
check(status == 0, "a run on a terminal ends well")
check(only_known_commands(data), "only moving up, erasing, colours and line breaking are used")
check(data.rfind(b"\x1b[?7h") > data.rfind(b"\x1b[?7l") and screen.wrap, "automatic line breaks are on again at the end")
check(block_of(data).wraps == 0, "no line is broken")
check(sum(line.startswith(" reward ") for line in lines) == 1, "one block stands there, not one per step")
check(any(f"step {STEPS}/{STEPS}" in line and "100 %" in line for line in lines), "its last state is the end of the run")
check(any("samples per prompt" in line for line in lines), "what was said before the block is above it")
check(any(line.startswith(" sample     ") and "tokens, reward" in line for line in lines), "a sample of the model is shown")
for what in ("  len ", "mismatch", "validation", "  grad ", "alarms"):
    check(any(what in line for line in lines), f"{what} is shown")
check(any(c in "".join(lines) for c in "\u2581\u2588"), "curves are made of blocks where the locale is UTF-8")
print("\n".join(lines))

status, data = on_terminal(train_words(path("narrow"), "--train.steps", STEPS), columns=60,
                           environment={"LANG": "C", "NO_COLOR": "1"})
screen = block_of(data, 60)
block = screen.text()[-6:]
check(status == 0 and b"\x1b[3" not in data and b"\x1b[1m" not in data, "NO_COLOR is respected")
check(all(byte < 128 for byte in data), "without UTF-8 everything is ASCII")
check(any(f"step {STEPS}/{STEPS}" in line for line in block) and max(map(len, block)) < 60, "a narrow window has a narrow block")

LONG = ("--train.steps", 100000, "--train.test_freq", 0)
status, data = on_terminal(train_words(path("resized"), *LONG), resize=True, interrupt=True)
check(status == 75 and max(map(len, block_of(data, 200).text()[-6:])) < 70, "the width follows the window")

status, data = on_terminal(train_words(path("stopped"), *LONG), interrupt=True)
screen = screen_of(data)
check(status == 75, "an interruption saves and ends with 75")
check("go on with: ucas train --resume" in "".join(screen.text()[-20:]), "how to go on stands below the block")
check(screen.wrap and data.count(b"\x1b[?25l") == 0, "the cursor was never hidden")

status, data = on_terminal(train_words(path("paused"), *LONG), pause=True, interrupt=True)
lines = screen_of(data).text()
shell = next(i for i, line in enumerate(lines) if line == "$ fg")
check(status == 75 and any(line.startswith(" alarms") for line in lines[:shell]), "what a shell writes after Ctrl-Z stays")
check(sum(line.startswith(" alarms") for line in lines[shell:]) == 1, "and the block goes on below it")

# A hostile model: the token that opens its answers now says other things to the terminal.
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\r\b"
shutil.copytree(path("base"), path("hostile-base"))
with open(path("hostile-base", "tokenizer.json"), encoding="utf-8") as file:
    tokenizer = json.load(file)
vocabulary = tokenizer["model"]["vocab"]
tokenizer["model"]["vocab"] = {HOSTILE if text == "\\boxed{" else text: number for text, number in vocabulary.items()}
pattern = tokenizer["pre_tokenizer"]["pattern"]
pattern["Regex"] = pattern["Regex"].replace("\\\\boxed\\{", HOSTILE.replace("[", "\\[").replace("]", "\\]"))
with open(path("hostile-base", "tokenizer.json"), "w", encoding="utf-8") as file:
    json.dump(tokenizer, file)
words = train_words(path("hostile"), "--train.steps", 3)
words[words.index(path("base"))] = path("hostile-base")
status, data = on_terminal(words)
check(status == 0 and b"\\x1b[2J" in data, "a hostile model's responses are shown escaped")
check(only_known_commands(data) and b"\x07" not in data and b"\x08" not in data and b"\xe2\x80\xae" not in data,
      "and cannot command the terminal")

for name, environment in (("dumb", {"TERM": "dumb"}), ("CI", {"CI": "true"})):
    status, data = on_terminal(train_words(path(name), "--train.steps", 3), environment=environment)
    check(status == 0 and b"\x1b" not in data, f"{name}: plain lines only")
for mode, escapes, said in (("plain", False, True), ("none", False, False)):
    done = ucas(*train_words(path(mode), "--train.steps", 3, "--progress", mode))
    check(("\x1b" in done.stderr) == escapes and ("took" in done.stderr) == said, f"--progress {mode}")
SFT = ["sft", "--model", path("base"), "--data", path("task", "sft_worked.jsonl"), "--batch_size", 16, "--steps", 40]
status, data = on_terminal([*SFT, "--out", path("tuned")])
block = screen_of(data).text()
check(status == 0 and only_known_commands(data) and any("update 40/40" in line for line in block) and
      any(line.startswith(" loss ") for line in block), "fine-tuning has a block of its own numbers")
done = ucas(*SFT, "--out", path("tuned-plainly"), "--progress", "plain")
check("\x1b" not in done.stderr and "sft  40/40 updates" in done.stderr, "and plain lines")
refused = ucas(*train_words(path("refused"), "--progress", "loud"), expect=2)
check("expected auto, plain, dashboard or none" in refused.stderr, "another word is refused")
clean()
