"use strict";
(() => {
  // What the report places in time leads to the timeline there, with as much again on either side.
  const run = document.querySelector("[data-run]").dataset.run;
  document.querySelectorAll("[data-start][data-end]").forEach((one) => {
    const [start, end] = [BigInt(one.dataset.start), BigInt(one.dataset.end)];
    const around = end - start > 20000n ? end - start : 20000n;
    const link = document.createElement("a");
    link.href = `/runs/${run}/timeline?start=${start - around}&end=${end + around}`;
    link.className = "moment";
    if (one.matches("tr")) {
      link.textContent = "timeline";
      link.setAttribute("aria-label", `${one.cells[0].textContent.trim()} in the timeline`);
      const cell = one.cells[one.cells.length - 1];
      cell.append(" ", link);
    } else {
      link.textContent = "See it in the timeline";
      (one.querySelector(".tags") || one).append(" ", link);
    }
  });
})();
