"use strict";
(() => {
  // Tables wider than the window say so.
  const sides = () => document.querySelectorAll(".scroll").forEach((one) => one.classList.toggle("scrolls", one.scrollWidth > one.clientWidth + 4));
  addEventListener("resize", sides);
  document.addEventListener("toggle", sides, true);
  sides();
})();
