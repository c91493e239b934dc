"use strict";
(() => {
  const ROW = 22, SHORT = 30, LEAST = 4, TITLE = 15, AXIS = 20;
  const root = document.getElementById("timeline");
  const canvas = document.getElementById("timeline-canvas");
  const pen = canvas.getContext("2d");
  const tip = document.getElementById("timeline-tip");
  const colours = Object.fromEntries([...document.querySelectorAll("#timeline-legend [data-kinds]")]
    .flatMap((entry) => entry.dataset.kinds.split(" ").map((kind) => [kind, entry.dataset.colour])));
  let data = null, view = null, asked = 0, boxes = [];

  const duration = (ns) => {
    const size = Math.abs(ns);
    const [scale, unit] = size < 1e3 ? [1, "ns"] : size < 999.5e3 ? [1e3, "us"] : size < 999.5e6 ? [1e6, "ms"] : [1e9, "s"];
    const value = ns / scale;
    return `${value === 0 ? 0 : unit === "ns" ? Math.round(value) : Math.abs(value) < 1000 ? value.toPrecision(3) : Math.round(value)} ${unit}`;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--c-${name}`).trim();

  // Times stay whole: offsets from the capture's start fit a double exactly for 100 days.
  const load = async () => {
    const mine = ++asked;
    const query = view ? `?start=${Math.round(view.start)}&end=${Math.round(view.end)}` : "";
    const answer = await fetch(`/api/runs/${root.dataset.run}/window${query}`);
    const said = await answer.json();
    if (mine !== asked) return;
    if (!answer.ok) throw new Error(said.error);
    data = said;
    view = view || { start: said.start_ns, end: said.end_ns };
    draw();
  };
  const failed = (error) => {
    const problem = document.getElementById("problem");
    problem.textContent = error.message;
    problem.hidden = false;
  };
  let timer = 0;
  const later = () => { clearTimeout(timer); timer = setTimeout(() => load().catch(failed), 120); };

  const height = () => AXIS + data.tracks.length * (ROW + TITLE) + 6;
  const draw = () => {
    const width = canvas.clientWidth, ratio = devicePixelRatio || 1;
    canvas.style.height = `${height()}px`;
    canvas.width = width * ratio;
    canvas.height = height() * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = "11px system-ui, sans-serif";
    const palette = Object.fromEntries(Object.entries(colours).map(([kind, name]) => [kind, colour(name)]));
    const ink = { text: colour("ink"), soft: colour("muted"), grid: colour("grid"), paper: colour("paper") };
    const scale = width / (view.end - view.start);
    const x = (ns) => (ns - view.start) * scale;
    boxes = [];
    axis(width, ink);
    data.tracks.forEach((track, row) => {
      const top = AXIS + row * (ROW + TITLE);
      pen.fillStyle = ink.soft;
      pen.fillText(track.title, 4, top + 11);
      if (track.bars) bars(track, top + TITLE, x, scale, palette, ink, width);
      else shares(track, top + TITLE, x, palette);
    });
    const span = view.end - view.start;
    document.getElementById("timeline-range").textContent = `${duration(view.start - data.capture[0])} to ${duration(view.end - data.capture[0])}: ${duration(span)}`;
    document.getElementById("timeline-note").textContent = [
      data.tracks.some((track) => track.shares) ? "Where a track has too many events to draw, the height shows how much of the time is covered, in one colour; zoom in to see each." : "",
      data.dropped ? `${data.dropped} tracks with the fewest events are not shown.` : "",
    ].filter(Boolean).join(" ");
    root.dataset.ready = String(asked);
  };
  const axis = (width, ink) => {
    const span = view.end - view.start, rough = span / Math.max(width / 140, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const zero = data.capture[0];
    for (let at = Math.ceil((view.start - zero) / step) * step; at + zero < view.end; at += step) {
      const place = (at + zero - view.start) * width / span;
      pen.fillStyle = ink.grid;
      pen.fillRect(place, 0, 1, height());
      pen.fillStyle = ink.soft;
      pen.fillText(duration(at), place + 3, 12);
    }
  };
  const bars = (track, top, x, scale, palette, ink, width) => {
    for (const [offset, length, name, kind] of track.bars) {
      const left = Math.max(x(data.start_ns + offset), 0), right = Math.min(x(data.start_ns + offset + length), width);
      if (right <= 0 || left >= width) continue;
      const wide = Math.max(right - left, 0.6);
      pen.fillStyle = palette[data.kinds[kind]];
      pen.fillRect(left, top, wide, ROW - 4);
      boxes.push({ left, right: Math.max(right, left + 3), top, track, offset, length, name, kind });
      if (wide > SHORT) label(data.names[name], left, top, wide, pen.fillStyle, ink);
    }
  };
  const label = (text, left, top, wide, fill, ink) => {
    const shown = fitted(text, wide - 8);
    pen.fillStyle = contrast(ink.text, fill) > contrast(ink.paper, fill) ? ink.text : ink.paper;
    pen.fillText(shown, left + 4, top + 13);
  };
  // The longest beginning that fits with an ellipsis; nothing where that would be too short to know the name by.
  const fitted = (text, room) => {
    if (pen.measureText(text).width <= room) return text;
    const letters = [...text];
    const cut = (length) => `${letters.slice(0, length).join("")}…`;
    let least = 0, most = letters.length - 1;
    while (least < most) {
      const middle = Math.ceil((least + most) / 2);
      if (pen.measureText(cut(middle)).width <= room) least = middle;
      else most = middle - 1;
    }
    return least < LEAST ? "" : cut(least);
  };
  const luminance = (hex) => [1, 3, 5].map((at) => (parseInt(hex.slice(at, at + 2), 16) / 255) ** 2.2)
    .reduce((sum, light, index) => sum + light * [0.2126, 0.7152, 0.0722][index], 0.05);
  const contrast = (one, other) => { const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b); return high / low; };
  const shares = (track, top, x, palette) => {
    const slice = (data.end_ns - data.start_ns) / track.shares.length;
    const kind = { nvtx: "nvtx", calls: "call", inside: "intra_graph", outside: "mixed", gpu: "kernel" }[track.group];
    pen.fillStyle = palette[kind];
    track.shares.forEach((share, index) => {
      const left = x(data.start_ns + index * slice), tall = (ROW - 4) * share / 1000;
      pen.fillRect(left, top + ROW - 4 - tall, x(data.start_ns + (index + 1) * slice) - left, tall);
    });
  };

  const show = (start, end) => {
    const [first, last] = data.capture, whole = Math.max(last - first, 1);
    const span = Math.min(Math.max(end - start, 100), whole);
    const middle = (start + end) / 2;
    const from = Math.min(Math.max(middle - span / 2, first), last - span);
    view = { start: from, end: from + span };
    draw();
    later();
  };
  const move = (shift) => { const span = view.end - view.start; show(view.start + shift * span, view.end + shift * span); };
  const zoom = (factor, at = 0.5) => {
    const span = view.end - view.start, fixed = view.start + at * span;
    show(fixed - at * span * factor, fixed + (1 - at) * span * factor);
  };
  const all = () => show(...data.capture);

  const point = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const name = (event) => {
    const [left, top] = point(event);
    const hit = boxes.findLast((box) => left >= box.left && left <= box.right && top >= box.top && top <= box.top + ROW);
    if (!hit) return;
    const begins = data.start_ns + hit.offset - data.capture[0];
    tip.textContent = `${data.names[hit.name]}: ${duration(hit.length)}, ${data.kinds[hit.kind].replace("_", " ")} on ${hit.track.title}, from ${duration(begins)}`;
  };
  const fingers = new Map();
  let gap = 0;
  canvas.addEventListener("pointerdown", (event) => { if (data) { fingers.set(event.pointerId, event.clientX); gap = 0; canvas.setPointerCapture(event.pointerId); } });
  canvas.addEventListener("pointermove", (event) => {
    if (!data) return;
    if (!fingers.has(event.pointerId)) { name(event); return; }
    const before = fingers.get(event.pointerId);
    fingers.set(event.pointerId, event.clientX);
    if (fingers.size === 1) { move((before - event.clientX) / canvas.clientWidth); return; }
    const [one, other] = [...fingers.values()];
    const now = Math.max(Math.abs(one - other), 10);
    if (gap) zoom(gap / now, ((one + other) / 2 - canvas.getBoundingClientRect().left) / canvas.clientWidth);
    gap = now;
  });
  ["pointerup", "pointercancel"].forEach((kind) => canvas.addEventListener(kind, (event) => { fingers.delete(event.pointerId); name(event); }));
  canvas.addEventListener("wheel", (event) => {
    if (!data) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(event.deltaX / canvas.clientWidth);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, point(event)[0] / canvas.clientWidth);
  }, { passive: false });
  const keys = { ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: all };
  canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || !data || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  root.querySelectorAll("[data-move]").forEach((one) => one.addEventListener("click", () => data && move(Number(one.dataset.move))));
  root.querySelectorAll("[data-zoom]").forEach((one) => one.addEventListener("click", () => data && zoom(Number(one.dataset.zoom))));
  root.querySelector("[data-all]").addEventListener("click", () => data && all());
  addEventListener("resize", () => data && draw());
  load().catch(failed);
})();
