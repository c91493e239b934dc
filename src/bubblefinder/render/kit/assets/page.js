"use strict";
(() => {
  const root = document.documentElement;
  const data = document.getElementById("bubblefinder-figures");
  const figures = data ? JSON.parse(data.textContent) : {};
  const config = { displayModeBar: false, responsive: true, doubleClick: "reset", showTips: false };

  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  // Figures carry "@name" where the theme's colour belongs.
  const coloured = (value, style) => {
    if (typeof value === "string" && value.startsWith("@")) return style.getPropertyValue(`--c-${value.slice(1)}`).trim();
    if (Array.isArray(value)) return value.map((one) => coloured(one, style));
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, coloured(one, style)]));
    return value;
  };
  // Only these hold colours; names and hover texts stay as they are.
  const painted = (figure) => {
    const style = getComputedStyle(root);
    const paint = ["marker", "line", "textfont"];
    return {
      data: figure.data.map((trace) =>
        Object.fromEntries(Object.entries(trace).map(([key, one]) => [key, paint.includes(key) ? coloured(one, style) : one]))),
      layout: Object.fromEntries(Object.entries(figure.layout).map(([key, one]) =>
        [key, key === "annotations" ? one.map((note) => ({ ...note, font: coloured(note.font, style) })) : coloured(one, style)])),
    };
  };

  const charts = [...document.querySelectorAll("[data-chart]")].filter((place) => figures[place.dataset.chart]);

  const draw = (place) => {
    const { data: traces, layout } = painted(figures[place.dataset.chart]);
    // The numbers are in the tables: screen readers need the label alone, not every tick.
    const mute = () => place.querySelector(".plot-container").setAttribute("aria-hidden", "true");
    return Plotly.react(place, traces, layout, config).then(mute);
  };
  const drawAll = () => charts.forEach(draw);

  const move = (place, shift, zoom) => {
    const [low, high] = place._fullLayout.xaxis.range;
    const middle = (low + high) / 2 + shift * (high - low);
    const half = ((high - low) * zoom) / 2;
    Plotly.relayout(place, { "xaxis.range": [middle - half, middle + half] });
  };
  const keys = {
    ArrowLeft: (place) => move(place, -0.2, 1),
    ArrowRight: (place) => move(place, 0.2, 1),
    "+": (place) => move(place, 0, 0.6),
    "-": (place) => move(place, 0, 1 / 0.6),
    0: (place) => draw(place),
  };

  const legends = () =>
    document.querySelectorAll("[data-legend]").forEach((list) => {
      const figure = figures[list.dataset.legend];
      if (!figure) return;
      list.replaceChildren(...figure.data.map((trace) => {
        const item = document.createElement("li");
        const colour = (trace.marker || trace.line).color.slice(1);
        const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        swatch.setAttribute("viewBox", "0 0 10 10");
        swatch.setAttribute("class", "swatch");
        swatch.setAttribute("aria-hidden", "true");
        const mark = document.createElementNS("http://www.w3.org/2000/svg", "path");
        const shapes = { markers: "M0 1H10L5 10Z", lines: "M0 4H3V6H0ZM5 4H8V6H5Z" };
        mark.setAttribute("d", shapes[trace.mode] || "M0 0H10V10H0Z");
        mark.setAttribute("class", `f-${colour}`);
        swatch.append(mark);
        item.append(swatch, document.createTextNode(trace.name));
        return item;
      }));
    });

  const number = (cell) => Number(cell.textContent.replace(/[,\s]/g, ""));
  const sortBy = (table, column, ascending) => {
    const rows = [...table.tBodies[0].rows];
    const numeric = rows.every((row) => !Number.isNaN(number(row.cells[column])) || row.cells[column].textContent.trim() === "–");
    const key = (row) => (numeric ? number(row.cells[column]) || 0 : row.cells[column].textContent.trim());
    rows.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (ascending ? 1 : -1));
    table.tBodies[0].append(...rows);
  };
  const sortable = (table) =>
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (head.classList.contains("wide")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const ascending = head.getAttribute("aria-sort") === "descending";
        [...head.parentNode.cells].forEach((cell) => cell.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sortBy(table, column, ascending);
      });
    });

  const themeSwitch = document.querySelector("[data-theme-switch]");
  const nameSwitch = () => { themeSwitch.textContent = dark() ? "Light theme" : "Dark theme"; };
  if (themeSwitch) {
    themeSwitch.hidden = false;
    nameSwitch();
    themeSwitch.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      nameSwitch();
      drawAll();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (themeSwitch) nameSwitch(); drawAll(); });

  let before = "";
  addEventListener("beforeprint", () => { before = root.dataset.theme || ""; root.dataset.theme = "light"; drawAll(); });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    drawAll();
  });

  document.querySelectorAll("table[data-sortable]").forEach(sortable);
  legends();
  drawAll();
  charts.forEach((place) => place.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(place);
  }));

  // Tables wider than the window say so.
  const sides = () => document.querySelectorAll(".scroll").forEach((one) => one.classList.toggle("scrolls", one.scrollWidth > one.clientWidth + 4));
  addEventListener("resize", sides);
  document.addEventListener("toggle", sides, true);
  sides();
  // Of a trend that is wider than the window the newest runs are in sight.
  document.querySelectorAll(".trend div").forEach((one) => { one.scrollLeft = one.scrollWidth; });
})();
