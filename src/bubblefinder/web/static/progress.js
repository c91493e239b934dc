"use strict";
(() => {
  const job = document.getElementById("job");
  const words = document.getElementById("job-words");
  const other = document.getElementById("job-baseline");
  const stages = [...job.querySelectorAll("[data-stage]")];
  const busy = (run) => ["queued", "running"].includes(run.state);
  const seconds = (number) => number < 120 ? `${Math.round(number)} s` : `${Math.round(number / 60)} min`;

  const told = (run) => {
    if (run.state === "queued") {
      const reason = run.waits_for ? ` for ${run.waits_for}` : "";
      return run.ahead ? `Waiting behind ${run.ahead} ${run.ahead === 1 ? "other" : "others"}${reason}.` : `Waiting${reason}.`;
    }
    if (run.state !== "running") return run.state === "done" ? "Read." : `It ${run.state}.`;
    const { stage, done, stage_s: within = 0, elapsed_s: all = 0 } = run.progress;
    return stage ? `Working: ${stage}, step ${done + 1} of ${stages.length}. ${seconds(within)} at it, ${seconds(all)} in all.` : "Working.";
  };
  const show = (run) => {
    words.textContent = told(run);
    const { done } = run.progress;
    stages.forEach((one, index) => { one.className = index < done ? "past" : index === done && run.state === "running" ? "now" : ""; });
  };
  const get = async (id) => {
    const answer = await fetch(`/api/runs/${id}`);
    return answer.status === 404 ? { state: "deleted", progress: { done: 0 } } : answer.json();
  };

  // The page says again what the server says; a server that restarts is waited for.
  const ask = async () => {
    let wait = 400;
    try {
      const run = await get(job.dataset.run);
      if (run.state === "deleted") { location.assign("/"); return; }
      const baseline = job.dataset.baseline ? await get(job.dataset.baseline) : null;
      if (!busy(run) && !(run.state === "done" && baseline && busy(baseline))) { location.reload(); return; }
      show(run);
      if (baseline) other.lastChild.textContent = `: ${told(baseline)} Once both are read, this page shows what changed.`;
    } catch {
      words.textContent = "The server does not answer; trying again.";
      wait = 2000;
    }
    setTimeout(ask, wait);
  };
  ask();
})();
