// The page while its run lasts: what the run is doing each second, the whole page now and then, and its controls.
"use strict";
(() => {
  const bar = document.getElementById("live"), here = location.pathname.replace(/\/$/, ""), make = simmodelElement;
  const act = (what, value) => fetch(`${here}/act`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ do: what, value }) });
  const said = make("span", { role: "status", class: "now" }), places = make("div", { class: "places" });
  const pause = make("button", { text: "pause", onclick: () => act(pause.textContent === "pause" ? "pause" : "go") });
  const step = make("button", { text: "step", onclick: () => act("step") });
  const whole = make("button", { text: "whole page now", title: "all jobs so far; the run waits while it is made", onclick: () => act("page") });
  const stop = make("button", { text: "stop", onclick: () => act("stop") });
  const speed = make("select", { "aria-label": "speed", onchange: () => act("speed", Number(speed.value) || null) },
    ...[["0", "as fast as it can"], ["1", "real time"], ["60", "a minute a second"], ["3600", "an hour a second"], ["86400", "a day a second"]].map(([value, text]) => make("option", { value, text })));
  const controls = [pause, step, speed, stop, whole];
  bar.append(make("div", { class: "bar" }, make("b", { text: "live" }), said, ...controls), places);
  let shown = 0, loading = false, over = false;
  async function load(version) {
    if (loading || version <= shown) return;
    loading = true;
    try {
      const answer = await fetch(`${here}/data`, { cache: "no-store" });
      const bytes = await simmodelUnpack(new Uint8Array(await answer.arrayBuffer()));
      const scrolled = scrollY;
      simmodelShow(bytes, window.simmodelPage?.state());
      scrollTo(0, scrolled);
      shown = Number(answer.headers.get("X-Version"));
    } finally { loading = false; }
    if (over) act("seen");
  }
  const seen = []; // the messages so far
  function curve(title, most, colour, value) { // a quantity over the instants of the messages
    const from = seen[0].now, long = seen.at(-1).now - from || 1, top = most || Math.max(1, ...seen.map(value));
    const points = seen.map((each) => `${(800 * (each.now - from)) / long},${100 - (96 * value(each)) / top}`).join(" ");
    const line = make("svg:polyline", { points, fill: "none", stroke: `var(--${colour})`, "stroke-width": 1.6, "vector-effect": "non-scaling-stroke" });
    const area = make("svg:polygon", { points: `0,100 ${points} ${seen.length > 1 ? 800 : 0},100`, fill: `var(--${colour})`, opacity: 0.22 });
    const picture = make("svg:svg", { viewBox: "0 0 800 100", preserveAspectRatio: "none", role: "img", "aria-label": title, style: "width:100%;height:110px;background:var(--panel)" }, area, line);
    const text = `${title}, from ${seen[0].clock} to ${seen.at(-1).clock}: now ${value(seen.at(-1)).toLocaleString("en")}, top of the picture ${top.toLocaleString("en")}`;
    return make("div", { class: "chart" }, make("div", { class: "said", text }), picture);
  }
  function first(now) { // until there is a whole page
    const queued = now.places.some((each) => each[3] !== null); // else work waits for the system, for no place of it
    const row = ([name, ...values]) => make("tr", {}, make("th", { class: "text", scope: "row" }, make("bdi", { text: name.slice(0, 120) })), ...values.slice(0, queued ? 3 : 2).map((each) => make("td", { text: each === null ? "" : each.toLocaleString("en") })));
    const heads = ["place", "cores in use", "of", ...(queued ? ["waiting"] : [])].map((text, i) => make("th", { class: i ? "" : "text", scope: "col", text }));
    seen.push(now);
    if (seen.length > 2000) for (let i = 1; i < seen.length - 1; i++) seen.splice(i, 1); // every other one
    document.getElementById("page").replaceChildren(curve("cores in use", now.capacity, "c0", (each) => each.used), curve("jobs that wait", 0, "c1", (each) => each.waiting), make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...now.places.map(row))), make("p", { text: "The jobs follow with the whole page: when it costs little, when the run is paused or ends, or now, by the button." }));
  }
  const source = new EventSource(`${here}/events`);
  source.onmessage = (event) => {
    const now = JSON.parse(event.data);
    window.simmodelLive = now;
    over = now.over;
    said.textContent = `${now.clock}   ${now.used.toLocaleString("en")} of ${now.capacity.toLocaleString("en")} cores in use, ${now.running.toLocaleString("en")} running, ${now.waiting.toLocaleString("en")} waiting${now.ended === null ? "" : `, ${now.ended.toLocaleString("en")} ended`}${now.over ? " (the run has ended)" : now.paused ? " (paused)" : ""}`;
    pause.textContent = now.paused ? "go on" : "pause";
    places.replaceChildren(...now.places.map(([name, used, capacity, waiting]) => make("i", { title: `${name}: ${used} of ${capacity}${waiting === null ? "" : `, ${waiting} waiting`}`, style: `--use:${capacity ? (100 * used) / capacity : 0}%`, onclick: () => window.simmodelPage?.openSite(name) })));
    places.hidden = now.places.length < 2;
    for (const each of controls) { each.disabled = now.over; each.hidden = !now.controls; }
    if (!shown && !now.version) first(now);
    load(now.version);
    if (now.over) source.close();
  };
  source.onerror = () => { if (!over) said.textContent = "the run is gone: what is shown is its last page"; };
})();
