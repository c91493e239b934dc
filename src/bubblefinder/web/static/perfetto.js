"use strict";
(() => {
  const PERFETTO = "https://ui.perfetto.dev";
  const problem = document.getElementById("problem");

  // Perfetto says PONG to a PING once it listens; then it takes the trace by message, from no server.
  const open = async (button) => {
    const there = window.open(PERFETTO);
    if (!there) throw new Error("The browser blocked the new window; allow pop-ups for this page.");
    const answer = await fetch(button.dataset.perfetto);
    if (!answer.ok) throw new Error("The trace for Perfetto could not be loaded.");
    const buffer = await answer.arrayBuffer();
    const ping = setInterval(() => there.postMessage("PING", PERFETTO), 100);
    const give = (event) => {
      if (event.origin !== PERFETTO || event.source !== there || event.data !== "PONG") return;
      clearInterval(ping);
      removeEventListener("message", give);
      there.postMessage({ perfetto: { buffer, title: button.dataset.title, fileName: "bubblefinder.json.gz" } }, PERFETTO);
    };
    addEventListener("message", give);
    setTimeout(() => { clearInterval(ping); removeEventListener("message", give); }, 60000);
  };

  document.querySelectorAll("[data-perfetto]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => open(button).catch((error) => {
      problem.textContent = error.message;
      problem.hidden = false;
    }));
  });
})();
