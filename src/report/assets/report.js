// Draws the charts of a report from the JSON on the page. No library, no network; without this script the tables stay.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set();              // indices of groups switched off
  const charts = [];
  const SVG = "http://www.w3.org/2000/svg";

  function color(group) { return data.groups[group].color; }
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

  // Round tick positions covering [low, high].
  function ticks(low, high, count) {
    if (!(high > low)) return { list: [low], step: 1 };
    const rough = (high - low) / Math.max(1, count);
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = power * [1, 2, 2.5, 5, 10].find((m) => m * power >= rough * 0.999);
    const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
    const list = [];
    for (let i = first; i <= last; ++i) list.push(Math.abs(i) < 1e-9 ? 0 : i * step);
    return { list, step };
  }
  function tickText(value, step, share) {
    if (share) {
      const digits = Math.max(0, Math.ceil(-Math.log10(100 * step) - 1e-9));
      return (100 * value).toFixed(Math.min(4, 100 * step % 1 === 0 ? 0 : Math.max(1, digits))).replace("-", "\u2212") + "\u2009%";
    }
    const size = Math.max(Math.abs(value), Math.abs(step));
    if (value === 0) return "0";
    if (size >= 1e6 || step < 1e-4) return value.toExponential(step / Math.abs(value) < 0.99 ? 1 : 0).replace("e+", "e").replace("-", "\u2212");
    let digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    if (Math.abs(step * Math.pow(10, digits) - Math.round(step * Math.pow(10, digits))) > 1e-6) digits += 1;
    return size >= 1000 ? value.toLocaleString("en-US") : value.toFixed(digits).replace("-", "\u2212");
  }

  class Chart {
    constructor(figure) {
      this.panel = data.panels[+figure.dataset.panel];
      this.plot = figure.querySelector(".plot");
      this.read = figure.querySelector(".read");
      this.button = figure.querySelector(".as-table");
      this.index = this.panel.x.length - 1;
      this.table = false;
      this.button.addEventListener("click", () => {
        this.table = !this.table;
        this.button.setAttribute("aria-pressed", this.table);
        this.draw();
      });
      this.plot.addEventListener("pointermove", (event) => this.point(event));
      this.plot.addEventListener("pointerdown", (event) => this.point(event));
      this.plot.addEventListener("pointerleave", () => showAll(null, null));
      this.plot.addEventListener("focus", () => this.move(this.index));
      this.plot.addEventListener("blur", () => showAll(null, null));
      this.plot.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
        const to = event.key === "Home" ? 0 : event.key === "End" ? this.panel.x.length - 1 : this.index + step;
        if (this.table || Number.isNaN(to) || to === undefined) return;
        event.preventDefault();
        this.move(to);
      });
    }

    visible() { return this.panel.series.filter((s) => !hidden.has(s.group)); }

    // Lower and upper edge of the band of one curve at one place, or null.
    edges(s, i) {
      if (s.std && s.std[i] !== null) {
        let low = s.mean[i] - s.std[i], high = s.mean[i] + s.std[i];
        if (this.panel.share) { low = Math.max(0, low); high = Math.min(1, high); }
        return [low, high];
      }
      if (s.low && s.low[i] !== null && s.high[i] !== null) return [s.low[i], s.high[i]];
      return null;
    }

    range() {
      let low = Infinity, high = -Infinity;
      for (const s of this.visible()) {
        s.mean.forEach((v, i) => {
          if (v === null) return;
          const [a, b] = this.edges(s, i) || [v, v];
          low = Math.min(low, a, v);
          high = Math.max(high, b, v);
        });
      }
      if (low > high) return [0, 1];
      if (low >= 0 && (low < 0.6 * high || this.panel.share)) low = 0;
      if (this.panel.share && high > 0.55) high = 1;
      if (high === low) {
        if (high === 0) return [0, 1];
        const room = Math.abs(high) * 0.5;
        return high > 0 ? [0, high + room] : [low - room, 0];
      }
      return [low, high];
    }

    draw() {
      this.plot.textContent = "";
      this.cursor = null;
      if (this.table) return this.drawTable();
      const p = this.panel, width = Math.max(220, this.plot.clientWidth), height = 190;
      const [low, high] = this.range();
      const flat = this.visible().every((s) => s.mean.every((v) => v === null || v === 0));
      const { list, step } = ticks(low, high, 4);
      const bottom = list[0], top = p.share ? Math.max(high, list[list.length - 1] > 1 ? 1 : list[list.length - 1]) : list[list.length - 1];
      const labels = list.filter((v) => v <= top + 1e-12).map((v) => tickText(v, step, p.share));
      const left = 10 + 6.3 * Math.max(...labels.map((t) => t.length)), right = 10, head = 8, foot = 24;
      const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height }, this.plot);
      const log = p.axis === "samples";
      const place = (v) => (log ? Math.log2(v) : v);
      const x0 = place(p.x[0]), x1 = place(p.x[p.x.length - 1]);
      this.X = (v) => (x1 === x0 ? (left + width - right) / 2 : left + ((place(v) - x0) / (x1 - x0)) * (width - left - right));
      this.Y = (v) => head + ((top - v) / (top - bottom || 1)) * (height - head - foot);

      list.filter((v) => v <= top + 1e-12).forEach((v, i) => {
        const y = Math.round(this.Y(v)) + 0.5;
        if (!flat || v === 0) {
          svg("line", { x1: left, x2: width - right, y1: y, y2: y, class: v === bottom ? "axis" : "gridline" }, root);
          svg("text", { x: left - 7, y: y + 3.5, "text-anchor": "end" }, root).textContent = labels[i];
        }
      });
      this.xLabels(root, width, height, left, right, log);
      if (flat) {
        svg("text", { x: (left + width - right) / 2, y: height / 2, "text-anchor": "middle" }, root).textContent =
          this.visible().length ? "0 at every " + p.xName : "all runs are switched off";
      }
      if (this.visible().length <= 4) for (const s of this.visible()) this.drawBand(root, s);   // more would be fog
      for (const s of this.visible()) this.drawCurve(root, s, log);
      this.cursor = svg("g", { visibility: "hidden" }, root);
      this.height = height; this.head = head; this.foot = foot;
      this.show(null);
    }

    xLabels(root, width, height, left, right, log) {
      const p = this.panel, y = height - 6;
      let marks;
      if (log) {
        marks = p.x.filter((v) => Number.isInteger(Math.log2(v)));
      } else {
        const most = Math.max(2, Math.floor((width - left - right) / 70));
        const { list } = ticks(p.x[0], p.x[p.x.length - 1], most);
        marks = list.filter((v) => v >= p.x[0] && v <= p.x[p.x.length - 1] && Number.isInteger(v));
        if (!marks.length) marks = [p.x[p.x.length - 1]];
      }
      for (const v of marks) svg("text", { x: this.X(v), y, "text-anchor": "middle" }, root).textContent = v.toLocaleString("en-US");
      const name = svg("text", { x: left - 7, y, "text-anchor": "end" }, root);
      name.textContent = p.xName;
    }

    drawBand(root, s) {
      const up = [], down = [];
      s.mean.forEach((v, i) => {
        const edge = v === null ? null : this.edges(s, i);
        if (!edge) return;
        up.push(`${this.X(this.panel.x[i]).toFixed(1)},${this.Y(edge[1]).toFixed(1)}`);
        down.unshift(`${this.X(this.panel.x[i]).toFixed(1)},${this.Y(edge[0]).toFixed(1)}`);
      });
      if (up.length > 1) svg("polygon", { points: up.concat(down).join(" "), class: `band g${color(s.group)}` }, root);
    }

    drawCurve(root, s, dots) {
      const points = [];
      s.mean.forEach((v, i) => { if (v !== null) points.push([this.X(this.panel.x[i]), this.Y(v)]); });
      svg("polyline", { points: points.map((q) => q.map((v) => v.toFixed(1)).join(",")).join(" "), class: `curve g${color(s.group)}${this.over(s) ? " over" : ""}` }, root);
      if (dots || points.length < 13) {
        for (const [cx, cy] of points) svg("circle", { cx, cy, r: 2.6, class: `point g${color(s.group)}` }, root);
      }
    }

    // Every second trained curve is dashed: where two runs agree, both stay visible.
    over(s) {
      return this.panel.series.filter((o) => data.groups[o.group].trained).indexOf(s) % 2 === 1;
    }

    drawTable() {
      const p = this.panel, rows = html("div", "rows", undefined, this.plot), table = html("table", "", undefined, rows);
      const head = html("tr", "", undefined, html("thead", "", undefined, table));
      html("th", "", p.xName, head);
      for (const s of this.visible()) html("th", "", data.groups[s.group].title, head);
      const body = html("tbody", "", undefined, table);
      p.x.forEach((x, i) => {
        const row = html("tr", "", undefined, body);
        html("th", "", x.toLocaleString("en-US"), row);
        for (const s of this.visible()) {
          const runs = s.runs ? s.runs.map((r) => format(r[i], p.share)).join(", ") : "";
          const cell = html("td", "", this.text(s, i), row);
          if (runs) cell.title = "each run: " + runs;
        }
      });
      this.read.textContent = "";
    }

    text(s, i) {
      const share = this.panel.share, unit = share ? "\u2009%" : "", deviation = s.std ? s.std[i] : null;
      if (s.mean[i] === null) return format(null);
      const digits = digitsOf(s.mean[i], share, deviation || 0);
      let text = format(s.mean[i], share, digits);
      if (deviation !== null) text += " \u00b1\u2009" + format(deviation, share, digits) + unit;
      else text += unit;
      if (s.low && s.low[i] !== null) text += ` (${format(s.low[i], share, digits)}\u2013${format(s.high[i], share, digits)})`;
      return text;
    }

    // Reads out place `i`; null: the last place, without the crosshair.
    show(i) {
      if (this.table) return;
      const p = this.panel, at = i === null ? p.x.length - 1 : i;
      this.read.textContent = "";
      html("span", "at", `${p.xName} ${p.x[at].toLocaleString("en-US")}`, this.read);
      const dots = [];
      for (const s of this.visible()) {
        const item = html("span", "nowrap", undefined, this.read);
        html("span", `key g${color(s.group)}`, "", item);
        item.append(data.groups[s.group].title + " ");
        html("b", "", this.text(s, at), item);
        if (s.mean[at] !== null) dots.push([s.group, this.Y(s.mean[at])]);
      }
      this.cursor.textContent = "";
      this.cursor.setAttribute("visibility", i === null ? "hidden" : "visible");
      if (i === null) return;
      const x = this.X(p.x[at]);
      svg("line", { x1: x, x2: x, y1: this.head, y2: this.height - this.foot, class: "cross" }, this.cursor);
      for (const [group, y] of dots) svg("circle", { cx: x, cy: y, r: 4.5, class: `hit g${color(group)}` }, this.cursor);
    }

    point(event) {
      if (this.table) return;
      const box = this.plot.getBoundingClientRect(), x = event.clientX - box.left;
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

  // Every chart with the same kind of axis reads out the same step, or the last one before it.
  function showAll(source, x) {
    for (const chart of charts) {
      if (x === null || (source !== chart && chart.panel.xName !== source.panel.xName)) { chart.show(null); continue; }
      let i = -1;                            // the last place at or before x
      while (i + 1 < chart.panel.x.length && chart.panel.x[i + 1] <= x) ++i;
      chart.show(i < 0 ? null : i);
    }
  }

  for (const figure of document.querySelectorAll(".panel")) charts.push(new Chart(figure));
  function drawAll() { for (const chart of charts) chart.draw(); }
  drawAll();
  let width = window.innerWidth, waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;   // phones resize when their bars hide
    width = window.innerWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(drawAll);
  });
  window.addEventListener("beforeprint", drawAll);

  for (const button of document.querySelectorAll(".legend")) {
    button.addEventListener("click", () => {
      const group = +button.dataset.group, on = hidden.has(group);
      if (on) hidden.delete(group); else hidden.add(group);
      button.setAttribute("aria-pressed", on);
      drawAll();
    });
  }

  // ---- a chart as a file: the drawing with the colours it has now, on its own ground, made without the network
  const KEPT = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "opacity", "font-size",
    "font-weight", "text-anchor", "visibility"];
  function dress(from, to) {
    const style = getComputedStyle(from);
    for (const name of KEPT) to.setAttribute(name, style.getPropertyValue(name));
    to.removeAttribute("class");
    for (let i = 0; i < from.children.length; ++i) if (from.children[i].tagName !== "title") dress(from.children[i], to.children[i]);
  }
  function heading(root, figure, width) {   // title and legend, which the page keeps outside of its own charts
    const ink = getComputedStyle(document.body).color, chart = charts.find((c) => c.plot === figure.querySelector(".plot"));
    svg("text", { x: 10, y: 20, fill: ink, "font-size": 14, "font-weight": 600 }, root).textContent = figure.querySelector("h4").textContent;
    let x = 10, y = 40;
    for (const s of chart.visible()) {
      const title = data.groups[s.group].title, wide = 34 + 6.6 * title.length;
      if (x > 10 && x + wide > width) { x = 10; y += 17; }
      svg("rect", { x, y: y - 9, width: 10, height: 10, rx: 2, fill: getComputedStyle(document.querySelectorAll(".legend .key")[s.group]).getPropertyValue("--c") }, root);
      svg("text", { x: x + 16, y, fill: ink, "font-size": 12 }, root).textContent = title;
      x += wide;
    }
    return y + 8;
  }
  function svgText(figure) {
    const source = figure.querySelector(".plot svg, .drawing svg");
    if (!source) return null;
    const box = source.viewBox.baseVal, root = document.createElementNS(SVG, "svg"), ground = svg("rect", {}, root);
    const top = figure.classList.contains("panel") ? heading(root, figure, box.width) : 0, inner = source.cloneNode(true);
    dress(source, inner);
    for (const name of ["class", "style", "role", "height"]) inner.removeAttribute(name);
    for (const [name, value] of [["x", 0], ["y", top], ["width", box.width], ["height", box.height]]) inner.setAttribute(name, value);
    inner.setAttribute("overflow", "visible");
    root.appendChild(inner);
    const size = { width: box.width, height: box.height + top, viewBox: `0 0 ${box.width} ${box.height + top}` };
    for (const name in size) root.setAttribute(name, size[name]);
    for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", getComputedStyle(document.body).backgroundColor]]) ground.setAttribute(name, value);
    root.setAttribute("font-family", "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif");
    return new XMLSerializer().serializeToString(root);
  }
  for (const button of document.querySelectorAll(".save")) {
    const figure = button.closest("figure"), name = figure.dataset.name || figure.querySelector("h4").textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    button.setAttribute("aria-label", "save as SVG: " + figure.querySelector("h4").textContent);
    button.addEventListener("click", () => {
      const text = svgText(figure);
      if (!text) return;
      const link = document.createElement("a");
      link.href = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
      link.download = name + ".svg";
      link.click();
    });
  }

  const chips = [...document.querySelectorAll(".chips button")];
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      for (const other of chips) other.setAttribute("aria-pressed", other === chip);
      for (const sample of document.querySelectorAll(".sample")) {
        sample.hidden = chip.dataset.kind !== "" && sample.dataset.kind !== chip.dataset.kind;
      }
    });
  }

  const seeds = document.getElementById("seeds");
  if (seeds) {
    seeds.addEventListener("change", () => {
      for (const table of document.querySelectorAll(".summary")) table.classList.toggle("show-seeds", seeds.checked);
    });
  }

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
