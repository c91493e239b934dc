"use strict";
(() => {
  const SHORT = 30, LEAST = 4, TITLE = 15, AXIS = 34, ARROWS = 60, CLICK = 4;
  const byId = (id) => document.getElementById(id);
  const root = byId("timeline"), canvas = byId("timeline-canvas"), tip = byId("timeline-tip");
  const pen = canvas.getContext("2d");
  const colours = Object.fromEntries([...document.querySelectorAll("#timeline-legend [data-kinds]")]
    .flatMap((entry) => entry.dataset.kinds.split(" ").map((kind) => [kind, entry.dataset.colour])));
  let data = null, view = null, asked = 0, boxes = [], pinned = null, pointed = null, range = null, ROW = 22;

  const duration = (ns) => {
    const size = Math.abs(ns);
    const [scale, unit] = size < 1e3 ? [1, "ns"] : size < 999.5e3 ? [1e3, "us"] : size < 999.5e6 ? [1e6, "ms"] : [1e9, "s"];
    const value = ns / scale;
    return `${value === 0 ? 0 : unit === "ns" ? Math.round(value) : Math.abs(value) < 1000 ? value.toPrecision(3) : Math.round(value)} ${unit}`;
  };
  const since = (ns) => duration(ns - data.capture[0]);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--c-${name}`).trim();
  const api = async (path, query) => {
    const answer = await fetch(`/api/runs/${root.dataset.run}/${path}?${new URLSearchParams(query)}`);
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error);
    return said;
  };
  const failed = (error) => {
    byId("problem").textContent = error.message;
    byId("problem").hidden = false;
  };

  // Times stay whole: a double holds every nanosecond of 100 days. The window is in the address, so that a link shows the same.
  const load = async () => {
    const mine = ++asked;
    const query = view ? { start: Math.round(view.start), end: Math.round(view.end) } : {};
    const said = await api("window", query);
    if (mine !== asked) return;
    data = said;
    view = view || { start: said.start_ns, end: said.end_ns };
    view = { start: Math.max(view.start, data.capture[0]), end: Math.min(view.end, data.capture[1]) };
    if (view.start >= view.end) view = { start: data.capture[0], end: data.capture[1] };
    if (view.start === data.capture[0] && view.end === data.capture[1]) history.replaceState(null, "", location.pathname);
    else history.replaceState(null, "", `?${new URLSearchParams({ start: Math.round(view.start), end: Math.round(view.end) })}`);
    draw();
  };
  let timer = 0;
  const later = () => { clearTimeout(timer); timer = setTimeout(() => load().catch(failed), 120); };

  const height = () => AXIS + data.tracks.length * (ROW + TITLE) + 6;
  const place = (ns) => (ns - view.start) * canvas.clientWidth / (view.end - view.start);
  const draw = () => {
    // Few tracks get taller rows, since the window has the room.
    ROW = Math.max(22, Math.min(40, Math.floor((innerHeight - 330) / data.tracks.length) - TITLE));
    const width = canvas.clientWidth, ratio = devicePixelRatio || 1;
    canvas.style.height = `${height()}px`;
    canvas.width = width * ratio;
    canvas.height = height() * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = "11px system-ui, sans-serif";
    const palette = Object.fromEntries(Object.entries(colours).map(([kind, name]) => [kind, colour(name)]));
    const ink = { text: colour("ink"), soft: colour("muted"), grid: colour("grid"), paper: colour("paper"), mark: colour("blamed") };
    boxes = [];
    steps(ink, width);
    axis(width, ink);
    data.tracks.forEach((track, row) => {
      const top = AXIS + row * (ROW + TITLE);
      pen.fillStyle = ink.soft;
      pen.fillText(track.title, 4, top + 11);
      if (track.bars) bars(track, row, top + TITLE, palette, ink, width);
      else shares(track, top + TITLE, palette);
    });
    selection(ink);
    arrows(ink);
    byId("timeline-range").textContent = `${since(view.start)} to ${since(view.end)}: ${duration(view.end - view.start)}`;
    byId("timeline-note").textContent = [
      data.tracks.some((track) => track.shares) ? "Where a track has too many events to draw, the height shows how much of the time is covered, in one colour; zoom in to see each." : "",
      data.dropped ? `${data.dropped.toLocaleString("en")} tracks are not shown: these are those of the first rank, and those with the most events.` : "",
    ].filter(Boolean).join(" ");
    root.dataset.ready = String(asked);
  };
  const axis = (width, ink) => {
    const span = view.end - view.start, rough = span / Math.max(width / 140, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const zero = data.capture[0];
    for (let at = Math.ceil((view.start - zero) / step) * step; at + zero < view.end; at += step) {
      const left = place(at + zero);
      pen.fillStyle = ink.grid;
      pen.fillRect(left, 0, 1, height());
      pen.fillStyle = ink.soft;
      pen.fillText(duration(at), left + 3, 12);
    }
  };
  // Every other decode step is shaded; what is no decode step has no number.
  const steps = (ink, width) => {
    for (const [offset, length, number] of data.steps) {
      const left = Math.max(place(data.start_ns + offset), 0), right = Math.min(place(data.start_ns + offset + length), width);
      if (right <= left) continue;
      pen.fillStyle = ink.soft;
      if (number % 2) { pen.globalAlpha = 0.09; pen.fillRect(left, 16, right - left, height() - 16); pen.globalAlpha = 1; }
      pen.fillRect(left, 16, 1, 10);
      const text = number ? `step ${number}` : "no decode step", short = number ? String(number) : "";
      const shown = [text, short].find((one) => pen.measureText(one).width + 8 < right - left);
      if (shown) pen.fillText(shown, left + 4, 28);
    }
  };
  const bars = (track, row, top, palette, ink, width) => {
    for (const [offset, length, name, kind, flow] of track.bars) {
      const start = data.start_ns + offset;
      const left = Math.max(place(start), 0), right = Math.min(place(start + length), width);
      if (right < 0 || left >= width) continue;
      const wide = Math.max(right - left, 0.6);
      pen.fillStyle = palette[data.kinds[kind]];
      pen.fillRect(left, top, wide, ROW - 4);
      boxes.push({ left, right: Math.max(right, left + 3), top, row, track, start, length, name: data.names[name], kind: data.kinds[kind], flow });
      if (wide > SHORT) label(data.names[name], left, top, wide, pen.fillStyle, ink);
    }
  };
  const label = (text, left, top, wide, fill, ink) => {
    const shown = fitted(text, wide - 8);
    pen.fillStyle = contrast(ink.text, fill) > contrast(ink.paper, fill) ? ink.text : ink.paper;
    pen.fillText(shown, left + 4, top + ROW / 2 + 2);
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
  const shares = (track, top, palette) => {
    const slice = (data.end_ns - data.start_ns) / track.shares.length;
    const kind = { nvtx: "nvtx", calls: "call", inside: "intra_graph", outside: "mixed", gpu: "kernel" }[track.group];
    pen.fillStyle = palette[kind];
    track.shares.forEach((share, index) => {
      const left = place(data.start_ns + index * slice), tall = (ROW - 4) * share / 1000;
      pen.fillRect(left, top + ROW - 4 - tall, place(data.start_ns + (index + 1) * slice) - left, tall);
    });
  };
  const selection = (ink) => {
    if (!range) return;
    const left = place(Math.min(...range)), right = place(Math.max(...range));
    pen.globalAlpha = 0.14;
    pen.fillStyle = ink.mark;
    pen.fillRect(left, 16, right - left, height() - 16);
    pen.globalAlpha = 1;
    const words = duration(Math.abs(range[1] - range[0])), wide = pen.measureText(words).width + 10;
    pen.fillRect(left, 0, wide, 16);
    pen.fillStyle = ink.paper;
    pen.fillText(words, left + 5, 12);
  };

  // A call leads to what it launched, and back.
  const same = (one, other) => one && other && one.start === other.start && one.length === other.length && one.row === other.row && one.name === other.name;
  const outline = (box, ink) => {
    pen.strokeStyle = ink.text;
    pen.lineWidth = 2;
    pen.strokeRect(box.left - 1, box.top - 1, box.right - box.left + 2, ROW - 2);
  };
  const arrows = (ink) => {
    const chosen = boxes.find((box) => same(box, pinned));
    if (chosen) outline(chosen, ink);
    const from = chosen || pointed;
    if (!from || from.flow < 0) return;
    const alike = boxes.filter((box) => box.flow === from.flow);
    const call = alike.find((box) => box.kind === "call");
    if (!call) return;
    alike.filter((box) => box !== call).slice(0, ARROWS).forEach((box, index) => {
      const [x1, y1, x2, y2] = [call.right, call.top + ROW - 4, box.left, box.top];
      pen.globalAlpha = index ? 0.25 : 1;
      pen.strokeStyle = pen.fillStyle = ink.text;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.bezierCurveTo(x1, y1 + 24, x2, y2 - 24, x2, y2);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x2, y2);
      pen.lineTo(x2 - 3, y2 - 6);
      pen.lineTo(x2 + 3, y2 - 6);
      pen.fill();
    });
    pen.globalAlpha = 1;
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
  const moment = (event) => Math.round(view.start + point(event)[0] * (view.end - view.start) / canvas.clientWidth);
  const hit = (event) => {
    const [left, top] = point(event);
    return boxes.findLast((box) => left >= box.left && left <= box.right && top >= box.top && top <= box.top + ROW) || null;
  };
  const said = (box) => `${box.name}: ${duration(box.length)}, ${box.kind.replace("_", " ")} on ${box.track.title}, from ${since(box.start)}`;
  const hover = (event) => {
    const box = hit(event);
    if (box !== pointed) { pointed = box; draw(); }
    tip.hidden = !box;
    if (!box) return;
    tip.textContent = said(box);
    const [left, top] = point(event);
    tip.style.left = `${Math.max(0, Math.min(left + 14, canvas.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${top + 18}px`;
  };
  const pin = (box) => {
    pinned = box;
    byId("timeline-pinned").textContent = box ? `Kept: ${said(box)}. Press f to fit it, Escape to let it go.` : "Click a bar to keep it.";
    draw();
  };

  // What lies in a range, summed by the server.
  const cell = (text, kind = "td", name = "") => { const one = document.createElement(kind); one.textContent = text; one.className = name; return one; };
  const table = (caption, heads, rows) => {
    const made = document.createElement("table"), head = made.createTHead().insertRow(), body = made.createTBody();
    made.createCaption().textContent = caption;
    heads.forEach((text, index) => { const one = cell(text, "th", index ? "n" : ""); one.scope = "col"; head.append(one); });
    rows.forEach((row) => body.insertRow().append(...row.map((text, index) => cell(text, "td", index ? "n" : ""))));
    return made;
  };
  const measured = async () => {
    const [start, end] = [Math.min(...range), Math.max(...range)];
    const place = byId("timeline-sums");
    if (end - start < 1) { range = null; place.hidden = true; draw(); return; }
    const { tracks, names } = await api("sums", { start, end });
    const length = end - start, share = (ns) => `${(100 * ns / length).toFixed(1)} %`;
    place.replaceChildren(
      table(`${duration(length)} from ${since(start)}, by name`, ["Name", "Events", "Time", "Of the range"],
        names.map((one) => [one.name, one.events.toLocaleString("en"), duration(one.total_ns), share(one.total_ns)])),
      table("By track", ["Track", "Events", "Covered", "Of the range"],
        tracks.filter((one) => one.events).map((one) => [one.title, one.events.toLocaleString("en"), duration(one.covered_ns), share(one.covered_ns)])),
    );
    place.hidden = false;
  };

  // Search: the server says what comes next, the page goes there and keeps it.
  let sought = null;
  const seek = async (way) => {
    const text = byId("timeline-text").value.trim();
    if (!text || !data) return;
    const at = sought && sought.text === text ? sought.at : Math.round(way > 0 ? view.start - 1 : view.end);
    const found = await api("find", { text, at });
    const one = way > 0 ? found.next : found.previous;
    if (!one) { byId("timeline-found").textContent = found.total ? `no more of ${found.total.toLocaleString("en")}` : "none"; return; }
    sought = { text, at: one.start_ns };
    const number = way > 0 ? found.before + 1 : (await api("find", { text, at: one.start_ns })).before;
    byId("timeline-found").textContent = `${number.toLocaleString("en")} of ${found.total.toLocaleString("en")}`;
    const span = Math.min(view.end - view.start, Math.max(one.length_ns * 20, 1000));
    pinned = { start: one.start_ns, length: one.length_ns, row: one.track, name: one.name };
    byId("timeline-pinned").textContent = `Kept: ${one.name}: ${duration(one.length_ns)}, from ${since(one.start_ns)}.`;
    show(one.start_ns + one.length_ns / 2 - span / 2, one.start_ns + one.length_ns / 2 + span / 2);
  };

  const fingers = new Map();
  let gap = 0, pressed = null;
  const measures = (event) => event.shiftKey || byId("timeline-measure").getAttribute("aria-pressed") === "true";
  canvas.addEventListener("pointerdown", (event) => {
    if (!data) return;
    fingers.set(event.pointerId, event.clientX);
    gap = 0;
    pressed = { x: event.clientX, selects: measures(event) && fingers.size === 1 };
    if (pressed.selects) range = [moment(event), moment(event)];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!data) return;
    if (!fingers.has(event.pointerId)) { hover(event); return; }
    if (pressed && pressed.selects) { range[1] = moment(event); draw(); return; }
    const before = fingers.get(event.pointerId);
    fingers.set(event.pointerId, event.clientX);
    if (fingers.size === 1) { tip.hidden = true; move((before - event.clientX) / canvas.clientWidth); return; }
    const [one, other] = [...fingers.values()];
    const now = Math.max(Math.abs(one - other), 10);
    if (gap) zoom(gap / now, ((one + other) / 2 - canvas.getBoundingClientRect().left) / canvas.clientWidth);
    gap = now;
  });
  canvas.addEventListener("pointerup", (event) => {
    const was = pressed;
    fingers.delete(event.pointerId);
    pressed = null;
    if (!was || !data) return;
    if (was.selects) measured().catch(failed);
    else if (Math.abs(event.clientX - was.x) < CLICK) { pin(hit(event)); hover(event); }
  });
  canvas.addEventListener("pointercancel", (event) => { fingers.delete(event.pointerId); pressed = null; });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; if (pointed) { pointed = null; draw(); } });
  canvas.addEventListener("wheel", (event) => {
    if (!data) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(event.deltaX / canvas.clientWidth);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, point(event)[0] / canvas.clientWidth);
  }, { passive: false });
  const fit = () => pinned && show(pinned.start - pinned.length, pinned.start + 2 * pinned.length);
  const keys = {
    ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
    0: all, f: fit, n: () => seek(1).catch(failed), N: () => seek(-1).catch(failed), "/": () => byId("timeline-text").focus(),
    Escape: () => { range = null; byId("timeline-sums").hidden = true; pin(null); },
  };
  canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || !data || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  root.querySelectorAll("[data-move]").forEach((one) => one.addEventListener("click", () => data && move(Number(one.dataset.move))));
  root.querySelectorAll("[data-zoom]").forEach((one) => one.addEventListener("click", () => data && zoom(Number(one.dataset.zoom))));
  root.querySelector("[data-all]").addEventListener("click", () => data && all());
  byId("timeline-measure").addEventListener("click", (event) => {
    const on = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(on));
  });
  byId("timeline-search").addEventListener("submit", (event) => { event.preventDefault(); seek(1).catch(failed); });
  byId("timeline-previous").addEventListener("click", () => seek(-1).catch(failed));
  byId("timeline-text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.shiftKey) return;
    event.preventDefault();
    seek(-1).catch(failed);
  });
  addEventListener("resize", () => data && draw());

  const given = new URLSearchParams(location.search);
  const [start, end] = ["start", "end"].map((name) => given.get(name));
  if (/^-?\d{1,18}$/.test(start) && /^-?\d{1,18}$/.test(end) && Number(start) < Number(end)) view = { start: Number(start), end: Number(end) };
  load().catch(failed);
})();
