"""The report in a real browser (headless Chromium over its debugging pipe): a run with saved tokens is opened, a token is
picked by mouse and by keys, its details appear, and the colours change;
every chart has its table. Then a page in which every text is hostile. Nothing runs that is not ours,
nothing is logged as an error, nothing is asked of the network. Skipped where there is no chromium."""
import base64
import json
import os
import shutil
import subprocess
import sys
import urllib.parse

from support import SCRATCH, check, clean, fail, path, ucas, wait_until

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

    def message(self):
        while b"\0" not in self.rest:
            got = os.read(self.back, 1 << 20)
            if not got:
                fail("the browser does not answer")
            self.rest += got
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, may_fail=False, **params):
        self.number += 1
        order = {"id": self.number, "method": method, "params": params}
        if self.session:
            order["sessionId"] = self.session
        os.write(self.out, json.dumps(order).encode() + b"\0")
        while True:
            got = self.message()
            if got.get("id") == self.number:
                if "error" in got and may_fail:
                    return {}
                if "error" in got:
                    fail(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def run(self, script):
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            fail(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def until(self, script, message):
        """Once the script says true; a page that never does is one that hangs."""
        def says_so():  # while a page is loaded there may be none that could
            return self.call("Runtime.evaluate", may_fail=True, expression=script, returnByValue=True).get("result", {}).get("value") is True

        check(wait_until(says_so, self.process, pause=0.05), message)

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if name == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=13 if text else 0, **text)

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
            "logit": [1.5 + t for t in range(count)], "ratio": [1 + 0.5 * t for t in range(count)],
            "clipped": [0] * (count - 1) + [1], "advantage": [advantage] * count, "trace/A": advantage}


def write_run(name, answer):
    """Two responses to one prompt; the second holds markup that must stay text."""
    head = {"format": "ucas-signals-1", "step": 7, "method": "drgrpo", "preset": "", "settings": {}, "groups_of_step": 1,
            "groups": 1, "stop_ids": [9], "answer_classes": False, "tail_confidence": False, "pieces": True,
            "arrays": ["rollout_logprob", "old_logprob", "entropy", "confidence", "logit", "ratio", "clipped"],
            "trace": [{"name": "A", "per_token": False}]}
    prompt = {"problem": "p-1", "index": 0, "responses": 2, "prompt": [1, 2], "question": "What is 2 + 2?", "gold": ["4"]}
    rows = [head, prompt, response(0, "equal", ["two", " and", " two", "\n", answer], 0.5),
            response(1, "unequal", ["<img src=x onerror=alert(1)>", "</script>", "5"], -0.5)]
    os.makedirs(path(name, "signals"))
    with open(path(name, "signals", "step-0000007.jsonl"), "w") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    with open(path(name, "steps.jsonl"), "w") as out:
        out.writelines(json.dumps({"training/global_step": s, "critic/score/mean": s / 10}) + "\n" for s in range(1, 8))
    write_evaluation(name, 7, lambda i: f"answer {answer}")


