"use strict";
(() => {
  // Tables wider than the window say so.
  const sides = () => document.querySelectorAll(".scroll").forEach((one) => one.classList.toggle("scrolls", one.scrollWidth > one.clientWidth + 4));
  addEventListener("resize", sides);
  document.addEventListener("toggle", sides, true);
  sides();
  // Of a trend that is wider than the window the newest runs are in sight.
  document.querySelectorAll(".trend div").forEach((one) => { one.scrollLeft = one.scrollWidth; });
})();
