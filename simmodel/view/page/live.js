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
  const title = document.title, sign = make("b", { text: "live" });
  bar.append(make("div", { class: "bar" }, sign, said, ...controls), places);
  let shown = 0, loading = false, over = false, held = false;
  addEventListener("pointerdown", () => { held = true; });
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { held = false; });
  const inUse = () => held || document.activeElement?.matches("#page select, #page input"); // nothing is redrawn under a hand
  async function load(version) {
    if (loading || version <= shown) return;
    loading = true;
    try {
      const answer = await fetch(`${here}/data`, { cache: "no-store" });
      const bytes = await simmodelUnpack(new Uint8Array(await answer.arrayBuffer()));
      const scrolled = scrollY;
      simmodelShow(bytes, shown ? window.simmodelPage?.state() : {});
      scrollTo(0, scrolled);
      shown = Number(answer.headers.get("X-Version"));
    } finally { loading = false; }
    if (over) act("seen");
  }
  const seen = []; // instants of the messages so far
  const runs = new Map(), taken = new Map(); // executions that messages named, and until when each row of a place is taken
  function look(now) {
    const there = new Set(now.runs.map(([id, , , start]) => `${id} ${start}`)), ends = new Map(now.done.map(([id, , , start, end]) => [`${id} ${start}`, end]));
    for (const [which, each] of runs) {
      if (there.has(which)) each.last = now.now;
      else if (each.running) {
        each.running = false;
        each.last = ends.get(which) ?? each.last;
        for (const row of each.rows) taken.get(each.place)[row] = each.last;
      }
    }
    for (const [id, place, processors, start, end] of [...now.done, ...now.runs].sort((a, b) => a[3] - b[3])) if (!runs.has(`${id} ${start}`)) {
      if (!taken.has(place)) taken.set(place, new Float64Array(Math.max(1, now.places.find((each) => each[0] === place)?.[2] || processors)).fill(-Infinity));
      const until = taken.get(place), rows = [];
      for (let row = 0; row < until.length && rows.length < processors; row++) if (until[row] <= start) rows.push(row);
      for (const row of rows) until[row] = end ?? Infinity;
      runs.set(`${id} ${start}`, { id, place, processors, start, rows, last: end ?? now.now, running: end === undefined });
    }
    if (runs.size > 6000) { // the smaller half leaves
      const area = ([, each]) => (each.running ? Infinity : each.processors * (each.last - each.start));
      for (const [which] of [...runs].sort((a, b) => area(a) - area(b)).slice(0, 3000)) runs.delete(which);
    }
  }
  let last = null, timer = 0;
  function first(now) { // until there is a whole page: what the messages said, drawn as its pictures are
    last = now;
    for (const [at, used, waiting] of now.curve) if (!seen.length || at > seen.at(-1).now) seen.push({ now: at, used, waiting });
    seen.push({ now: now.now, used: now.used, waiting: now.waiting });
    if (seen.length > 4000) for (let i = 1; i < seen.length - 1; i++) seen.splice(i, 1); // every other one
    look(now);
    timer ||= setTimeout(() => { timer = 0; if (!shown && !inUse()) draw(last); }, seen.length > 2 ? 600 : 0);
  }
  function draw(now) {
    const names = now.places.map(([name]) => name), jobs = [...runs.values()], boxes = [];
    jobs.forEach((each, row) => each.rows.forEach((at, k) => { // rows beside each other are one rectangle
      if (k && each.rows[k - 1] === at - 1) boxes.at(-1).high = at + 1;
      else boxes.push({ row, low: at, high: at + 1, start: each.start, end: each.running ? now.now : each.last, place: Math.max(0, names.indexOf(each.place)) });
    }));
    boxes.sort((a, b) => a.place - b.place || a.start - b.start);
    const of = (which) => Float64Array.from(boxes, (each) => each[which]);
    const word = (name, values) => { const words = [...new Set(values)]; return { name, words, data: Int32Array.from(values, (value) => words.indexOf(value)) }; };
    const line = (label, value) => ({ label, times: Float64Array.from(seen, (each) => each.now), values: Float64Array.from(seen, value), until: now.now, most: Math.max(...seen.map(value)), area: true });
    const queued = now.places.some((each) => each[3] !== null), several = names.length > 1; // else work waits for the system, for no place of it
    const count = (x) => (x === null ? "" : x.toLocaleString("en"));
    const scrolled = scrollY;
    simmodelShow({
      title, subtitle: "while it runs: the largest executions of each second; the whole page, with all of them, follows when it costs little, when the run is paused or ends, or now, by the button",
      span: [now.begun, now.now], unit: "s", since: "the start", tiles: ["cores in use", "running", "waiting", "ended"], notes: [], scenario: "", origin: "", explained: {}, footer: "",
      facts: [["cores in use", `${count(now.used)} of ${count(now.capacity)}`], ["running", count(now.running)], ["waiting", count(now.waiting)], ["ended", count(now.ended)]],
      panels: [
        { type: "boxes", title: "the largest executions", row: Int32Array.from(of("row")), low: of("low"), high: of("high"), rows: Math.max(1, ...now.places.map((each) => each[2])), start: of("start"), end: of("end"), place: several ? of("place") : null, places: several ? now.places.map(([name, , size]) => ({ name, rows: size, colour: "", run: 0 })) : null, choice: "place", shown: 1, axis: "core", others: "", empty: "nothing runs yet" },
        { type: "lines", title: "cores in use", lines: [line("in use", (each) => each.used)], shift: 0, axis: "cores", empty: "no core is in use yet", top: now.capacity },
        { type: "lines", title: "waiting", lines: [line("waiting", (each) => each.waiting)], shift: 1, axis: "jobs", empty: "nothing has waited yet" },
        { type: "grid", title: "places", columns: ["place", "cores in use", "of", ...(queued ? ["waiting"] : [])], rows: now.places.map(([name, ...values]) => [name, ...values.slice(0, queued ? 3 : 2).map(count)]), first: 0 },
      ],
      table: { title: "the largest executions", one: "job", many: "the largest executions", columns: [word("job", jobs.map((each) => String(each.id))), { name: "start", kind: "instant", data: Float64Array.from(jobs, (each) => each.start) }, { name: "processors", kind: "number", data: Float64Array.from(jobs, (each) => each.processors) }, word("place", jobs.map((each) => each.place)), word("state", jobs.map((each) => (each.running ? "runs" : "has ended")))] },
    }, window.simmodelPage?.state());
    scrollTo(0, scrolled);
  }
  const source = new EventSource(`${here}/events`);
  source.onmessage = (event) => {
    const now = JSON.parse(event.data);
    window.simmodelLive = now;
    over = now.over;
    said.textContent = `${now.clock}   ${now.used.toLocaleString("en")} of ${now.capacity.toLocaleString("en")} cores in use, ${now.running.toLocaleString("en")} running, ${now.waiting.toLocaleString("en")} waiting${now.ended === null ? "" : `, ${now.ended.toLocaleString("en")} ended`}${now.paused && !now.over ? " (paused)" : ""}`;
    sign.textContent = now.over ? "ended" : "live";
    document.title = now.over ? `ended: ${title}` : title;
    pause.textContent = now.paused ? "go on" : "pause";
    places.replaceChildren(...now.places.map(([name, used, capacity, waiting]) => make("i", { title: `${name}: ${used} of ${capacity}${waiting === null ? "" : `, ${waiting} waiting`}`, style: `--use:${capacity ? (100 * used) / capacity : 0}%`, onclick: () => window.simmodelPage?.openSite(name) })));
    places.hidden = now.places.length < 2;
    for (const each of controls) { each.disabled = now.over; each.hidden = !now.controls; }
    if (!shown && !now.version) first(now);
    if (!inUse() || now.over || !shown) load(now.version);
    if (now.over) source.close();
  };
  source.onerror = () => { if (!over) said.textContent = "the run is gone: what is shown is its last page"; };
})();
