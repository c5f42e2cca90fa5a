/* The chosen theme, before the first paint. */
(() => {
  "use strict";
  let chosen = null;
  try { chosen = localStorage.getItem("filmroom-theme"); } catch { chosen = null; }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
