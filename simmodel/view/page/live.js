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
  function first(now) { // until there is a whole page
    const row = ([name, used, capacity, waiting]) => make("tr", {}, make("th", { class: "text", scope: "row" }, make("bdi", { text: name.slice(0, 120) })), ...[used, capacity, waiting].map((each) => make("td", { text: each.toLocaleString("en") })));
    const heads = ["place", "cores in use", "of", "waiting"].map((text, i) => make("th", { class: i ? "" : "text", scope: "col", text }));
    document.getElementById("page").replaceChildren(make("p", { text: "The jobs follow with the whole page: when it costs little, when the run is paused or ends, or now, by the button." }), make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...now.places.map(row))));
  }
  const source = new EventSource(`${here}/events`);
  source.onmessage = (event) => {
    const now = JSON.parse(event.data);
    window.simmodelLive = now;
    over = now.over;
    said.textContent = `${now.clock}   ${now.used.toLocaleString("en")} of ${now.capacity.toLocaleString("en")} cores in use, ${now.running.toLocaleString("en")} running, ${now.waiting.toLocaleString("en")} waiting${now.ended === null ? "" : `, ${now.ended.toLocaleString("en")} ended`}${now.over ? " (the run has ended)" : now.paused ? " (paused)" : ""}`;
    pause.textContent = now.paused ? "go on" : "pause";
    places.replaceChildren(...now.places.map(([name, used, capacity, waiting]) => make("i", { title: `${name}: ${used} of ${capacity}, ${waiting} waiting`, style: `--use:${capacity ? (100 * used) / capacity : 0}%`, onclick: () => window.simmodelPage?.openSite(name) })));
    places.hidden = now.places.length < 2;
    for (const each of controls) { each.disabled = now.over; each.hidden = !now.controls; }
    if (!shown && !now.version) first(now);
    load(now.version);
    if (now.over) source.close();
  };
  source.onerror = () => { if (!over) said.textContent = "the run is gone: what is shown is its last page"; };
})();
