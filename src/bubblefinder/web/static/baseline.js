"use strict";
(() => {
  // The report may be done before its baseline is; the link appears once there is something to compare with.
  const link = document.querySelector("[data-baseline]");
  const state = document.getElementById("baseline-state");

  const ask = async () => {
    try {
      const answer = await fetch(`/api/runs/${link.dataset.baseline}`);
      const run = answer.ok ? await answer.json() : { state: "deleted" };
      if (run.state === "done") {
        link.hidden = false;
        state.hidden = true;
        return;
      }
      if (!["queued", "running"].includes(run.state)) {
        state.textContent = `The baseline is ${run.state}.${run.error ? ` ${run.error}` : ""}`;
        return;
      }
    } catch { /* the server is away; ask again */ }
    setTimeout(ask, 700);
  };
  ask();
})();
