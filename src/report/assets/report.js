// The charts are drawn already; this reads out single steps, switches runs on and off, saves a chart, opens what a link
// leads to. No library, no network; without it the page stays readable.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set();              // indices of groups switched off
  const SVG = "http://www.w3.org/2000/svg";
  const all = (selector, within) => [...(within || document).querySelectorAll(selector)];

  function svg(name, attributes, parent) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(node);
    return node;
  }
  function html(name, className, text, parent) {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  }

  // Numbers as people read them: three or four digits that matter. Digits come from the value itself, and from its
  // deviation where that would otherwise round to nothing.
  function digitsOf(value, share, deviation) {
    const size = Math.abs(share ? 100 * value : value), spread = share ? 100 * deviation : deviation;
    let digits = share ? (size !== 0 && size < 1 ? 2 : 1)
      : size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : size >= 0.01 ? 4 : 5;
    for (let extra = 0; extra < 2 && spread > 0 && spread < 0.5 * Math.pow(10, -digits); ++extra) digits += 1;
    return digits;
  }
  function format(value, share, digits) {
    if (value === null || value === undefined) return "\u2013";
    if (digits === undefined) digits = digitsOf(value, share, 0);
    let text;
    if (share) text = (100 * value).toFixed(digits);
    else if (value === 0 || (Number.isInteger(value) && Math.abs(value) < 1000 && digits === digitsOf(value, share, 0))) text = String(value);
    else if (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4) text = value.toExponential(1).replace("e+", "e");
    else if (Math.abs(value) >= 1000) text = Math.round(value).toLocaleString("en-US");
    else text = value.toFixed(digits);
    return text.replace(/-/g, "\u2212");
  }

  class Chart {
    constructor(figure) {
      this.panel = data.panels[+figure.dataset.panel];
      this.plot = figure.querySelector(".plot");
      this.drawing = this.plot.querySelector("svg");
      this.read = figure.querySelector(".read");
      this.cursor = svg("g", { visibility: "hidden" }, this.drawing);
      this.index = this.panel.x.length - 1;
      this.table = null;
      const button = figure.querySelector(".as-table");
      button.addEventListener("click", () => {
        button.setAttribute("aria-pressed", !this.table);
        if (this.table) this.table.remove();
        this.table = this.table ? null : html("div", "rows", undefined, this.plot);
        this.drawing.style.display = this.table ? "none" : "";
        this.draw();
      });
      for (const kind of ["pointermove", "pointerdown"]) this.plot.addEventListener(kind, (event) => this.point(event));
      for (const kind of ["pointerleave", "blur"]) this.plot.addEventListener(kind, () => showAll(null, null));
      this.plot.addEventListener("focus", () => this.move(this.index));
      this.plot.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
        const to = event.key === "Home" ? 0 : event.key === "End" ? this.panel.x.length - 1 : this.index + step;
        if (this.table || Number.isNaN(to)) return;
        event.preventDefault();
        this.move(to);
      });
    }

    visible() { return this.panel.series.filter((s) => !hidden.has(s.group)); }
    X(v) {
      const [left, , width, , low, high] = this.panel.frame, place = (x) => (this.panel.log ? Math.log2(x) : x);
      return left + (high > low ? (place(v) - place(low)) / (place(high) - place(low)) : 0.5) * width;
    }
    Y(v) {
      const [, top, , height, , , low, high] = this.panel.frame;
      return top + (high > low ? (high - v) / (high - low) : 0.5) * height;
    }

    draw() {                               // what depends on the runs that are switched on
      this.plot.classList.toggle("crowded", this.visible().length > 4);   // more bands would be fog
      if (this.table) this.drawTable(); else this.show(null);
    }
    drawTable() {
      const p = this.panel;
      this.table.textContent = this.read.textContent = "";
      const table = html("table", "", undefined, this.table), head = html("tr", "", undefined, html("thead", "", undefined, table));
      html("th", "", p.xName, head);
      for (const s of this.visible()) html("th", "", data.groups[s.group].title, head);
      const body = html("tbody", "", undefined, table);
      p.x.forEach((x, i) => {
        const row = html("tr", "", undefined, body);
        html("th", "", x.toLocaleString("en-US"), row);
        for (const s of this.visible()) {
          const cell = html("td", "", this.text(s, i), row);
          if (s.runs) cell.title = "each run: " + s.runs.map((r) => format(r[i], p.share)).join(", ");
        }
      });
    }
    text(s, i) {
      const share = this.panel.share, unit = share ? "\u2009%" : "", deviation = s.std ? s.std[i] : null;
      if (s.mean[i] === null) return format(null);
      const digits = digitsOf(s.mean[i], share, deviation || 0);
      let text = format(s.mean[i], share, digits);
      text += (deviation !== null ? " \u00b1\u2009" + format(deviation, share, digits) : "") + unit;
      if (s.low && s.low[i] !== null) text += ` (${format(s.low[i], share, digits)}\u2013${format(s.high[i], share, digits)})`;
      return text;
    }

    // Reads out place `i`; null: the last place, without the crosshair.
    show(i) {
      if (this.table) return;
      const p = this.panel, at = i === null ? p.x.length - 1 : i, x = this.X(p.x[at]), [, top, , height] = p.frame;
      this.read.textContent = this.cursor.textContent = "";
      this.cursor.setAttribute("visibility", i === null ? "hidden" : "visible");
      html("span", "at", `${p.xName} ${p.x[at].toLocaleString("en-US")}`, this.read);
      if (!this.visible().length) html("span", "", "all runs are switched off", this.read);
      svg("line", { x1: x, x2: x, y1: top, y2: top + height, class: "cross" }, this.cursor);
      for (const s of this.visible()) {
        const item = html("span", "nowrap", undefined, this.read), color = data.groups[s.group].color;
        html("span", `key g${color}`, "", item);
        item.append(data.groups[s.group].title + " ");
        html("b", "", this.text(s, at), item);
        if (s.mean[at] !== null) svg("circle", { cx: x, cy: this.Y(s.mean[at]), r: 4.5, class: `hit g${color}` }, this.cursor);
      }
    }
    point(event) {
      if (this.table) return;
      const box = this.drawing.getBoundingClientRect(), x = (event.clientX - box.left) * this.drawing.viewBox.baseVal.width / box.width;
      let best = 0;
      this.panel.x.forEach((v, i) => { if (Math.abs(this.X(v) - x) < Math.abs(this.X(this.panel.x[best]) - x)) best = i; });
      this.move(best);
    }
    move(i) {
      if (this.table) return;
      this.index = Math.min(this.panel.x.length - 1, Math.max(0, i));
      showAll(this, this.panel.x[this.index]);
    }
  }
  const charts = all(".panel").map((figure) => new Chart(figure));

  // Every chart with the same kind of axis reads out the same step, or the last one before it.
  function showAll(source, x) {
    for (const chart of charts) {
      if (x === null || (source !== chart && chart.panel.xName !== source.panel.xName)) { chart.show(null); continue; }
      const i = chart.panel.x.findLastIndex((v) => v <= x);
      chart.show(i < 0 ? null : i);
    }
  }
  function drawAll() {
    data.groups.forEach((group, g) => { for (const node of all(`.plot .of${g}`)) node.classList.toggle("off", hidden.has(g)); });
    for (const chart of charts) chart.draw();
  }
  drawAll();
  for (const button of all(".legend")) {
    button.addEventListener("click", () => {
      const group = +button.dataset.group, on = hidden.has(group);
      if (on) hidden.delete(group); else hidden.add(group);
      button.setAttribute("aria-pressed", on);
      drawAll();
    });
  }

  // ---- a chart as a file: the drawing with the colours it has now, on its own ground, made without the network
  const KEPT = ["fill", "fill-opacity", "stroke", "stroke-opacity", "display", "font-size"];
  function dress(from, to) {
    const style = getComputedStyle(from);
    for (const name of KEPT) to.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "role", "aria-label"]) to.removeAttribute(name);
    [...from.children].forEach((child, i) => dress(child, to.children[i]));
  }
  function heading(root, figure) {         // title and legend, which the page keeps outside of its own charts
    const ink = getComputedStyle(document.body).color, chart = charts.find((c) => figure.contains(c.plot));
    const legend = (node) => getComputedStyle(node).getPropertyValue("--c");
    svg("text", { x: 10, y: 20, fill: ink, "font-size": 14, "font-weight": 600 }, root).textContent = figure.querySelector("h4").textContent;
    let x = 10, y = 40;
    for (const s of chart ? chart.visible() : []) {
      const title = data.groups[s.group].title, wide = 34 + 6.6 * title.length;
      if (x > 10 && x + wide > 520) { x = 10; y += 17; }
      svg("rect", { x, y: y - 9, width: 10, height: 10, rx: 2, fill: legend(all(".legend .key")[s.group]) }, root);
      svg("text", { x: x + 16, y, fill: ink, "font-size": 12 }, root).textContent = title;
      x += wide;
    }
    return chart ? y + 8 : 30;
  }
  function svgText(figure) {
    const source = figure.querySelector(".plot > svg, .drawing > svg"), box = source.viewBox.baseVal, root = svg("svg", {});
    svg("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor }, root);
    const top = heading(root, figure), inner = source.cloneNode(true), height = box.height + top;
    dress(source, inner);
    for (const [name, value] of Object.entries({ x: 0, y: top, width: box.width, height: box.height, overflow: "visible" })) inner.setAttribute(name, value);
    root.appendChild(inner);
    const outer = { width: box.width, height, viewBox: `0 0 ${box.width} ${height}`, "font-family": "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" };
    for (const name in outer) root.setAttribute(name, outer[name]);
    return new XMLSerializer().serializeToString(root);
  }
  for (const button of all(".save")) {
    const figure = button.closest("figure"), title = figure.querySelector("h4").textContent;
    button.setAttribute("aria-label", "save as SVG: " + title);
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgText(figure));
      link.download = (figure.dataset.name || title).toLowerCase().replace(/[^a-z0-9]+/g, "-") + ".svg";
      link.click();
    });
  }

  // ---- the rest of the page
  const chips = all(".chips button");
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      for (const other of chips) other.setAttribute("aria-pressed", other === chip);
      for (const sample of all(".sample")) sample.hidden = chip.dataset.kind !== "" && sample.dataset.kind !== chip.dataset.kind;
    });
  }
  for (const box of all(".seeds")) {
    box.addEventListener("change", () => { for (const table of all(".summary")) table.classList.toggle("show-seeds", box.checked); });
  }
  function open() {                        // the section that the address leads to
    const place = document.getElementById(location.hash.slice(1).split("?")[0]), room = place && place.querySelector(".room");
    if (!room) return;
    room.open = true;
    place.scrollIntoView();
  }
  for (const link of all("nav .links a")) link.addEventListener("click", () => setTimeout(open));
  window.addEventListener("hashchange", open);
  window.addEventListener("beforeprint", () => { for (const room of all(".room, .part")) room.open = true; });
  open();

  const theme = document.getElementById("theme"), order = ["system", "light", "dark"];
  function setTheme(name) {
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    theme.textContent = name === "system" ? "theme" : name;
    theme.dataset.now = name;
    try { localStorage.setItem("ucas-report-theme", name); } catch (error) { /* private windows */ }
  }
  let saved = "system";
  try { saved = localStorage.getItem("ucas-report-theme") || "system"; } catch (error) { /* private windows */ }
  setTheme(order.includes(saved) ? saved : "system");
  theme.addEventListener("click", () => setTheme(order[(order.indexOf(theme.dataset.now) + 1) % 3]));
})();