def write_evaluation(name, step, text, sources=("easy", "hard"), more=None):
    """Eight problems with their confidences, two benchmarks and how they were made."""
    rows, share = [], {"value": 0.5, "low": 0.2, "high": 0.8}
    for i in range(len(HOSTILE) if more else 8):
        said = {"response": text(i), "verdict": "equal" if (i + step) % 2 else "unequal", "answer": text(i)[:200],
                "tokens": 5, "finished": i > 0, "logprob": -1.0, "entropy": 0.5, "confidence": 12 + i % 3 + step / 10}
        rows.append({"id": HOSTILE[i][:300] or "no text" if more else f"p-{i}", "source": sources[i % 2], "problem": text(i), "gold": [text(i)[:100]],
                     "greedy": said, "samples": 2, "correct": 1, "mean_length": 5, "responses": [said]})
    figures = {"greedy": {"pass@1": share}, "mean@k": [{"k": 2, **share}], "pass@k": [{"k": 1, **share}, {"k": 2, **share}],
               "entropy": 0.5, "length": 5, "truncated_share": 0, "unparseable_share": 0}
    whole = {"label": name, "model": "m", "step": step, "data": "t.jsonl", "problems": 8, "samples": 2, "temperature": 1,
             "interval": "95 %", **figures, "by_source": {s: {"problems": 4, **figures} for s in sources},
             "macro": {k: figures[k] for k in ("greedy", "mean@k", "pass@k")}, **(more or {})}
    whole["asked"] = {"ucas": text(2)[:100], "grader_version": 4, "keys": text(3)[:100], "model_files": [], "dtype": "f32", "truncated": "grade",
                      "sets": [{"name": s, "problems": 4, "problems_sha256": "ab" * 32, "stop_texts": [text(0)[:100]],
                                "max_tokens": 64, "grader": "math", "extract": "strict", "template": text(1)[:100],
                                "template_sha256": "cd" * 32} for s in sources]}
    os.makedirs(path(name, "eval"), exist_ok=True)
    with open(path(name, "eval", "test.jsonl"), "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    with open(path(name, "eval", "test.json"), "w", encoding="utf-8") as out:
        json.dump(whole, out)


# What a model, a data set or a file name might hold to break out of the page. Each tries to set window.pwned or to
# reach the network.
PWN = "window.pwned=(window.pwned||0)+1"
HOSTILE = [
    f"<script>{PWN}</script>", f"</script><script>{PWN}</script>", f"</SCRIPT ><script>{PWN}</script>",
    f"<img src=x onerror={PWN}>", f"<svg/onload={PWN}>", f"<svg><animate onbegin={PWN} attributeName=x dur=1s>",
    f"<details open ontoggle={PWN}>", f"<input autofocus onfocus={PWN}>", f"<iframe srcdoc='<script>parent.{PWN}</script>'>",
    f"\"><script>{PWN}</script>", f"' onmouseover='{PWN}' x='", f"\" onfocus=\"{PWN}\" tabindex=0 autofocus x=\"",
    f"javascript:{PWN}", f"<a href='javascript:{PWN}'>here</a>", f"[here](javascript:{PWN})",
    f"data:text/html,<script>{PWN}</script>", "<link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<style>@import 'http://127.0.0.1:9/y.css'; * { display: none !important }</style>",
    "</style><style>body { display: none }</style>", "<base href=http://127.0.0.1:9/>", "<meta http-equiv=refresh content=0;url=http://127.0.0.1:9/>",
    "<!-- <script>", "]]><!--", "--><script>", "</title>", "</textarea>", "</svg>", "</figure></section></main>",
    "${" + PWN + "}", "`${" + PWN + "}`", "{{constructor.constructor('" + PWN + "')()}}", "<%= 7*7 %>",
    "\\", "\\\\\"", "\\u003cscript\\u003e", "&lt;script&gt;", "&#x3c;script&#x3e;", "&nbsp&copy;&amp;amp;",
    "\"]}],\"runs\":[{\"x\":\"", "'; " + PWN + "; '", "*/ " + PWN + " /*", "// " + PWN,
    "\u202ereversed\u202c", "\u2066isolated\u2069", "\u200b\u200c\u200d\u2060\ufeff", "line\u2028separator\u2029",
    "nul \u0000 bell \u0007 escape \u001b[31m del \u007f c1 \u009b", "\ufffd\ufffe\uffff", "\ud83d\ude00" * 20,
    "a\u0300" * 400, "__proto__", "constructor", "toString", "hasOwnProperty", "",
    "x" * 1_000_000, "<" * 100_000, "\n" * 5000, "\u5b57" * 50_000,
]


def write_hostile(name, label, method):
    def text(i):
        return HOSTILE[i % len(HOSTILE)]

    write_run(name, "4")
    half = len(HOSTILE) // 2
    joined = ["\n".join(HOSTILE[:half])[:20000], "\n".join(HOSTILE[half:])[:20000]]
    with open(path(name, "signals", "step-0000007.jsonl")) as lines:
        rows = [json.loads(line) for line in lines]
    pieces = [h[:2000] for h in HOSTILE]
    rows[1].update({"problem": joined[0], "question": joined[1], "gold": pieces[:10]})
    rows[0]["trace"].append({"name": pieces[1], "per_token": False})
    for row, kind in ((rows[2], "equal"), (rows[3], "unequal")):
        row.update(response(row["sample"], kind, pieces, 0.5 - row["sample"]), answer=joined[0][:500])
        row["trace/" + pieces[1]] = 1
    with open(path(name, "signals", "step-0000007.jsonl"), "w") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    with open(path(name, "steps.jsonl"), "a") as out:
        out.write(json.dumps({"training/global_step": 99, **{h[:100]: 1 for h in HOSTILE}, **{f"val-core/{h[:50]}/acc/mean@1": 0.5 for h in HOSTILE}}) + "\n")
    os.makedirs(path(name, "rollouts"))
    with open(path(name, "rollouts", "step-0000001.jsonl"), "w") as out:
        for i, h in enumerate(HOSTILE):
            out.write(json.dumps({"step": 1, "problem": "p", "source": h[:500], "prompt": joined[0], "gold": [h[:500]], "sample": i, "response": h,
                                  "tokens": 3, "finished": False, "score": 1, "reward": 1, "verdict": "unequal", "answer": h[:500],
                                  "reason": h[:500], "advantage_mean": 0.5}) + "\n")
    write_evaluation(name, 7, text, sources=(HOSTILE[3], HOSTILE[9]),
                     more={"label": label, "model": joined[1], "data": joined[0][:300], "interval": joined[1][:300]})
    with open(path(name, "env.json"), "w") as out:
        json.dump({"label": label, "about": joined[0][:2000], **{k: joined[1][:500] for k in (
            "version", "torch", "isa", "isa_reason", "device", "threads", "started", "model", "data", "parameters", "method")}}, out)
    if method:
        with open(path(name, "config.toml"), "w") as out:
            out.write(f"seed = 1\n[method]\nname = {json.dumps(method)}\nalpha = {json.dumps(HOSTILE[9])}\n"
                      f"[data]\ntemplate = {json.dumps(HOSTILE[1])}\n")


def hostile(browser):
    """Opens the page of hostile runs, looks into every corner of it."""
    write_hostile("h1 <script>" + PWN + "<", HOSTILE[1] + HOSTILE[9], HOSTILE[3])
    write_hostile("h2", HOSTILE[4] + HOSTILE[10], "ucas")
    write_evaluation("base", 0, lambda i: HOSTILE[(i + 20) % len(HOSTILE)], sources=(HOSTILE[3], HOSTILE[9]),
                     more={"label": "base " + HOSTILE[24], "data": "\n".join(HOSTILE[:len(HOSTILE) // 2])[:300]})
    with open(path("base", "env.json"), "w") as out:
        json.dump({"label": "base " + HOSTILE[24]}, out)
    ucas("report", path("base"), path("h1 <script>" + PWN + "<"), path("h2"), "--out", path("hostile.html"), "--title", HOSTILE[1])
    size = os.path.getsize(path("hostile.html"))
    check(size <= 10 << 20, f"the page of hostile texts stays small ({size} bytes)")
    open_page(browser, path("hostile.html"))
    check(browser.run("document.querySelectorAll('.drawn svg').length") >= 3, "figures are drawn over hostile names")
    for details in ("true", "false"):
        browser.run(f"document.querySelectorAll('details').forEach((d) => {{ d.open = {details}; }})")
    browser.run("""(async () => {
        for (const s of document.querySelectorAll('.choices select')) for (const o of [...s.options].slice(0, 30)) {
            s.value = o.value; s.dispatchEvent(new Event('change')); }
        for (const b of document.querySelectorAll('button')) b.click();
        for (const t of [...document.querySelectorAll('.tok')].slice(0, 150)) t.click();
        await new Promise((done) => setTimeout(done, 300)); })()""")
    check(browser.run("window.pwned === undefined"), "nothing hostile ran")
    check(browser.run("document.scripts.length") == 2, "the page has its own two scripts and no other")
    foreign = browser.run("""[...document.querySelectorAll('iframe, img, link, base, object, embed, form, a[href^="javascript"], meta[http-equiv=refresh]')].length""")
    check(foreign == 0, "no element came out of a text")
    inline = browser.run("""[...document.querySelectorAll('*')].filter((n) => [...n.attributes].some((a) => a.name.startsWith('on'))).length""")
    check(inline == 0, "no element carries a handler in its attributes")
    check(browser.run("getComputedStyle(document.body).display") == "block", "no style came out of a text")
    check(browser.run("document.querySelectorAll('style').length") == 1, "one style sheet, ours")
    text = browser.run("document.documentElement.textContent")
    for shown in (f"<img src=x onerror={PWN}>", f"<svg/onload={PWN}>", "&lt;script&gt;", "${" + PWN + "}", "U+202E", "U+0000", "U+200B"):
        check(shown in text, f"{shown} stands there as text")
    check(not any(c in text for c in "\u202e\u2066\u200b\u2028\u0000\ufeff"), "characters that act are shown by name")


def walk(browser):
    def detail():
        return browser.run("document.querySelector('.token-detail').innerText")

    check(browser.run("document.querySelectorAll('.token-card').length") == 2, "both responses stand side by side")
    check(browser.run("document.querySelectorAll('.tok').length") == 8, "every token is drawn")
    browser.point('.tokens[data-row="0"] .tok[data-token="2"]')
    seen = detail()
    check("token 3 of 5" in seen and "id 7" in seen, "pointing at a token shows it")
    for part in ("0.6065", "3.500", "Eq. 5", "Eq. 3", "r_t", "Eq. 2"):
        check(part in seen, f"its details hold {part}")
    browser.point('.tokens[data-row="0"] .tok[data-token="0"]', press=True)
    browser.key("ArrowRight")
    check("token 2 of 5" in detail(), "the right arrow moves to the next token")
    browser.key("ArrowDown")
    check("response 1" in detail() and "token 2 of 3" in detail(), "the down arrow moves to the next response")
    check("</script>" in detail(), "markup in a token is shown as text")
    browser.run("""(() => { const s = [...document.querySelectorAll('.choices select')].find((s) => s.querySelector('optgroup'));
        s.value = [...s.querySelectorAll('option')].find((o) => o.textContent.startsWith('H ')).value;
        s.dispatchEvent(new Event('change')); })()""")
    check("entropy" in browser.run("document.querySelector('.token-legend').innerText"), "the colour can be chosen")
    depths = browser.run("[...document.querySelectorAll('.tokens')][0].innerText && "
                         "[...document.querySelectorAll('.tokens[data-row=\"0\"] .tok')].map((n) => parseFloat(n.style.getPropertyValue('--depth')))")
    check(depths == [0, 25, 50, 75, 100], f"the colour follows the number: {depths}")
    browser.run("document.querySelector('.token-card button').click()")
    check(browser.run("document.querySelectorAll('.token-card').length") == 1, "one response alone")
    browser.run("document.querySelector('.token-card button').click()")
    browser.run("(() => { const s = document.querySelector('.choices select'); s.value = 1; s.dispatchEvent(new Event('change')); })()")
    check("four" in browser.run("document.querySelector('.tokens').innerText"), "another run can be chosen")
    check("entropy" in browser.run("document.querySelector('.token-legend').innerText"), "the colour stays chosen")
    charts(browser)


def charts(browser):
    check(browser.run("[...document.querySelectorAll('.panel')].every((p) => p.querySelectorAll('table tbody tr').length > 0)"),
          "every chart has its numbers as a table")
    check("first, step 1: 0.100" in browser.run("document.querySelector('.panel circle title').textContent"), "and a dot says its own")
    browser.run("document.querySelector('#sources details').open = false; location.hash = '#sources'")
    browser.until("document.querySelector('#sources details').open", "a folded section opens where the address leads to it")


def open_page(browser, file):
    browser.call("Page.navigate", url="file://" + urllib.parse.quote(file))
    browser.until("document.readyState === 'complete' && !!document.querySelector('.tok')", "the page stands")


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
        open_page(browser, page or path("report.html"))
        if not page:
            walk(browser)
        for width, height in ((1280, 900), (390, 844)):
            browser.size(width, height)
            for theme in ("light", "dark"):
                browser.run(f"document.documentElement.dataset.theme = '{theme}'; document.getElementById('tokens').scrollIntoView()")
                browser.picture(f"tokens-{width}-{theme}.png")
            wide = browser.run("document.documentElement.scrollWidth")
            check(wide <= width, f"nothing is wider than a screen of {width} ({wide})")
        pages = 1
        if not page:
            browser.size(1280, 900)
            hostile(browser)
            browser.size(390, 844)
            wide = browser.run("document.documentElement.scrollWidth")
            check(wide <= 390, f"hostile texts make nothing wider than a phone ({wide})")
            browser.picture("hostile-390.png")
            pages = 2
        asked = [e["params"]["request"]["url"] for e in browser.events if e["method"] == "Network.requestWillBeSent"]
        check(all(u.startswith(("file://", "about:")) for u in asked) and len(asked) <= pages, f"the network is not asked: {asked}")
        errors = [e for e in browser.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")
                  or (e["method"] == "Runtime.consoleAPICalled" and e["params"]["type"] in ("error", "assert"))]
        check(not errors, f"no error is logged: {errors}")
    finally:
        browser.process.terminate()
        browser.process.wait()


try:
    main()
finally:
    clean()
