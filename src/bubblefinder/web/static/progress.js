"use strict";
(() => {
  const job = document.getElementById("job");
  const words = document.getElementById("job-words");
  const stages = [...job.querySelectorAll("[data-stage]")];

  const show = (run) => {
    if (run.state === "queued") {
      words.textContent = run.ahead ? `Waiting behind ${run.ahead} ${run.ahead === 1 ? "other" : "others"}.` : "Waiting.";
      return;
    }
    const { stage, done } = run.progress;
    words.textContent = stage ? `Working: ${stage}, step ${done + 1} of ${stages.length}.` : "Working.";
    stages.forEach((one, index) => {
      one.className = index < done ? "past" : index === done ? "now" : "";
    });
  };

  // The page says again what the server says; a server that restarts is waited for.
  const ask = async () => {
    let wait = 400;
    try {
      const answer = await fetch(`/api/runs/${job.dataset.run}`);
      if (answer.status === 404) { location.assign("/"); return; }
      const run = await answer.json();
      if (!["queued", "running"].includes(run.state)) { location.reload(); return; }
      show(run);
    } catch {
      words.textContent = "The server does not answer; trying again.";
      wait = 2000;
    }
    setTimeout(ask, wait);
  };
  ask();
})();
