// The page of a run: a schedule to zoom into, quantities over time, distributions, and a table of all rows.
"use strict";

async function simmodelUnpack(packed) { // base64 or bytes: a header in JSON, then arrays, deflated
  let bytes = packed;
  if (typeof packed === "string") {
    if (Uint8Array.fromBase64) bytes = Uint8Array.fromBase64(packed);
    else {
      const raw = atob(packed);
      bytes = new Uint8Array(raw.length);
      for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    }
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function simmodelElement(tag, options = {}, ...children) { // all text is text, never markup
  const made = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "text") made.textContent = value;
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function simmodelShow(bytes, kept = {}) { // draw a page, packed or a head with arrays; what was looked at on the last one is looked at again
  const root = document.getElementById("page"), packed = bytes instanceof ArrayBuffer;
  const length = packed && new DataView(bytes).getUint32(0, true);
  const head = packed ? JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length))) : bytes;
  const first = 8 + Math.ceil(length / 8) * 8;
  const TYPES = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array };
  const MISSING = -2147483648;
  function numbers(ref) {
    if (!ref || !packed) return ref || null;
    const raw = new TYPES[ref.type](bytes, first + ref.at, ref.count);
    return ref.missing ? Float64Array.from(raw, (value) => (value === MISSING ? NaN : value)) : raw;
  }
  const read = (column) => ({ ...column, values: numbers(column.data) });

  const el = simmodelElement;
  const visible = (text) => String(text).replace(/[\u0000-\u001f\u007f]/g, (c) => String.fromCharCode(c === "\u007f" ? 0x2421 : 0x2400 + c.charCodeAt(0)));
  const name = (text, most = 120) => {
    const shown = visible(text);
    const cut = shown.length > most ? shown.slice(0, most) + "…" : shown;
    return el("bdi", { text: cut });
  };
  const ink = (which) => getComputedStyle(document.documentElement).getPropertyValue(`--${which}`).trim();
  const rgb = (text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
  const SCALE = ["s0", "s1", "s2", "s3", "s4"]; // a longer wait stands out more from the paper, on white as on black
  function shades(names, count) { // colours between those of the theme
    const stops = names.map((each) => rgb(ink(each)));
    return Array.from({ length: count }, (_, k) => {
      const x = (k / (count - 1)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(x));
      return stops[i].map((c, j) => Math.round(c + (stops[i + 1][j] - c) * (x - i)));
    });
  }
  function onTop([r, g, b]) { // black or white, which is read better on a colour
    const linear = (c) => (c <= 10 ? c / 3294 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.179 ? "#000" : "#fff";
  }
  const swatch = (colour) => el("i", colour ? { style: `background:var(--${colour})` } : { class: "hollow" });

  // ---------------------------------------------------------------- numbers and times as text
  const grouped = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
  const number = (x) => (Number.isNaN(x) ? "" : Number.isFinite(x) ? (Number.isInteger(x) ? x.toLocaleString("en") : grouped.format(x)) : "∞");
  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  const abstract = head.unit.includes(" "); // no unit that a number is followed by
  const pad = (x) => String(x).padStart(2, "0");
  function duration(s) {
    if (Number.isNaN(s)) return "";
    if (!Number.isFinite(s)) return "∞";
    if (head.unit !== "s") return `${number(s)} ${abstract ? "" : head.unit}`.trim();
    const size = Math.abs(s);
    if (size < 60) return `${number(s)} s`;
    const sign = s < 0 ? "-" : "", t = Math.round(size);
    const days = Math.floor(t / 86400), h = Math.floor((t % 86400) / 3600), m = Math.floor((t % 3600) / 60);
    return sign + (days ? `${days.toLocaleString("en")} d ${pad(h)}:${pad(m)}` : `${pad(h)}:${pad(m)}:${pad(t % 60)}`);
  }
  const clock = (t) => duration(t - head.span[0]);
  const KINDS = { number, seconds: duration, instant: clock };
  const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 604800, 1209600, 2592000, 7776000, 15552000, 31536000];
  function ticks(from, to, most) {
    const wanted = (to - from) / Math.max(1, most);
    let step = head.unit === "s" && wanted > 1 ? STEPS.find((each) => each >= wanted) : undefined;
    if (!step) {
      const power = 10 ** Math.floor(Math.log10(wanted));
      step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= wanted * 0.999);
    }
    const found = [];
    for (let k = Math.ceil((from - head.span[0]) / step); found.length < 60; k++) {
      const at = head.span[0] + k * step;
      if (at > to) break;
      found.push([at, step]);
    }
    return found;
  }
  const timeUnit = (step) => (step >= 86400 ? "days" : step < 60 && head.span[1] - head.span[0] < 600 ? "seconds" : `${head.span[1] - head.span[0] >= 86400 ? "days " : ""}h:min${step < 60 ? ":s" : ""}`);
  function tickText(at, step) {
    const t = at - head.span[0];
    if (head.unit !== "s") return `${number(t)}`;
    if (step >= 86400) return `${number(t / 86400)} d`;
    if (step < 60 && head.span[1] - head.span[0] < 600) return `${number(Number(t.toPrecision(12)))} s`;
    const days = Math.floor(t / 86400), left = t - days * 86400;
    const text = `${pad(Math.floor(left / 3600))}:${pad(Math.floor((left % 3600) / 60))}` + (step < 60 ? `:${pad(Math.floor(left % 60))}` : "");
    return days ? `${days} d ${text}` : text;
  }

  // ---------------------------------------------------------------- the view that all charts over time share
  const span = [head.span[0], head.span[1] > head.span[0] ? head.span[1] : head.span[0] + 1];
  const view = { from: span[0], to: span[1] };
  const charts = [];
  let waiting = false;
  function later() {
    if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; drawAll(); }); }
  }
  const maps = [];
  let opened = null; // the panel of a site
  function drawAll() { for (const chart of [...charts, ...maps]) chart.draw(); }
  function markAll() { for (const chart of charts) chart.mark(); opened?.mark(); }
  function look(from, to) {
    const least = Math.max((span[1] - span[0]) * 1e-9, 1e-12);
    const wide = Math.min(Math.max(to - from, least), span[1] - span[0]);
    const start = Math.min(Math.max(from, span[0]), span[1] - wide);
    [view.from, view.to] = [start, start + wide];
    later();
  }
  const zoom = (factor, at = (view.from + view.to) / 2) => look(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const move = (share) => look(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

  // ---------------------------------------------------------------- a canvas with a margin for names, and its gestures
  document.querySelector(".tip")?.remove();
  const tip = el("div", { class: "tip", role: "status", hidden: "" });
  document.body.append(tip);
  function say(text, event) {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
  }
  const FONT = "11px system-ui, sans-serif";
  class Chart {
    constructor(parent, title, height, axis) {
      this.height = height + (axis ? 34 : 4);
      this.plot = height;
      this.axis = axis;
      this.holder = el("div", { class: "chart" });
      this.said = el("div", { class: "said" });
      this.canvas = el("canvas", { role: "img", tabindex: "0", "aria-label": visible(title) });
      this.over = el("canvas", { class: "over", "aria-hidden": "true" });
      const pictures = el("div", { style: "position:relative" }, this.canvas, this.over);
      this.holder.append(this.said, pictures);
      parent.append(this.holder);
      charts.push(this);
      new ResizeObserver(later).observe(this.holder);
      this.gestures();
    }
    get margin() { return Math.round(Math.min(Chart.named + 30, this.wide < 560 ? 96 : 204)); }
    size() {
      const wide = Math.max(120, this.holder.clientWidth), ratio = devicePixelRatio || 1;
      if (wide !== this.wide || ratio !== this.ratio || this.height !== this.tall) {
        [this.wide, this.ratio, this.tall] = [wide, ratio, this.height];
        for (const canvas of [this.canvas, this.over]) {
          [canvas.width, canvas.height] = [wide * ratio, this.height * ratio];
          canvas.style.height = `${this.height}px`;
          canvas.style.width = `${wide}px`;
        }
      }
      this.pen = this.canvas.getContext("2d");
      this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.pen.clearRect(0, 0, wide, this.height);
      this.pen.font = FONT;
      this.inner = wide - this.margin - 8;
    }
    x(at) { return this.margin + ((at - view.from) / (view.to - view.from)) * this.inner; }
    instant(x) { return view.from + ((x - this.margin) / this.inner) * (view.to - view.from); }
    draw() {
      this.size();
      const pen = this.pen;
      if (this.inked !== ink("paper")) { this.inked = ink("paper"); this.dress?.(); } // the theme has changed
      pen.fillStyle = ink("panel");
      pen.fillRect(this.margin, 0, this.inner, this.plot);
      const marks = ticks(view.from, view.to, this.inner / 90);
      pen.strokeStyle = ink("pale");
      pen.lineWidth = 1;
      pen.beginPath();
      for (const [at] of marks) { pen.moveTo(this.x(at), 0); pen.lineTo(this.x(at), this.plot); }
      pen.stroke();
      pen.save();
      pen.beginPath();
      pen.rect(this.margin, 0, this.inner, this.plot);
      pen.clip();
      this.paint(pen);
      pen.restore();
      pen.fillStyle = ink("grey");
      if (this.axis) {
        pen.textAlign = "center";
        pen.textBaseline = "top";
        let right = -Infinity;
        for (const [at, step] of marks) {
          const text = tickText(at, step), half = pen.measureText(text).width / 2, x = Math.min(this.x(at), this.wide - half);
          if (x - half > right) pen.fillText(text, x, this.plot + 5);
          right = Math.max(right, x + half + 6);
        }
        pen.fillText(`time since ${head.since || "the start"}, ${head.unit === "s" ? timeUnit(marks[0]?.[1] || 1) : abstract ? "in units of time" : head.unit}`, this.margin + this.inner / 2, this.plot + 20);
      }
      if (this.quantity) { // the title of the other axis
        pen.save();
        pen.translate(7, this.plot / 2);
        pen.rotate(-Math.PI / 2);
        pen.textAlign = "center";
        pen.textBaseline = "middle";
        let text = visible(this.quantity);
        while (text.length > 2 && pen.measureText(text).width > this.plot) text = `${text.slice(0, -2)}…`;
        pen.fillText(text, 0, 0);
        pen.restore();
      }
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      this.names(pen);
      if (head.now !== undefined && head.now >= view.from && head.now <= view.to) { // what follows is expected
        pen.fillStyle = ink("mark");
        pen.fillRect(this.x(head.now) - 0.75, 0, 1.5, this.plot);
        pen.textAlign = "left";
        pen.fillText("now", this.x(head.now) + 4, 7);
      }
      this.mark();
    }
    mark() {
      const pen = this.over.getContext("2d");
      pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      pen.clearRect(0, 0, this.wide, this.height);
      if (Chart.cursor !== null && Chart.cursor >= view.from && Chart.cursor <= view.to) {
        pen.strokeStyle = ink("grey");
        pen.beginPath();
        pen.moveTo(this.x(Chart.cursor), 0);
        pen.lineTo(this.x(Chart.cursor), this.plot);
        pen.stroke();
      }
      this.highlight?.(pen);
    }
    label(pen, text, y) {
      let shown = visible(text).slice(0, 80);
      const room = this.margin - 22;
      while (shown.length > 2 && pen.measureText(shown).width > room) shown = `${shown.slice(0, -2)}…`;
      pen.fillText(shown, this.margin - 6, y);
    }
    gestures() {
      const canvas = this.canvas, at = (event) => event.clientX - canvas.getBoundingClientRect().left;
      const down = (event) => event.clientY - canvas.getBoundingClientRect().top;
      let from = null, fingers = new Map(), apart = 0;
      canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        const much = Math.abs(event.deltaX) > Math.abs(event.deltaY);
        if (much) move(event.deltaX / this.inner);
        else if (event.shiftKey && this.tallZoom) this.tallZoom(2 ** (event.deltaY / 300), down(event));
        else zoom(2 ** (event.deltaY / 300), this.instant(at(event)));
      }, { passive: false });
      canvas.addEventListener("pointerdown", (event) => {
        fingers.set(event.pointerId, at(event));
        Chart.pressed = { chart: this, when: performance.now() };
        canvas.setPointerCapture(event.pointerId);
        from = { x: at(event), y: down(event), from: view.from, to: view.to, moved: false };
        apart = 0;
      });
      canvas.addEventListener("pointermove", (event) => {
        if (fingers.has(event.pointerId)) fingers.set(event.pointerId, at(event));
        if (fingers.size === 2) {
          const [a, b] = [...fingers.values()], now = Math.max(8, Math.abs(a - b));
          if (apart) zoom(apart / now, this.instant((a + b) / 2));
          apart = now;
          from = null;
        } else if (from && fingers.size === 1) {
          const by = at(event) - from.x;
          if (Math.abs(by) > 3) from.moved = true;
          if (from.moved) look(from.from - (by / this.inner) * (from.to - from.from), from.to - (by / this.inner) * (from.to - from.from));
        }
        if (!from?.moved) {
          Chart.cursor = this.instant(at(event));
          markAll();
          say(this.under(at(event), down(event)), event);
        }
      });
      canvas.addEventListener("pointerup", (event) => {
        fingers.delete(event.pointerId);
        if (from && !from.moved) this.click?.(at(event), down(event));
        from = null;
      });
      canvas.addEventListener("pointercancel", (event) => { fingers.delete(event.pointerId); from = null; });
      canvas.addEventListener("pointerleave", () => { Chart.cursor = null; say(""); markAll(); });
      canvas.addEventListener("keydown", (event) => {
        const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "0": () => look(...span), Home: () => look(span[0], span[0] + view.to - view.from), End: () => look(span[1] - (view.to - view.from), span[1]) };
        if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
      });
    }
  }
  Chart.cursor = null;
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = FONT;
  Chart.named = Math.max(40, ...head.panels.flatMap((each) => (each.names || (each.labels || []).map((label) => label[2])).map((text) => ruler.measureText(visible(text).slice(0, 60)).width)));

  // ---------------------------------------------------------------- quantities over time
  function lowerBound(values, x) {
    let low = 0, high = values.length;
    while (low < high) { const middle = (low + high) >> 1; if (values[middle] <= x) low = middle + 1; else high = middle; }
    return low; // the first greater than x
  }
  const COLOURS = ["c0", "c1", "c2", "c3", "c4", "c5", "c6"];
  function words(parent, title, text) { // in the place of a picture that would be empty
    parent.append(el("div", { class: "chart" }, el("h3", {}, name(title, 300)), el("p", { class: "empty" }, name(text, 2000))));
  }
  class Lines extends Chart {
    constructor(parent, panel, axis) {
      super(parent, panel.title, 96, axis);
      this.panel = panel;
      this.quantity = panel.axis;
      this.lines = panel.lines.map((line, i) => ({ ...line, times: numbers(line.times), values: numbers(line.values), shown: line.grey ? "grey" : COLOURS[(i + panel.shift) % COLOURS.length] }));
      this.several = panel.lines.filter((line) => !line.grey).length > 1;
      this.most = Math.max(panel.top || 0, ...this.lines.map((line) => line.most)) || 1;
      this.top = 1.05 * this.most;
      const power = 10 ** Math.floor(Math.log10(this.most / 2));
      const whole = this.lines.every((line) => line.values.every(Number.isInteger)); // no half of a processor
      this.step = Math.max(whole ? 1 : 0, [1, 2, 5, 10].map((each) => each * power).find((each) => this.most / each < 4));
      this.said.append(el("span", {}, name(panel.title, 300)));
      this.values = this.lines.map((line) => {
        const value = el("span");
        this.said.append(el("span", { class: "key" }, swatch(line.shown), name(line.label), value));
        return value;
      });
      behind(this.holder, panel.title, ["time", ...panel.lines.map((line) => line.label)], 48, (k) => {
        const at = span[0] + ((span[1] - span[0]) * k) / 47;
        return [clock(at), ...this.lines.map((line) => number(this.at(line, at)))];
      });
    }
    at(line, at) { const i = lowerBound(line.times, at) - 1; return i < 0 || at > line.until ? NaN : line.values[i]; }
    y(value) { return this.plot - (value / this.top) * this.plot; }
    paint(pen) {
      for (const line of this.lines) {
        const { times, values } = line, colour = ink(line.shown);
        const begin = Math.max(0, lowerBound(times, view.from) - 1), end = Math.min(times.length, lowerBound(times, view.to) + 1);
        if (end - begin > 3 * this.inner) {
          if (this.several) this.averages(pen, line, colour, begin, end); else this.columns(pen, line, colour, begin, end);
          continue;
        }
        pen.beginPath();
        let last = null;
        for (let i = begin; i < end; i++) {
          const x = this.x(times[i]), y = this.y(values[i]);
          if (last === null) pen.moveTo(x, y); else { pen.lineTo(x, last); pen.lineTo(x, y); }
          last = y;
        }
        if (last !== null) pen.lineTo(this.x(Math.min(line.until, view.to + (view.to - view.from))), last);
        pen.strokeStyle = colour;
        pen.lineWidth = 1.2;
        pen.setLineDash(line.grey ? [4, 3] : []);
        pen.stroke();
        pen.setLineDash([]);
        if (line.area) {
          pen.lineTo(this.x(Math.min(line.until, view.to + (view.to - view.from))), this.plot);
          pen.lineTo(this.x(times[begin]), this.plot);
          pen.globalAlpha = 0.22;
          pen.fillStyle = colour;
          pen.fill();
          pen.globalAlpha = 1;
        }
      }
    }
    averages(pen, line, colour, begin, end) { // of several runs, so that none covers another: the mean of each few pixels
      const { times, values } = line, wide = 4, until = Math.min(this.wide, this.x(line.until));
      pen.beginPath();
      for (let x = this.margin, i = begin; x < until; x += wide) {
        const from = Math.max(this.instant(x), times[begin]), to = Math.min(this.instant(x + wide), line.until);
        let sum = 0;
        while (i + 1 < end && times[i + 1] <= from) i++;
        for (let at = from; at < to; ) {
          const next = i + 1 < end ? Math.min(to, times[i + 1]) : to;
          sum += values[i] * (next - at);
          at = next;
          if (at < to) i++;
        }
        if (to > from) pen.lineTo(x + wide / 2, this.y(sum / (to - from)));
      }
      pen.strokeStyle = colour;
      pen.lineWidth = 1.2;
      pen.stroke();
    }
    columns(pen, line, colour, begin, end) { // more steps than pixels: from the least to the most in each
      const { times, values } = line, until = Math.min(this.wide, this.x(line.until));
      pen.fillStyle = colour;
      let held = values[begin];
      for (let x = this.margin, i = begin; x < until; x++) {
        let low = held, high = held;
        for (const next = this.instant(x + 1); i < end && times[i] < next; i++) { held = values[i]; if (held < low) low = held; if (held > high) high = held; }
        const top = this.y(high), bottom = this.y(low);
        pen.fillRect(x, top - 0.6, 1, bottom - top + 1.2);
        if (line.area) { pen.globalAlpha = 0.22; pen.fillRect(x, bottom, 1, this.plot - bottom); pen.globalAlpha = 1; }
      }
    }
    names(pen) {
      for (let k = 0, last = Infinity; k * this.step <= this.top; k++) {
        const y = Math.min(Math.max(6, this.y(k * this.step)), this.plot - 5);
        if (last - y >= 12) { pen.fillText(compact.format(k * this.step), this.margin - 6, y); last = y; }
      }
    }
    mark() {
      super.mark();
      const at = Chart.cursor;
      this.values.forEach((value, i) => { value.textContent = at === null ? "" : number(this.at(this.lines[i], at)); });
    }
    under(x) { return clock(this.instant(x)) + this.lines.map((line) => `\n${visible(line.label).slice(0, 80)}: ${number(this.at(line, this.instant(x)))}`).join(""); }
  }
  function behind(holder, title, heads, count, row) {
    const box = el("details", {}, el("summary", { text: "as a table" }));
    box.addEventListener("toggle", () => {
      if (!box.open || box.querySelector("table")) return;
      const body = el("tbody");
      for (let k = 0; k < count; k++) body.append(el("tr", {}, ...row(k).map((text, i) => el(i ? "td" : "th", i ? {} : { class: "text", scope: "row" }, name(text)))));
      box.append(el("div", { class: "behind", tabindex: "0", role: "group", "aria-label": `${visible(title)}, as a table` }, el("table", { "aria-label": visible(title) }, el("thead", {}, el("tr", {}, ...heads.map((text, i) => el("th", { class: i ? "" : "text", scope: "col" }, name(text))))), body)));
    });
    holder.append(box);
  }

  // ---------------------------------------------------------------- the table, and what is picked
  const table = head.table && { ...head.table, columns: head.table.columns.map(read) };
  const column = (which) => table?.columns.find((each) => each.name === which);
  const heading = (each) => (each.kind === "bytes" ? `${each.name}, B` : each.name);
  const cell = (each, row) => (each.words ? each.words[each.values[row]] : each === key && each.kind === "number" ? String(each.values[row]) : (KINDS[each.kind] || number)(each.values[row]));
  const key = table && table.columns[0];
  const details = head.details && { row: numbers(head.details.row), columns: head.details.columns.map(read) };
  const gantts = [];
  let picked = -1, rowsOf = null;
  const panel = el("div", { class: "picked", hidden: "" }), sitePanel = el("div", { class: "picked of-map", hidden: "" });
  const aside = el("aside", { class: "details", "aria-label": "details of what was clicked", "aria-live": "polite", tabindex: "0", hidden: "" }, panel, sitePanel);
  function beside() { // the details stand beside the pictures, on a narrow window at its foot: always in view
    aside.hidden = panel.hidden && sitePanel.hidden;
    root.classList.toggle("open", !aside.hidden);
  }
  function pick(row, show) {
    picked = row;
    panel.hidden = row < 0;
    panel.replaceChildren();
    beside();
    aside.scrollTop = 0;
    if (row >= 0) {
      const facts = el("dl");
      for (const each of table.columns) {
        const text = cell(each, row);
        if (text !== "") facts.append(el("div", {}, el("dt", {}, name(heading(each))), el("dd", { title: each.words ? null : String(each.values[row]) }, name(text, 20000))));
      }
      const close = el("button", { text: "close", onclick: () => pick(-1) });
      panel.append(el("div", { class: "bar" }, el("h2", {}, `${table.one} `, name(cell(key, row))), close), facts);
      if (details) {
        const from = lowerBound(details.row, row - 1), to = lowerBound(details.row, row);
        if (to > from) panel.append(el("h3", {}, name(head.details.title)), el("div", { class: "behind", tabindex: "0", role: "group", "aria-label": visible(head.details.title) }, el("table", { "aria-label": visible(head.details.title) }, el("thead", {}, el("tr", {}, ...details.columns.map((each) => el("th", { class: each.words ? "text" : "", scope: "col" }, name(each.name))))), el("tbody", {}, ...Array.from({ length: to - from }, (_, k) => el("tr", {}, ...details.columns.map((each) => el("td", { class: each.words ? "text" : "" }, name(cell(each, from + k), 200)))))))));
      }
      const why = head.explained?.[row];
      if (why) panel.append(el("pre", { text: why }));
    }
    if (show === "table") rowsOf?.reveal(row);
    if (show === "chart") for (const gantt of gantts) gantt.reveal(row);
    rowsOf?.paint();
    markAll();
  }
  class Rows {
    constructor(parent) {
      this.count = key.values.length;
      this.order = null;
      this.by = null;
      this.tall = 27;
      const search = this.input = el("input", { type: "search", placeholder: `search ${table.many}`, "aria-label": `search ${table.many}` });
      let timer = 0;
      search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => this.search(search.value), 120); });
      this.note = el("span", { class: "said", role: "status" });
      parent.append(el("div", { class: "bar" }, el("h2", { text: table.title }), this.note, search));
      this.heads = table.columns.map((each, i) => el("th", { class: each.words ? "text" : "", scope: "col", "aria-sort": "none" }, el("button", { text: heading(each), onclick: () => this.sort(i) })));
      this.body = el("tbody");
      this.above = el("tr", { "aria-hidden": "true" }, el("td", { colspan: this.heads.length, style: "padding:0;border:0" }));
      this.below = this.above.cloneNode(true);
      this.table = el("table", { "aria-rowcount": this.count + 1, "aria-label": table.title }, el("thead", {}, el("tr", {}, ...this.heads)), this.body);
      this.box = el("div", { class: "rows", tabindex: "0", style: `--tall:${46 + 27 * this.count}px`, role: "group", "aria-label": `rows of ${table.title}; arrow keys go from row to row` }, this.table);
      this.box.addEventListener("scroll", () => this.paint());
      this.box.addEventListener("keydown", (event) => {
        const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 }[event.key];
        if (by) { event.preventDefault(); this.step(by); }
        if (event.key === "Enter" && picked >= 0) pick(picked, "chart");
      });
      parent.append(this.box);
      this.search("");
    }
    at(place) { return this.order ? this.order[place] : place; }
    get total() { return this.order ? this.order.length : this.count; }
    find(text) { this.input.value = text; this.search(text); }
    search(text) {
      this.text = text.trim().toLowerCase();
      this.select();
    }
    select() {
      const wanted = this.text;
      let kept = null;
      if (wanted) {
        const found = [];
        const parts = table.columns.filter((each) => each.words).map((each) => [each.values, new Uint8Array(each.words.map((word) => (word.toLowerCase().includes(wanted) ? 1 : 0)))]);
        const plain = table.columns.filter((each) => each.search && !each.words).map((each) => each.values);
        const asNumber = Number(wanted);
        for (let row = 0; row < this.count; row++) {
          if (parts.some(([values, is]) => is[values[row]]) || plain.some((values) => values[row] === asNumber)) found.push(row);
        }
        kept = found;
      }
      if (this.by) {
        const [i, sign] = this.by, each = table.columns[i], values = each.values;
        const rank = each.words ? ((sorted) => { const of = []; sorted.forEach((word, k) => { of[each.words.indexOf(word)] = k; }); return of; })([...each.words].sort()) : null;
        kept = kept || Array.from({ length: this.count }, (_, row) => row);
        const worth = rank ? (row) => rank[values[row]] : (row) => (Number.isNaN(values[row]) ? Infinity * sign : values[row]);
        kept.sort((a, b) => { const x = worth(a), y = worth(b); return x === y ? a - b : x < y ? -sign : sign; });
      }
      this.order = kept;
      this.note.textContent = `${number(this.total)} of ${number(this.count)}`;
      this.box.scrollTop = 0;
      this.paint();
    }
    sort(i) {
      this.by = this.by?.[0] !== i ? [i, 1] : this.by[1] === 1 ? [i, -1] : null;
      this.heads.forEach((each, k) => each.setAttribute("aria-sort", this.by?.[0] === k ? (this.by[1] === 1 ? "ascending" : "descending") : "none"));
      this.select();
    }
    get scale() { return Math.max(1, (this.total * this.tall) / 8e6); } // browsers limit how tall an element is
    paint() {
      const shown = Math.ceil((this.box.clientHeight || 480) / this.tall) + 2;
      const begin = Math.max(0, Math.min(this.total - shown + 2, Math.floor((this.box.scrollTop * this.scale) / this.tall)));
      const end = Math.min(this.total, begin + shown), rows = [];
      for (let place = begin; place < end; place++) {
        const row = this.at(place);
        rows.push(el("tr", { "aria-rowindex": place + 2, "aria-selected": row === picked, "data-row": row, onclick: () => pick(row, "chart") }, ...table.columns.map((each) => el("td", { class: each.words ? "text" : "" }, name(cell(each, row), 60)))));
      }
      const all = (this.total * this.tall) / this.scale, before = Math.min(this.box.scrollTop, all - (end - begin) * this.tall);
      this.above.firstChild.style.height = `${Math.max(0, before)}px`;
      this.below.firstChild.style.height = `${Math.max(0, all - before - (end - begin) * this.tall)}px`;
      this.body.replaceChildren(this.above, ...rows, this.below);
    }
    step(by) {
      const place = picked < 0 ? 0 : Math.max(0, Math.min(this.total - 1, (this.order ? this.order.indexOf(picked) : picked) + by));
      if (this.total) { pick(this.at(place)); this.reveal(this.at(place)); }
    }
    reveal(row) {
      const place = this.order ? this.order.indexOf(row) : row;
      if (place >= 0) this.box.scrollTop = Math.max(0, ((place - 4) * this.tall) / this.scale);
      this.paint();
    }
  }

  // ---------------------------------------------------------------- rectangles: executions on rows over time
  const BLOCK = 256, EXACT = 20000;
  class Gantt extends Chart {
    constructor(parent, panel, axis, first = 0, group = []) {
      const tall = panel.labels ? Math.max(56, Math.min(1040, panel.labels.length * (panel.labels.length > 40 ? 13 : 20))) : Math.max(150, Math.min(380, (innerHeight || 760) * 0.48));
      super(parent, panel.title, Math.round(panel.shown > 1 ? Math.min(tall, 230) : tall), axis);
      this.panel = panel;
      this.quantity = panel.axis;
      this.group = group;
      group.push(this);
      const low = numbers(panel.low), high = numbers(panel.high), row = numbers(panel.row);
      const begun = numbers(panel.start) || Float64Array.from(row, (i) => column("start").values[i]);
      const ended = numbers(panel.end) || Float64Array.from(row, (i) => (Number.isNaN(column("end").values[i]) ? span[1] : column("end").values[i]));
      this.all = { low, high, row, start: begun, end: ended, place: numbers(panel.place), kind: numbers(panel.kind) };
      const choices = panel.kinds ? [] : ["wait", ...table.columns.filter((each) => each.words ? each.words.length < 4000 : each.name === "processors" || each.name === "run").filter((each) => each !== key).map((each) => each.name)].filter((each, i, list) => (column(each) || (each === "wait" && panel.places?.[0].colour)) && list.indexOf(each) === i);
      const select = (label, values, choose) => {
        const box = el("select", { "aria-label": label, onchange: () => choose(box.selectedIndex) }, ...values.map((text) => el("option", { text: visible(text).slice(0, 60) })));
        return el("label", { class: "said" }, label, " ", box);
      };
      const bar = el("div", { class: "bar" }), leader = group[0] === this;
      if (leader) bar.append(el("h2", {}, name(panel.title, 300)));
      if (panel.places && panel.places.length > 1) this.chooser = select(panel.choice, panel.places.map((each) => each.name), (i) => this.choose(i));
      if (this.chooser) bar.append(this.chooser);
      if (leader && choices.length > 1) bar.append(select("colour", choices, (i) => { for (const each of group) each.colour(choices[i]); }));
      if (leader) for (const [sign, text, act] of [["+", "zoom in", () => zoom(0.5)], ["−", "zoom out", () => zoom(2)], ["whole run", "show the whole run", () => { for (const each of gantts) each.untall(); look(...span); }]]) bar.append(el("button", { text: sign, "aria-label": text, onclick: act }));
      this.holder.prepend(bar);
      gantts.push(this);
      this.colours = choices[0];
      this.inked = ink("paper");
      this.choose(first);
      if (this.chooser) this.chooser.querySelector("select").selectedIndex = first;
      behind(this.holder, panel.title, [key.name, "start", "end", "rows"], Math.min(200, this.row.length), (k) => [this.row[k] < 0 ? panel.others || "–" : cell(key, this.row[k]), clock(this.start[k]), clock(this.end[k]), `${this.low[k]}–${this.high[k]}`]);
    }
    dress() { this.colour(this.colours); }
    choose(which) {
      const { all, panel } = this, place = panel.places?.[which]; // all rectangles stand by place, then by start
      this.rows = Math.max(1, place ? place.rows : panel.rows);
      this.labels = place?.labels || panel.labels || null;
      this.bounds = [0, this.rows];
      const kept = all.place ? [lowerBound(all.place, which - 1), lowerBound(all.place, which)] : [0, all.row.length];
      for (const each of ["low", "high", "row", "start", "end", "kind"]) this[each] = all[each] && all[each].subarray(...kept);
      this.which = which;
      this.canvas.setAttribute("aria-label", visible(place ? `${panel.title}: ${place.name}` : panel.title));
      this.last = [];
      for (let b = 0; b * BLOCK < this.row.length; b++) {
        let most = -Infinity;
        for (let i = b * BLOCK; i < Math.min(this.row.length, (b + 1) * BLOCK); i++) if (this.end[i] > most) most = this.end[i];
        this.last.push(most);
      }
      this.colour(this.colours);
    }
    colour(which) { // a legend stands above each schedule: colours of the theme by name, with what they mean
      this.colours = which;
      const { panel, row } = this, own = which === "wait" && panel.places?.[this.which].colour, count = row.length;
      const of = panel.kinds ? null : column(own || which), rest = COLOURS.length - 1;
      let names = [], legend = [];
      this.hollow = [];
      this.shadeOf = new Uint8Array(count);
      if (panel.kinds) {
        const there = new Set(this.kind), waits = panel.kinds.filter((each, i) => !each.colour && there.has(i));
        names = panel.kinds.map((each) => each.colour || "pale");
        this.hollow = panel.kinds.map((each) => !each.colour);
        this.shadeOf = this.kind;
        legend = panel.kinds.filter((each, i) => each.colour && there.has(i)).map((each) => [each.label, each.colour]);
        if (waits.length) legend.push([waits.map((each) => each.label).join(", "), ""]);
      } else if (!of || of.words) { // the words of most rectangles have colours of their own
        names = [...COLOURS, "grey"];
        const many = new Map();
        if (of) for (let i = 0; i < count; i++) if (row[i] >= 0) many.set(of.values[row[i]], (many.get(of.values[row[i]]) || 0) + 1);
        const most = [...many].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([code]) => code), all = most.length <= COLOURS.length ? most.length : rest;
        const place = new Map(most.slice(0, all).map((code, i) => [code, i]));
        for (let i = 0; i < count; i++) this.shadeOf[i] = row[i] < 0 ? COLOURS.length : of ? place.get(of.values[row[i]]) ?? rest : 0;
        legend = of ? most.slice(0, all).map((code, i) => [of.words[code] === "" ? "(none)" : of.words[code], COLOURS[i]]) : [[table.many, COLOURS[0]]];
        if (of && most.length > all) legend.push([`${number(most.length - all)} others`, COLOURS[rest]]);
      } else {
        const columns = own ? [...new Set(panel.places.map((each) => each.colour))].map(column) : [of]; // runs beside each other have one scale
        let most = 0;
        for (const { values } of columns) for (let i = 0; i < values.length; i++) if (values[i] > most) most = values[i];
        const level = most > 0 ? 60 / Math.log1p(most) : 0;
        for (let i = 0; i < count; i++) this.shadeOf[i] = row[i] < 0 ? 61 : Math.round(level * Math.log1p(Math.max(0, of.values[row[i]] || 0)));
        const rounded = (x) => (x < 10 ? Number(x.toPrecision(2)) : Math.round(x)), text = (share) => cell({ ...of, values: [rounded(Math.expm1(share * Math.log1p(most)))] }, 0);
        legend = SCALE.map((each, i) => [`${i ? "" : `${which} `}${text(i / 4)}`, each]).slice(0, most > 0 ? 5 : 1);
        this.palette = [...shades(SCALE, 61), rgb(ink("grey"))];
      }
      if (names.length) this.palette = names.map((each) => rgb(ink(each)));
      if (row.some((each) => each < 0) && !panel.kinds) legend.push([panel.others || "others", "grey"]);
      this.styles = this.palette.map((each) => `rgb(${each})`);
      this.letters = this.palette.map(onTop);
      this.mixed = names.length > 0;
      const step = this.labels ? Math.ceil((13 * this.labels.length) / this.plot) : 1;
      const help = `drag to move, wheel to zoom, with shift by rows, double click for all${step > 1 ? `; not all ${number(this.labels.length)} rows fit: every ${step}${["", "", "nd", "rd"][step] || "th"} is named until you zoom by rows` : ""}`;
      const said = panel.shown > 1 && this.group.length > 1 ? [] : [el("span", { class: "help", text: help })];
      this.said.replaceChildren(...legend.map(([label, colour]) => el("span", { class: "key" }, swatch(colour), name(label, 80))), ...said);
      later();
    }
    // named rows stand from the top down, numbered ones from the bottom up, as in the plots
    y(row) { return ((this.labels ? row - this.bounds[0] : this.bounds[1] - row) / (this.bounds[1] - this.bounds[0])) * this.plot; }
    rowAt(y) { const rows = (y / this.plot) * (this.bounds[1] - this.bounds[0]); return this.labels ? this.bounds[0] + rows : this.bounds[1] - rows; }
    top(i) { return this.y(this.labels ? this.low[i] : this.high[i]); }
    bottom(i) { return this.y(this.labels ? this.high[i] : this.low[i]); }
    *blocks() {
      const end = lowerBound(this.start, view.to);
      for (let b = 0; b * BLOCK < end; b++) if (this.last[b] >= view.from) yield [b * BLOCK, Math.min(end, (b + 1) * BLOCK)];
    }
    paint(pen) {
      let seen = 0;
      for (const [from, to] of this.blocks()) seen += to - from;
      this.exact = seen <= EXACT;
      if (this.exact) this.boxes(pen); else this.picture(pen);
    }
    boxes(pen) { // neighbours are parted by a line of the ground
      const { start, end, low, high, shadeOf, styles, hollow } = this, [r0, r1] = this.bounds, named = [];
      pen.lineWidth = 1;
      pen.strokeStyle = ink("grey");
      let style = -1;
      for (const [from, to] of this.blocks()) for (let i = from; i < to; i++) {
        if (end[i] < view.from || low[i] >= r1 || high[i] <= r0) continue;
        const x = Math.max(this.x(start[i]), this.margin - 2), y = this.top(i);
        const wide = Math.min(this.x(end[i]), this.wide) - x, tall = this.bottom(i) - y;
        const w = Math.max(wide - (wide > 3 ? 1 : 0), 0.4), h = Math.max(tall - (tall > 2 ? 1 : 0), 0.5);
        if (hollow[shadeOf[i]]) pen.strokeRect(x + 0.5, y + 0.5, Math.max(w - 1, 0.1), h - 1);
        else {
          if (shadeOf[i] !== style) { style = shadeOf[i]; pen.fillStyle = styles[style]; }
          pen.fillRect(x, y, w, h);
        }
        if (tall > 11 && wide > 14 && this.row[i] >= 0 && !hollow[shadeOf[i]] && named.length < 600) named.push(i);
      }
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      for (const i of named) {
        const a = Math.max(this.x(start[i]), this.margin), b = Math.min(this.x(end[i]), this.wide - 8);
        const top = Math.max(this.top(i), 0), bottom = Math.min(this.bottom(i), this.plot), text = visible(cell(key, this.row[i])).slice(0, 40);
        if (bottom - top < 11 || text.length * 5 > b - a || pen.measureText(text).width + 6 > b - a) continue;
        pen.fillStyle = this.letters[shadeOf[i]];
        pen.fillText(text, (a + b) / 2, (top + bottom) / 2);
      }
      if (!this.row.length) { pen.fillStyle = ink("grey"); pen.fillText(`nothing ran here${this.panel.places ? `: ${visible(this.panel.places[this.which].name)}` : ""}`, this.margin + this.inner / 2, this.plot / 2); }
    }
    picture(pen) { // the share of each pixel that rectangles cover, and their mean colour, from differences at corners
      const w = Math.max(1, Math.floor(this.inner)), h = Math.max(1, Math.min(Math.floor(this.plot), this.rows * 4)), [r0, r1] = this.bounds;
      const line = w + 2, planes = this.mixed ? 4 : 2;
      const sums = Array.from({ length: planes }, () => new Float32Array(line * (h + 1)));
      const perX = w / (view.to - view.from), perY = h / this.plot, { start, end, low, high, shadeOf, palette } = this;
      for (const [from, to] of this.blocks()) for (let i = from; i < to; i++) {
        const a = (start[i] - view.from) * perX, b = (end[i] - view.from) * perX;
        if (b < 0 || b <= a) continue;
        const x0 = a < 0 ? 0 : a, x1 = b > w ? w : b, i0 = x0 | 0, i1 = x1 | 0, f0 = x0 - i0, f1 = x1 - i1;
        let y0 = Math.round(this.top(i) * perY), y1 = Math.round(this.bottom(i) * perY);
        if (y1 <= y0) y1 = y0 + 1;
        if (y0 >= h || y1 <= 0) continue;
        if (y0 < 0) y0 = 0;
        if (y1 > h) y1 = h;
        const top = y0 * line, bottom = y1 * line;
        if (planes === 2) { // the hot path of a long run
          const v = shadeOf[i], [s, t] = sums;
          if (i0 === i1) {
            const f = f1 - f0;
            s[top + i0] += f; s[top + i0 + 1] -= f; s[bottom + i0] -= f; s[bottom + i0 + 1] += f;
            t[top + i0] += v * f; t[top + i0 + 1] -= v * f; t[bottom + i0] -= v * f; t[bottom + i0 + 1] += v * f;
            continue;
          }
        }
        for (let k = 0; k < planes; k++) {
          const v = k === 0 ? 1 : planes === 2 ? shadeOf[i] : palette[shadeOf[i]][k - 1], s = sums[k];
          s[top + i0] += v * (1 - f0); s[top + i0 + 1] += v * f0; s[top + i1] -= v * (1 - f1); s[top + i1 + 1] -= v * f1;
          s[bottom + i0] -= v * (1 - f0); s[bottom + i0 + 1] -= v * f0; s[bottom + i1] += v * (1 - f1); s[bottom + i1 + 1] += v * f1;
        }
      }
      const image = new ImageData(w, h), out = image.data, above = Array.from({ length: planes }, () => new Float32Array(line));
      for (let y = 0; y < h; y++) {
        const along = new Float64Array(planes);
        for (let x = 0; x < w; x++) {
          for (let k = 0; k < planes; k++) { above[k][x] += sums[k][y * line + x]; along[k] += above[k][x]; }
          const cover = along[0], at = (y * w + x) * 4;
          if (cover < 1e-3) continue;
          const mean = planes === 2 ? palette[Math.max(0, Math.min(palette.length - 1, Math.round(along[1] / cover)))] : [along[1] / cover, along[2] / cover, along[3] / cover];
          out[at] = mean[0]; out[at + 1] = mean[1]; out[at + 2] = mean[2];
          out[at + 3] = 255 * Math.min(1, cover);
        }
      }
      if (!this.sheet || this.sheet.width !== w || this.sheet.height !== h) { this.sheet = document.createElement("canvas"); [this.sheet.width, this.sheet.height] = [w, h]; }
      this.sheet.getContext("2d").putImageData(image, 0, 0);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(this.sheet, this.margin, 0, this.inner, this.plot);
    }
    names(pen) {
      const [r0, r1] = this.bounds;
      if (this.labels) {
        let last = -Infinity; // a label stands at its own row, and is left out where it would touch the one above
        for (const [low, high, text] of this.labels) {
          const y = this.y((Math.max(low, r0) + Math.min(high, r1)) / 2);
          if (high > r0 && low < r1 && y - last >= 12) { this.label(pen, text, y); last = y; }
        }
      } else {
        const power = 10 ** Math.floor(Math.log10((r1 - r0) / 4 || 1)), nice = Math.max(1, [1, 2, 5, 10].map((each) => each * power).find((each) => each >= (r1 - r0) / 6));
        for (let row = Math.ceil(r0 / nice) * nice; row <= r1; row += nice) pen.fillText(number(row), this.margin - 6, Math.min(Math.max(this.y(row), 6), this.plot - 5));
      }
    }
    find(x, y) {
      if (x < this.margin) return -1;
      const at = this.instant(x), row = this.rowAt(y), slack = (1.5 / this.inner) * (view.to - view.from);
      let best = -1;
      for (const [from, to] of this.blocks()) for (let i = from; i < to; i++) {
        if (this.low[i] <= row && row < this.high[i] && this.start[i] - slack <= at && at <= this.end[i] + slack && (best < 0 || this.end[i] - this.start[i] < this.end[best] - this.start[best])) best = i;
      }
      return best;
    }
    under(x, y) {
      const i = this.find(x, y);
      if (i < 0) return clock(this.instant(x));
      const kind = this.panel.kinds ? `\n${this.panel.kinds[this.kind[i]].label}` : "";
      const lines = [`${clock(this.start[i])} to ${clock(this.end[i])} (${duration(this.end[i] - this.start[i])})${kind}`];
      if (this.row[i] >= 0) {
        lines.unshift(`${table.one} ${visible(cell(key, this.row[i])).slice(0, 80)}`);
        for (const each of ["processors", "wait", "user", "status"]) if (column(each)) lines.push(`${each}: ${visible(cell(column(each), this.row[i])).slice(0, 80)}`);
      } else lines.unshift(this.panel.others || "");
      return lines.join("\n");
    }
    click(x, y) {
      const i = this.find(x, y);
      if (i < 0 || this.row[i] < 0) return;
      pick(this.row[i], "table");
      if (innerWidth <= 900) this.holder.scrollIntoView({ block: "nearest" }); // above the details
    }
    reveal(row) {
      if (row < 0) return;
      let i = this.row.indexOf(row);
      if (i < 0 && this.all.place) {
        const { places } = this.panel, here = places[this.which].run;
        const there = this.all.row.findIndex((each, k) => each === row && places[this.all.place[k]].run === here);
        if (there < 0) return;
        this.choose(this.all.place[there]);
        this.chooser.querySelector("select").selectedIndex = this.which;
        i = this.row.indexOf(row);
      }
      if (i < 0) return;
      const wide = Math.max((this.end[i] - this.start[i]) * 4, (span[1] - span[0]) / 500), middle = (this.start[i] + this.end[i]) / 2;
      if (this.start[i] < view.from || this.end[i] > view.to || this.x(this.end[i]) - this.x(this.start[i]) < 8) look(middle - wide / 2, middle + wide / 2);
    }
    highlight(pen) {
      if (picked < 0) return;
      pen.save();
      pen.beginPath();
      pen.rect(this.margin, 0, this.inner, this.plot); // never over the names of an axis
      pen.clip();
      for (const [colour, wide] of [["paper", 5], ["mark", 2.5]]) {
        pen.strokeStyle = ink(colour);
        pen.lineWidth = wide;
        for (const [from, to] of this.blocks()) for (let i = from; i < to; i++) if (this.row[i] === picked) {
          const x = Math.max(this.x(this.start[i]), this.margin - 9), y = Math.max(this.top(i), -9);
          pen.strokeRect(x, y, Math.max(3, Math.min(this.x(this.end[i]), this.wide + 9) - x - 1), Math.max(3, Math.min(this.bottom(i), this.plot + 9) - y - 1));
        }
      }
      pen.restore();
    }
    tallZoom(factor, y) {
      const at = this.rowAt(y), [r0, r1] = this.bounds, tall = Math.min(this.rows, Math.max(1, (r1 - r0) * factor));
      const from = Math.min(Math.max(0, at - ((at - r0) * tall) / (r1 - r0)), this.rows - tall);
      this.bounds = [from, from + tall];
      later();
    }
    untall() { this.bounds = [0, this.rows]; later(); }
  }

  // ---------------------------------------------------------------- shares of many rows over time, as shades
  class Heat extends Chart {
    constructor(parent, panel) {
      super(parent, panel.title, Math.max(60, Math.min(1040, panel.names.length * (panel.names.length > 40 ? 13 : 15))), true);
      this.panel = panel;
      this.quantity = panel.rows;
      this.values = numbers(panel.values);
      this.bins = panel.bins;
      this.sheet = document.createElement("canvas");
      [this.sheet.width, this.sheet.height] = [this.bins, panel.names.length];
      this.said.append(el("span", {}, name(panel.title, 300)), ...["panel", ...SCALE].map((each, i) => el("span", { class: "key" }, swatch(each), `${20 * i} %`)));
      behind(this.holder, panel.title, [panel.rows, "mean, %", "most, %"], panel.names.length, (k) => {
        const own = this.values.subarray(k * this.bins, (k + 1) * this.bins);
        return [panel.names[k], number(Number((own.reduce((a, b) => a + b, 0) / own.length / 2.55).toFixed(1))), number(Number((own.reduce((a, b) => Math.max(a, b), 0) / 2.55).toFixed(1)))];
      });
    }
    dress() {
      const image = new ImageData(this.bins, this.panel.names.length), colours = shades(["panel", ...SCALE], 256);
      for (let i = 0; i < this.values.length; i++) image.data.set([...colours[this.values[i]], 255], i * 4);
      this.sheet.getContext("2d").putImageData(image, 0, 0);
    }
    paint(pen) {
      pen.imageSmoothingEnabled = false;
      const a = this.x(span[0]), b = this.x(span[1]);
      pen.drawImage(this.sheet, a, 0, b - a, this.plot);
    }
    row(y) { return Math.min(this.panel.names.length - 1, Math.max(0, Math.floor((y / this.plot) * this.panel.names.length))); }
    names(pen) {
      const count = this.panel.names.length, step = Math.ceil(count / Math.floor(this.plot / 13));
      for (let k = 0; k < count; k += Math.max(1, step)) this.label(pen, this.panel.names[k], ((k + 0.5) / count) * this.plot);
    }
    under(x, y) {
      const k = this.row(y), bin = Math.floor(((this.instant(x) - span[0]) / (span[1] - span[0])) * this.bins);
      return `${visible(this.panel.names[k]).slice(0, 80)}\n${clock(this.instant(x))}: ${number(Number((this.values[k * this.bins + Math.min(this.bins - 1, Math.max(0, bin))] / 2.55).toFixed(1)))} %`;
    }
    click(x, y) { openSite(this.panel.names[this.row(y)]); }
    mean(k) { return meanInView(this.values, k, this.bins); }
  }

  // ---------------------------------------------------------------- a site opened: its schedule, its hosts, its queue at the instant pointed at
  const percent = (share) => `${number(Number((100 * share).toPrecision(3)))} %`;
  function meanInView(values, row, bins) { // of 0 to 255 in equal intervals, as a share
    const bin = (at) => ((at - span[0]) / (span[1] - span[0])) * bins, from = bin(view.from), to = Math.max(bin(view.to), bin(view.from) + 1e-9);
    let sum = 0;
    for (let k = Math.floor(from); k < Math.min(bins, to); k++) sum += values[row * bins + k] * (Math.min(k + 1, to) - Math.max(k, from));
    return sum / (to - from) / 255;
  }
  function openSite(wanted) {
    for (const gantt of gantts) {
      const which = (gantt.panel.places || []).findIndex((each) => each.name === wanted);
      if (which >= 0) { gantt.choose(which); gantt.chooser.querySelector("select").selectedIndex = which; }
    }
    const sites = column("site"), map = maps[0], place = map?.panel.places.find((each) => each[0] === wanted && each[3]);
    if (!sites || !place) return gantts[0]?.holder.scrollIntoView({ block: "nearest" });
    opened = new Site(sitePanel, wanted, place, sites);
    map.choose(wanted);
  }
  function closeSite() { opened = null; sitePanel.hidden = true; beside(); maps[0].choose(null); }
  class Site {
    constructor(box, wanted, place, sites) {
      const code = sites.words.indexOf(wanted);
      this.rows = [];
      for (let row = 0; row < sites.values.length; row++) if (sites.values[row] === code) this.rows.push(row);
      this.at = (view.from + view.to) / 2;
      this.facts = el("dl");
      this.lists = el("div");
      const links = maps[0].panel.links.filter((each) => [each[1], each[2]].some((k) => maps[0].panel.places[k] === place));
      this.fixed = [["cores", number(place[3])], ...(place[4] ? [["hosts", number(place[4])]] : []), ["jobs sent here", number(this.rows.length)], ...(links.length ? [["links", links.map((each) => visible(each[0])).join(", ")]] : [])];
      const close = el("button", { text: "close", onclick: closeSite });
      box.replaceChildren(el("div", { class: "bar" }, el("h2", {}, "site ", name(wanted)), close), this.facts, this.lists);
      box.hidden = false;
      beside();
      this.mark();
    }
    mark() {
      if (Chart.cursor !== null) this.at = Chart.cursor;
      const at = this.at, [start, end, submit, queued, cores] = ["start", "end", "submit", "queued", "processors"].map((each) => column(each).values);
      const runs = [], waits = [];
      let coming = 0, used = 0;
      for (const row of this.rows) {
        if (submit[row] > at || end[row] <= at) continue;
        if (start[row] <= at) { runs.push(row); used += cores[row]; } else if (queued[row] <= at) waits.push(row); else if (column("assigned").values[row] <= at) coming++;
      }
      const host = column("host"), on = new Map();
      if (host) for (const row of runs) on.set(cell(host, row), (on.get(cell(host, row)) || 0) + cores[row]);
      const busy = [...on].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true })).map(([text, much]) => `${visible(text)}: ${number(much)}`);
      const facts = [...this.fixed, ["at", clock(at)], ["cores in use", number(used)], ["running", number(runs.length)], ["in its queue", number(waits.length)], ["inputs on their way", number(coming)], ...(host ? [["cores in use by host", busy.join(", ") || "none"]] : [])];
      this.facts.replaceChildren(...facts.map(([label, value]) => el("div", {}, el("dt", { text: label }), el("dd", {}, name(value, 2000)))));
      const list = (label, rows) => (rows.length ? [el("p", { class: "said" }, `${label}: `, ...rows.slice(0, 12).map((row) => el("button", { onclick: () => pick(row, "chart") }, name(cell(key, row), 40))), rows.length > 12 ? ` and ${number(rows.length - 12)} more` : "")] : []);
      this.lists.replaceChildren(...list("running", runs), ...list("in its queue", waits));
    }
  }

  // ---------------------------------------------------------------- a map: sites, and the links between them by load
  class Geography {
    constructor(parent, panel) {
      this.panel = panel;
      this.values = numbers(panel.values);
      const many = panel.places.filter((each) => each[3]).length, most = Math.max(1, ...panel.places.map((each) => each[3]));
      this.size = Math.min(1, Math.sqrt(40 / many));
      this.said = el("div", { class: "said" });
      const hover = (text, open) => ({ onpointermove: (event) => say(text(), event), onpointerleave: () => say(""), onclick: open });
      const [x, y] = [(k) => 105 * panel.places[k][1], (k) => -105 * panel.places[k][2]];
      this.links = panel.links.map((link, i) => {
        const ends = { x1: x(link[1]), y1: y(link[1]), x2: x(link[2]), y2: y(link[2]) };
        const drawn = el("svg:line", ends), wide = el("svg:line", { ...ends, class: "hit", ...hover(() => this.about(i).map((each) => each.join(": ")).join("\n"), () => this.openLink(i)) });
        return { drawn, wide };
      });
      this.places = panel.places.flatMap(([text, , , cores], k) => {
        if (!cores) return [];
        const radius = this.size * (2.2 + 4 * Math.sqrt(cores / most));
        const circle = el("svg:circle", { cx: x(k), cy: y(k), r: radius, role: "button", tabindex: "0", "aria-label": `site ${visible(text).slice(0, 80)}`, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); openSite(text); } }, ...hover(() => `${visible(text).slice(0, 80)}\n${number(cores)} cores, ${percent(this.used(text))} used in view`, () => openSite(text)) });
        return [{ text, circle, radius, k }];
      });
      const ring = (k) => Math.round(50 * Math.hypot(panel.places[k][1], panel.places[k][2])) / 50, rings = new Map();
      for (const { k } of this.places) rings.set(ring(k), (rings.get(ring(k)) || 0) + 1);
      const labels = this.places.filter(({ k }) => rings.get(ring(k)) === 1 || (660 * ring(k)) / rings.get(ring(k)) > 14).map(({ text, radius, k }) => el("svg:text", { x: x(k), y: y(k) + radius + 4.4, "text-anchor": "middle", text: visible(text).length > 14 ? `${visible(text).slice(0, 13)}…` : visible(text) }));
      this.picture = el("svg:svg", { viewBox: "-122 -116 244 232", role: "group", "aria-label": panel.title, class: "map" }, ...this.links.map((each) => each.drawn), ...this.links.map((each) => each.wide), ...this.places.map((each) => each.circle), ...labels);
      this.holder = el("div", { class: "chart" }, el("div", { class: "bar" }, el("h2", {}, name(panel.title, 200))), this.said, this.picture);
      this.said.append(el("span", { text: panel.bins ? "the wider and stronger a line, the higher the load in view; the fuller a circle, the more of its cores are in use; point at them for numbers, click to open" : "the wider a line, the more bytes; point at it for numbers, click to open" }));
      behind(this.holder, panel.title, ["link", "from", "to", "moved", ...(panel.bins ? ["mean", "peak"] : [])], panel.links.length, (i) => { const [text, a, b, moved, mean, peak] = panel.links[i]; return [text, panel.places[a][0], panel.places[b][0], moved, ...(panel.bins ? [percent(mean), percent(peak)] : [])]; });
      parent.append(this.holder);
      maps.push(this);
    }
    share(i) { return this.panel.bins ? meanInView(this.values, i, this.panel.bins) : this.panel.links[i][4]; }
    used(text) { const heat = charts.find((each) => each instanceof Heat), k = heat ? heat.panel.names.indexOf(text) : -1; return k < 0 ? 0 : heat.mean(k); }
    about(i) {
      const [text, a, b, moved, mean, peak] = this.panel.links[i], ends = [a, b].map((k) => visible(this.panel.places[k][0]).slice(0, 60) || "inside").join(" – ");
      return [["link", visible(text).slice(0, 80)], ["between", ends], ["moved", moved], ...(this.panel.bins ? [["mean load", percent(mean)], ["mean in view", percent(this.share(i))], ["peak", percent(peak)]] : [])];
    }
    openLink(i) {
      opened = null;
      this.choose(i);
      const bins = this.panel.bins, own = bins ? [...this.values.subarray(i * bins, (i + 1) * bins)] : [], most = Math.max(1, ...own);
      const line = own.length ? [el("svg:svg", { viewBox: `0 0 ${bins} 30`, preserveAspectRatio: "none", role: "img", "aria-label": "its load over the whole run", style: "width:100%;height:60px" }, el("svg:polyline", { points: own.map((value, k) => `${k},${30 - (29 * value) / most} ${k + 1},${30 - (29 * value) / most}`).join(" "), fill: "none", stroke: "var(--c1)", "vector-effect": "non-scaling-stroke" })), el("p", { class: "said", text: `its load over the whole run; the highest mean of an interval is ${percent(most / 255)}` })] : [];
      sitePanel.replaceChildren(el("div", { class: "bar" }, el("h2", {}, "link ", name(this.panel.links[i][0])), el("button", { text: "close", onclick: closeSite })), el("dl", {}, ...this.about(i).slice(1).map(([label, value]) => el("div", {}, el("dt", { text: label }), el("dd", {}, name(value, 200))))), ...line);
      sitePanel.hidden = false;
      beside();
    }
    choose(which) { this.chosen = which; this.draw(); }
    draw() {
      this.links.forEach(({ drawn }, i) => {
        const share = this.share(i);
        drawn.setAttribute("style", `stroke-width:${this.size * (0.5 + 6 * Math.sqrt(share))};stroke:${this.chosen === i ? "var(--mark)" : `color-mix(in srgb, var(--s3) ${Math.round(100 * Math.sqrt(share))}%, var(--s0))`}`);
      });
      for (const { text, circle } of this.places) circle.setAttribute("style", `fill:color-mix(in srgb, var(--c0) ${Math.round(100 * this.used(text))}%, var(--paper));stroke:${this.chosen === text ? "var(--mark)" : "var(--grey)"};stroke-width:${this.chosen === text ? 1.6 : 0.5}`);
    }
  }

  // ---------------------------------------------------------------- distributions, and flows between places
  const NICE = [[0, "0 s"], [1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [21600, "6 h"], [86400, "1 d"], [604800, "1 week"], [2592000, "30 d"], [31536000, "1 year"]];
  function curve(parent, panel) { // a cumulative distribution by its steps, its table beside it
    if (!panel.curves.length) return words(parent, panel.title, panel.empty);
    const W = innerWidth < 640 ? 360 : 820, H = 250, most = Math.max(1e-12, ...panel.curves.map((each) => each.values.at(-1)));
    const x = (v) => 56 + (Math.log1p(Math.max(0, v)) / Math.log1p(most)) * (W - 72), y = (share) => 8 + (1 - share) * (H - 52);
    const picture = el("svg:svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": panel.title, class: "curve" });
    for (const k of [0, 0.25, 0.5, 0.75, 1]) picture.append(el("svg:line", { x1: 56, x2: W - 16, y1: y(k), y2: y(k), stroke: "var(--pale)" }), el("svg:text", { x: 50, y: y(k) + 4, "text-anchor": "end", text: `${100 * k} %` }));
    const text = (v) => (panel.kind === "seconds" ? duration(v) : number(Number(v.toPrecision(2))));
    const steps = panel.kind === "seconds" && head.unit === "s" ? NICE : [0, 0.25, 0.5, 0.75, 1].map((share) => { const v = Math.expm1(share * Math.log1p(most)); return [v, text(v)]; });
    let right = -Infinity; // of the last label
    for (const [v, label] of steps) {
      if (v > most || x(v) - right < 22) continue;
      picture.append(el("svg:line", { x1: x(v), x2: x(v), y1: y(1), y2: y(0) + 4, stroke: "var(--pale)" }), el("svg:text", { x: x(v), y: H - 26, "text-anchor": x(v) > W - 40 ? "end" : v ? "middle" : "start", text: label }));
      right = x(v) + 3 * label.length;
    }
    picture.append(el("svg:text", { x: (W + 40) / 2, y: H - 6, "text-anchor": "middle", text: `${panel.axis}, logarithmic` }), el("svg:text", { transform: `translate(11 ${H / 2 - 18}) rotate(-90)`, "text-anchor": "middle", text: `share of ${table ? table.many : "all"}` }));
    panel.curves.forEach((each, i) => picture.append(el("svg:path", { d: `M${x(0).toFixed(1)},${y(0).toFixed(1)}` + each.values.map((v, k) => `H${x(v).toFixed(1)}V${y(each.shares[k]).toFixed(1)}`).join("") + `H${W - 16}`, fill: "none", stroke: `var(--${COLOURS[i % COLOURS.length]})`, "stroke-width": 1.8 })));
    const rows = Array.from({ length: 11 }, (_, k) => [`${10 * k} %`, ...panel.curves.map((each) => text(each.values[each.shares.findIndex((share) => share >= k / 10 - 1e-12)]))]);
    const title = el("div", { class: "said" }, el("span", {}, name(panel.title, 200)), ...panel.curves.map((each, i) => el("span", { class: "key" }, swatch(COLOURS[i % COLOURS.length]), name(each.label))));
    parent.append(el("div", { class: "chart" }, title, el("div", { class: "beside" }, picture, el("div", { class: "behind beside-it", tabindex: "0", role: "group", "aria-label": `${visible(panel.title)}, as a table` }, asTable(panel.title, ["share", ...panel.curves.map((each) => each.label)], rows)))));
  }
  function asTable(title, heads, rows, first = rows.length) { // rows after the first ones are folded
    const body = el("tbody", {}, ...rows.map((row, k) => el("tr", k < first ? {} : { class: "more" }, ...row.map((text, i) => el(i ? "td" : "th", i ? {} : { class: "text", scope: "row" }, name(text, 200))))));
    return el("table", { "aria-label": visible(title) }, el("thead", {}, el("tr", {}, ...heads.map((text, i) => el("th", { class: i ? "" : "text", scope: "col" }, name(text))))), body);
  }
  function unfold(box) { // a button that shows the rest
    const button = el("button", { text: "more figures", "aria-expanded": "false", onclick: () => {
      const open = box.classList.toggle("unfolded");
      button.textContent = open ? "fewer figures" : "more figures";
      button.setAttribute("aria-expanded", String(open));
    } });
    return button;
  }
  function grid(parent, panel) { // a table that is short enough to be shown whole
    const box = el("div", { class: "beside-each-other", tabindex: "0", role: "group", "aria-label": visible(panel.title) }, asTable(panel.title, panel.columns, panel.rows, panel.first || panel.rows.length));
    parent.append(el("div", { class: "chart" }, el("div", { class: "bar" }, el("h2", {}, name(panel.title, 200))), box, panel.first && panel.first < panel.rows.length ? unfold(box) : ""));
  }

  // ---------------------------------------------------------------- the page
  const themes = ["auto", "light", "dark"];
  const theme = el("button", { text: `theme: ${document.documentElement.dataset.theme || "auto"}`, onclick: () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % 3];
    if (next === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = next;
    theme.textContent = `theme: ${next}`;
    later();
  } });
  const content = el("div", { class: "content" });
  root.replaceChildren(content, aside);
  root.ondblclick = () => { // the details that the first of the two clicks has opened may stand where the second one is
    if (performance.now() - (Chart.pressed?.when ?? -Infinity) > 900) return;
    Chart.pressed.chart.untall?.();
    look(...span);
  };
  root.onkeydown = (event) => { if (event.key === "Escape" && !aside.hidden) { if (!sitePanel.hidden) closeSite(); pick(-1); } };
  content.append(el("header", {}, el("div", {}, el("h1", {}, name(head.title, 400)), el("p", {}, name(head.subtitle, 400))), theme));
  const part = (title) => { const made = el("section", title ? { "aria-label": title } : {}); content.append(made); return made; };
  const facts = part("metrics");
  const tile = ([label, value]) => el("div", {}, el("dt", { text: label }), el("dd", {}, name(value, 200)));
  const five = head.tiles.map((label) => head.facts.find((each) => each[0] === label)).filter(Boolean), rest = head.facts.filter((each) => !five.includes(each));
  if (five.length) facts.append(el("dl", { class: "facts first", style: `--tiles:${five.length}` }, ...five.map(tile)));
  if (rest.length) {
    const box = el("dl", { class: "facts folded" }, ...rest.map(tile));
    facts.append(unfold(box), box);
  }
  if (head.notes.length) facts.append(el("ul", { class: "notes" }, ...head.notes.map((text) => el("li", {}, name(text, 2000)))));
  const shown = { heat: Heat, map: Geography, boxes: Gantt, lines: Lines, curve, grid };
  let place = facts, over = "metrics";
  head.panels.forEach((each, i) => {
    const kind = each.type === "curve" || each.type === "grid" ? "distributions" : "over time";
    if (kind !== over && (over !== "metrics" || kind === "over time")) place = part((over = kind));
    if (kind !== "over time") return shown[each.type](place, each);
    const nothing = each.type === "lines" ? !Math.max(0, ...each.lines.filter((line) => !line.grey).map((line) => line.most)) : each.type === "boxes" && !(each.row.count ?? each.row.length);
    if (nothing && each.empty) return words(place, each.title, each.empty);
    const group = [], several = Math.min(each.shown || 1, each.places?.length || 1), starts = (each.places || []).map((one, k) => k).filter((k, _, all) => !k || each.places[k].run !== each.places[k - 1].run);
    for (let k = 0; k < several; k++) new shown[each.type](place, each, k + 1 === several && head.panels[i + 1]?.type !== "lines", starts[k] ?? k, group);
  });
  if (table) rowsOf = new Rows(part(table.title));
  const about = head.scenario || head.origin ? part("scenario") : null;
  if (head.origin) about.append(el("p", { class: "origin", text: head.origin }));
  if (head.scenario) { about.append(el("details", {}, el("summary", { text: "the scenario, from which the run can be repeated" }), el("pre", { text: head.scenario }))); }
  content.append(el("footer", { text: head.footer }));
  if (kept.span && (kept.view[0] > kept.span[0] || kept.view[1] < kept.span[1])) look(...kept.view);
  gantts.forEach((gantt, k) => {
    const which = (gantt.panel.places || []).findIndex((each) => each.name === kept.places?.[k]);
    if (which >= 0) { gantt.choose(which); gantt.chooser.querySelector("select").selectedIndex = which; }
  });
  if (kept.search) rowsOf.find(kept.search);
  if (kept.picked !== undefined) { const row = key.words ? key.values.indexOf(key.words.indexOf(kept.picked)) : key.values.indexOf(kept.picked); if (row >= 0) pick(row); }
  drawAll();
  document.documentElement.dataset.ready = "true";
  const state = () => ({
    span, view: [view.from, view.to], search: rowsOf?.text, places: gantts.map((each) => each.panel.places?.[each.which].name),
    picked: picked < 0 ? undefined : key.words ? key.words[key.values[picked]] : key.values[picked],
  });
  window.simmodelPage = { view, look, zoom, drawAll, later, pick, head, table, gantts, charts, maps, markAll, openSite, rows: rowsOf, cell, el, name, number, clock, root, state };
}

new MutationObserver(() => window.simmodelPage?.later()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.simmodelPage?.later());
let themeOnScreen; // paper is white
addEventListener("beforeprint", () => {
  themeOnScreen = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  window.simmodelPage?.drawAll();
});
addEventListener("afterprint", () => {
  if (themeOnScreen) document.documentElement.dataset.theme = themeOnScreen; else delete document.documentElement.dataset.theme;
});
