
// The token explorer: a prompt's responses side by side, each token coloured by one quantity. Every number was recorded
// while training; this only shows and colours. Text is set as text, never as markup.
(() => {
  "use strict";
  const place = document.getElementById("explorer"), source = document.getElementById("token-data");
  if (!place || !source) return;
  const data = JSON.parse(source.textContent);
  const at = { run: 0, step: 0, prompt: 0, response: -1, quantity: "", row: 0, token: 0 };   // response -1: all
  const VERDICTS = { equal: ["right", "\u2713 right"], unequal: ["wrong", "\u2717 wrong"],
    unparseable: ["none", "\u2205 no answer"], over_budget: ["none", "\u22ef gave up grading"] };
  const KINDS = [["signal", "Signals of the old policy"], ["trace", "Recorded by the method"],
    ["advantage", "Advantage"], ["update", "At the step's last update"]];

  function make(name, className, text, parent) {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined && text !== null) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  }
  function number(value) {
    if (value === null || value === undefined) return "\u2013";
    const size = Math.abs(value);
    let text = String(value);
    if (size !== 0 && (size >= 1e5 || size < 1e-3)) text = value.toExponential(2).replace("e+", "e");
    else if (!Number.isInteger(value)) text = value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
    return text.replace(/-/g, "\u2212");
  }
  const step = () => data.runs[at.run].steps[at.step];
  const prompt = () => step().prompts[at.prompt];
  const name = (q) => q.symbol.replace("_hat", "\u0302");   // a combining circumflex: l_hat is written as in print
  function valueOf(response, q, t) {
    const values = response.values[q];
    return Array.isArray(values) ? (values.length === 1 && !step().quantities[q].token ? values[0] : values[t]) : values;
  }
  const idOf = (q) => q.kind + "/" + q.symbol + "/" + q.title;
  const indexOf = (id) => Math.max(0, step().quantities.findIndex((q) => idOf(q) === id));

  // ---- the frame: choices above, responses, one token's values next to them
  const choices = make("div", "choices", null, place);
  function choice(label, change) {
    const box = make("label", "", null, choices);
    make("span", "", label, box);
    const select = make("select", "", null, box);
    select.addEventListener("change", () => change(select));
    return select;
  }
  const chooseRun = choice("Run", (s) => goTo(+s.value, step().step));
  const chooseStep = choice("Step", (s) => goTo(at.run, data.runs[at.run].steps[+s.value].step));
  const choosePrompt = choice("Prompt", (s) => { at.prompt = +s.value; at.response = -1; begin(); });
  const chooseResponse = choice("Response", (s) => { at.response = +s.value; at.row = Math.max(0, at.response); at.token = 0; draw(); });
  const chooseQuantity = choice("Coloured by", (s) => { at.quantity = s.value; draw(); });
  if (data.runs.length === 1) chooseRun.parentNode.hidden = true;
  const asked = make("div", "asked-for", null, place);
  const legend = make("div", "token-legend", null, place);
  const body = make("div", "token-body", null, place);
  const cards = make("div", "token-cards", null, body);
  const detail = make("aside", "token-detail", null, body);
  detail.setAttribute("aria-live", "polite");
  detail.setAttribute("aria-label", "the token");

  // The same step and the same problem in another run or step, as far as they are there.
  function goTo(run, number) {
    const problem = prompt().problem, found = data.runs[run].steps.findIndex((s) => s.step === number);
    at.run = run;
    at.step = found >= 0 ? found : Math.min(at.step, data.runs[run].steps.length - 1);
    at.prompt = Math.max(0, step().prompts.findIndex((p) => p.problem === problem));
    at.response = -1;
    begin();
  }

  function fill(select, options, value) {
    select.textContent = "";
    for (const [v, text] of options) {
      const option = make("option", "", text, select);
      option.value = v;
    }
    select.value = value;
  }

  function begin() { at.row = 0; at.token = 0; reset(); }
  function reset() {
    fill(chooseRun, data.runs.map((r, i) => [i, r.title === r.name ? r.name : `${r.title} (${r.name})`]), at.run);
    fill(chooseStep, data.runs[at.run].steps.map((s, i) => [i, s.step.toLocaleString("en-US")]), at.step);
    fill(choosePrompt, step().prompts.map((p, i) => [i, `${p.problem}: ${p.right} of ${p.count} right`]), at.prompt);
    fill(chooseResponse, [[-1, "all side by side"]].concat(prompt().responses.map((r, i) =>
      [i, `${r.sample}: ${(VERDICTS[r.verdict] || ["", r.verdict])[1]}`])), at.response);
    const known = step().quantities.map(idOf);
    if (!known.includes(at.quantity)) at.quantity = known.find((id) => id.startsWith("advantage/"));
    chooseQuantity.textContent = "";
    for (const [kind, title] of KINDS) {
      const group = make("optgroup", "", null, undefined);
      group.label = title;
      step().quantities.forEach((q) => {
        if (q.kind !== kind) return;
        make("option", "", `${name(q)} \u2013 ${q.title}`, group).value = idOf(q);
      });
      if (group.children.length) chooseQuantity.appendChild(group);
    }
    chooseQuantity.value = at.quantity;
    drawAsked();
    draw();
  }

  function drawAsked() {
    const p = prompt();
    asked.textContent = "";
    if (p.question) make("p", "question", p.question, asked);
    const line = make("p", "gold", "", asked);
    if (p.gold.length) {
      line.append("expected ");
      p.gold.forEach((g, i) => { if (i) line.append(" or "); make("bdi", "", g, line); });
    }
    if (p.count > p.responses.length) line.append(` \u00b7 the first ${p.responses.length} of ${p.count} responses are here`);
  }

  // ---- colours: one scale for all responses of the prompt (or those given); two-sided around 0 where there are both signs
  function scale(columns, responses) {
    let low = Infinity, high = -Infinity;
    for (const r of responses || prompt().responses) {
      for (const q of columns) {
        for (let t = 0; t < r.id.length; ++t) {
          const v = valueOf(r, q, t);
          if (v === null || v === undefined) continue;
          low = Math.min(low, v); high = Math.max(high, v);
        }
      }
    }
    if (low > high) return null;
    return { low, high, signed: low < 0, most: Math.max(Math.abs(low), Math.abs(high)), flat: low === high && low >= 0 };
  }
  function paint(node, v, s) {
    node.classList.remove("plus", "minus");
    if (v === null || v === undefined || !s) return;
    const two = s.signed && s.high > 0, only = s.signed && !two;   // all negative: the deeper the darker
    const share = two ? Math.abs(v) / (s.most || 1) : only ? (s.high - v) / (s.high - s.low || 1) : s.flat ? (v ? 1 : 0) : (v - s.low) / (s.high - s.low);
    node.style.setProperty("--depth", (100 * share).toFixed(1) + "%");
    node.classList.add(v < 0 && s.signed ? "minus" : "plus");
  }
  function drawLegend(s, q) {
    legend.textContent = "";
    if (!s) { make("span", "", "no finite number here", legend); return; }
    make("b", "", name(q), legend);
    make("span", "", q.title + (q.equation ? ` (${q.equation})` : ""), legend);
    if (s.low === s.high) { make("span", "extent", `${number(s.low)} everywhere`, legend); return; }
    const extent = make("span", "extent", null, legend);
    make("span", "low", number(s.low), extent);
    make("i", "ramp " + (s.signed ? (s.high > 0 ? "two" : "down") : "up"), null, extent)
      .style.setProperty("--zero", `${(100 * -s.low / (s.high - s.low)).toFixed(1)}%`);
    if (s.signed) {
      const ramp = extent.lastChild, low = -s.low / s.most, high = Math.max(0, s.high) / s.most;
      ramp.style.setProperty("--from", `${(100 * low).toFixed(1)}%`);
      ramp.style.setProperty("--to", `${(100 * high).toFixed(1)}%`);
    }
    make("span", "high", number(s.high), extent);
  }

  // ---- responses
  function shown(text) {
    if (text === "") return "\u2205";
    return text.replace(/\n/g, "\u21b5\n").replace(/\t/g, "\u21e5");
  }
  function tokens(parent, row, q, s) {
    const r = prompt().responses[row], box = make("div", "tokens", null, parent), said = new Map(r.inserts || []);
    box.dataset.row = row;
    r.id.forEach((id, t) => {
      const node = make("span", "tok", shown(t < r.text.length ? r.text[t] : `[${id}]`), box);
      node.dataset.token = t;
      node.tabIndex = -1;
      if (said.has(t)) { node.dataset.said = shown(said.get(t)); node.title = "before it, by the environment: " + said.get(t); }
      paint(node, valueOf(r, q, t), s);
    });
    if (!r.id.length) make("i", "cut", "empty", box);
    if (r.length > r.id.length) make("i", "cut", ` ${(r.length - r.id.length).toLocaleString("en-US")} more tokens are not on this page`, box);
    return box;
  }
  function facts(parent, r) {
    const line = make("div", "meta", null, parent), add = (label, value) => {
      const item = make("span", "nowrap", label + " ", line);
      make("b", "", value, item);
    };
    add("reward", number(r.reward));
    step().quantities.forEach((q, i) => {
      if (!q.token) add(name(q), number(valueOf(r, i, 0)));
      else if (q.kind === "advantage") add("mean " + name(q), number(r.mean[i]));
    });
    add("tokens", r.length.toLocaleString("en-US"));
    if (!r.finished) make("span", "none pill", "cut at the limit", line);
  }
  function card(row, q, s) {
    const r = prompt().responses[row], box = make("article", "token-card", null, cards);
    const head = make("header", "", null, box), [kind, verdict] = VERDICTS[r.verdict] || ["none", r.verdict];
    make("span", kind + " pill", verdict, head);
    const answer = make("bdi", "", r.answer, head);
    if (r.answer) answer.title = "the answer that was read";
    const button = make("button", "", at.response < 0 ? `response ${r.sample}` : "show all", head);
    button.type = "button";
    button.title = at.response < 0 ? "this one alone" : "all responses side by side";
    button.addEventListener("click", () => {
      at.response = at.response < 0 ? row : -1;
      if (at.row !== row) { at.row = row; at.token = 0; }
      chooseResponse.value = at.response;
      draw();
    });
    facts(box, r);
    tokens(box, row, q, s);
  }
  function draw() {
    const q = indexOf(at.quantity), s = scale([q]);
    drawLegend(s, step().quantities[q]);
    cards.textContent = "";
    cards.classList.toggle("single", at.response >= 0);
    if (at.response >= 0) card(at.response, q, s);
    else prompt().responses.forEach((r, row) => card(row, q, s));
    select(at.row, at.token, false);
  }

  // ---- one token
  function show(row, t) {
    const r = prompt().responses[row];
    detail.textContent = "";
    if (!r || t >= r.id.length) { make("p", "quiet", "This response has no tokens.", detail); return; }
    const head = make("p", "which", null, detail);
    make("span", "piece", shown(t < r.text.length ? r.text[t] : ""), head);
    make("span", "quiet", `token ${t + 1} of ${r.length} \u00b7 response ${r.sample} \u00b7 id ${r.id[t]}`, head);
    const table = make("table", "", null, detail);
    for (const [kind, title] of KINDS) {
      const part = make("tbody", "", null, undefined);
      step().quantities.forEach((q, i) => {
        if (q.kind !== kind) return;
        const line = make("tr", idOf(q) === at.quantity ? "chosen" : "", null, part);
        const head = make("th", "", name(q), line);
        head.scope = "row";
        head.title = q.title;
        make("td", "", number(valueOf(r, i, t)), line);
        make("td", "about", q.title, line);
        make("td", "equation", q.equation, line);
      });
      if (!part.children.length) continue;
      const line = document.createElement("tr"), cell = make("th", "kind", title, line);
      cell.colSpan = 4;
      part.prepend(line);
      table.appendChild(part);
    }
  }
  // The first strip of a response is the one that keys walk through.
  const strip = (row) => cards.querySelector(`.tokens[data-row="${row}"]`);
  function select(row, t, focus, box) {
    for (const node of cards.querySelectorAll(".tok.now")) { node.classList.remove("now"); node.tabIndex = -1; }
    at.row = row; at.token = t;
    for (const one of cards.querySelectorAll(`.tokens[data-row="${row}"]`)) if (one.children[t]) one.children[t].classList.add("now");
    const node = (box || strip(row) || cards).querySelector(`.tok[data-token="${t}"]`);
    if (node) { node.tabIndex = 0; if (focus) { node.focus({ preventScroll: true }); node.scrollIntoView({ block: "nearest" }); } }
    show(row, t);
  }
  function spot(event) {
    const node = event.target.closest && event.target.closest(".tok");
    return node ? [+node.parentNode.dataset.row, +node.dataset.token, node.parentNode] : null;
  }
  cards.addEventListener("pointerover", (event) => {
    const s = event.pointerType === "mouse" && spot(event);
    if (s) show(s[0], s[1]);
  });
  cards.addEventListener("pointerleave", () => show(at.row, at.token));
  cards.addEventListener("click", (event) => { const s = spot(event); if (s) select(s[0], s[1], true, s[2]); });
  cards.addEventListener("keydown", (event) => {
    const s = spot(event);
    if (!s || event.altKey || event.ctrlKey || event.metaKey) return;
    let [row, t, box] = s;
    const last = prompt().responses[row].id.length - 1;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") t += event.key === "ArrowRight" ? 1 : -1;
    else if (event.key === "Home" || event.key === "End") t = event.key === "Home" ? 0 : last;
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const boxes = [...cards.querySelectorAll(".tokens")].filter((b) => b.querySelector(".tok"));
      box = boxes[boxes.indexOf(box) + (event.key === "ArrowDown" ? 1 : -1)];
      if (!box) return;
      row = +box.dataset.row;
      t = Math.min(t, prompt().responses[row].id.length - 1);
    } else return;
    event.preventDefault();
    if (t < 0 || t >= prompt().responses[row].id.length) return;
    select(row, t, true, box);
  });
  reset();
})();
