"""The report in a real browser (headless Chromium over its debugging pipe): a run with saved tokens is opened, a token is
picked by mouse and by keys, its details appear, the colours change, and all methods stand under one response. Nothing
is logged as an error and nothing is asked of the network. Skipped where there is no chromium."""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

from support import SCRATCH, check, clean, fail, path, ucas

SKIP = 77
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe"]


class Browser:
    """Messages of the DevTools protocol, ended by a zero byte, over file descriptors 3 and 4."""

    def __init__(self, program):
        to_read, self.out = os.pipe()
        self.back, to_write = os.pipe()

        def wire():
            a, b = os.dup(to_read), os.dup(to_write)  # out of the way of 3 and 4
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen([program, *FLAGS, f"--user-data-dir={path('profile')}", "about:blank"],
                                        close_fds=False, preexec_fn=wire, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.events, self.session = b"", 0, [], None

    def message(self, until):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(0, until - time.time()))
            got = os.read(self.back, 1 << 20) if ready else b""
            if not got:
                fail("the browser does not answer")
            self.rest += got
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, seconds=120, **params):
        self.number += 1
        order = {"id": self.number, "method": method, "params": params}
        if self.session:
            order["sessionId"] = self.session
        os.write(self.out, json.dumps(order).encode() + b"\0")
        until = time.time() + seconds
        while True:
            got = self.message(until)
            if got.get("id") == self.number:
                if "error" in got:
                    fail(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def run(self, script):
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            fail(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def point(self, selector, press=False):
        x, y = self.run(f"""(() => {{ const n = document.querySelector({json.dumps(selector)});
            n.scrollIntoView({{ block: "center" }}); const b = n.getBoundingClientRect();
            return [b.left + b.width / 2, b.top + b.height / 2]; }})()""")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if press:
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, name):
        if folder := os.environ.get("UCAS_KEEP_PICTURES"):  # to look at the page by eye
            with open(os.path.join(folder, name), "wb") as out:
                out.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


def response(sample, verdict, pieces, advantage):
    count = len(pieces)
    return {"sample": sample, "finished": True, "score": 1 - sample, "reward": 1 - sample, "kl_penalty": 0,
            "tail_confidence": 0, "verdict": verdict, "answer": "4", "answer_class": -1,
            "token": list(range(5, 5 + count)), "piece": pieces, "rollout_logprob": [-0.5] * count,
            "old_logprob": [-0.5] * count, "entropy": [0.25 * t for t in range(count)], "confidence": [12.0] * count,
            "logit": [1.5 + t for t in range(count)], "advantage": [advantage] * count, "trace/A": advantage}


def write_run(name, answer):
    """Two responses to one prompt; the second holds markup that must stay text."""
    head = {"format": "ucas-signals-1", "step": 7, "method": "drgrpo", "preset": "", "settings": {}, "groups_of_step": 1,
            "groups": 1, "stop_ids": [9], "answer_classes": False, "tail_confidence": False, "pieces": True,
            "arrays": ["rollout_logprob", "old_logprob", "entropy", "confidence", "logit"],
            "trace": [{"name": "A", "per_token": False}]}
    prompt = {"problem": "p-1", "index": 0, "responses": 2, "prompt": [1, 2], "question": "What is 2 + 2?", "gold": ["4"]}
    rows = [head, prompt, response(0, "equal", ["two", " and", " two", "\n", answer], 0.5),
            response(1, "unequal", ["<img src=x onerror=alert(1)>", "</script>", "5"], -0.5)]
    os.makedirs(path(name, "signals"))
    with open(path(name, "signals", "step-0000007.jsonl"), "w") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    with open(path(name, "steps.jsonl"), "w") as out:
        out.writelines(json.dumps({"training/global_step": s, "critic/score/mean": s / 10}) + "\n" for s in range(1, 8))
    ucas("advantages", path(name), "--method", "grpo,rloo", "--save")


def walk(browser):
    def detail():
        return browser.run("document.querySelector('.token-detail').innerText")

    check(browser.run("document.querySelectorAll('.token-card').length") == 2, "both responses stand side by side")
    check(browser.run("document.querySelectorAll('.tok').length") == 8, "every token is drawn")
    browser.point('.tokens[data-row="0"] .tok[data-token="2"]')
    seen = detail()
    check("token 3 of 5" in seen and "id 7" in seen, "pointing at a token shows it")
    for part in ("0.6065", "3.500", "Eq. 5", "Eq. 3", "GRPO", "RLOO"):
        check(part in seen, f"its details hold {part}")
    browser.point('.tokens[data-row="0"] .tok[data-token="0"]', press=True)
    browser.key("ArrowRight")
    check("token 2 of 5" in detail(), "the right arrow moves to the next token")
    browser.key("ArrowDown")
    check("response 1" in detail() and "token 2 of 3" in detail(), "the down arrow moves to the next response")
    check("</script>" in detail(), "markup in a token is shown as text")
    browser.run("""(() => { const s = [...document.querySelectorAll('.choices select')].pop();
        s.value = [...s.querySelectorAll('option')].find((o) => o.textContent.startsWith('H ')).value;
        s.dispatchEvent(new Event('change')); })()""")
    check("entropy" in browser.run("document.querySelector('.token-legend').innerText"), "the colour can be chosen")
    depths = browser.run("[...document.querySelectorAll('.tokens')][0].innerText && "
                         "[...document.querySelectorAll('.tokens[data-row=\"0\"] .tok')].map((n) => parseFloat(n.style.getPropertyValue('--depth')))")
    check(depths == [0, 25, 50, 75, 100], f"the colour follows the number: {depths}")
    browser.run("document.querySelector('.token-card button').click()")
    check(browser.run("document.querySelectorAll('.token-card').length") == 4, "one response alone, as trained and under two methods")
    browser.run("document.querySelector('.token-card button').click()")
    browser.run("(() => { const s = document.querySelector('.choices select'); s.value = 1; s.dispatchEvent(new Event('change')); })()")
    check("four" in browser.run("document.querySelector('.tokens').innerText"), "another run can be chosen")
    check("entropy" in browser.run("document.querySelector('.token-legend').innerText"), "the colour stays chosen")


def main():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        print("skipped: no chromium on this machine")
        sys.exit(SKIP)
    write_run("first", "4")
    write_run("second", "four")
    ucas("report", path("first"), path("second"), "--out", path("report.html"))
    page = os.environ.get("UCAS_REPORT_PAGE")  # only look at another page
    browser = Browser(program)
    try:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            browser.call(f"{domain}.enable")
        browser.size(1280, 900)
        browser.call("Page.navigate", url="file://" + (page or path("report.html")))
        until = time.time() + 120
        while time.time() < until and not browser.run("document.readyState === 'complete' && !!document.querySelector('.tok')"):
            time.sleep(0.1)
        if not page:
            walk(browser)
        for width, height in ((1280, 900), (390, 844)):
            browser.size(width, height)
            for theme in ("light", "dark"):
                browser.run(f"document.documentElement.dataset.theme = '{theme}'; document.getElementById('tokens').scrollIntoView()")
                browser.picture(f"tokens-{width}-{theme}.png")
            wide = browser.run("document.documentElement.scrollWidth")
            check(wide <= width, f"nothing is wider than a screen of {width} ({wide})")
        asked = [e["params"]["request"]["url"] for e in browser.events if e["method"] == "Network.requestWillBeSent"]
        check(all(u.startswith(("file://", "about:")) for u in asked) and len(asked) <= 1, f"the network is not asked: {asked}")
        errors = [e for e in browser.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")
                  or (e["method"] == "Runtime.consoleAPICalled" and e["params"]["type"] in ("error", "assert"))]
        check(not errors, f"no error is logged: {errors}")
    finally:
        browser.process.terminate()
        browser.process.wait(60)


try:
    main()
finally:
    clean()
