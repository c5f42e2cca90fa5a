/* Keys, the theme switch, and fields that open. Everything a key does, a link or button on the page does too. */
(() => {
  "use strict";
  const PLACES = { h: "/", r: "/review", c: "/changes", t: "/retrains", l: "/traces", s: "/schedules" };
  let goes = 0;
  let row = -1;

  const typing = (element) => element && (element.matches("input:not([type=checkbox]), textarea, select") || element.isContentEditable);

  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };

  const switchTheme = () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("filmroom-theme", next); } catch { /* a private window keeps nothing */ }
    document.dispatchEvent(new Event("filmroom:theme"));
  };

  const edit = () => {
    const box = document.querySelector(".answer");
    if (!box) return;
    box.hidden = false;
    box.querySelector("textarea").focus();
  };

  const moveRow = (step) => {
    const rows = [...document.querySelectorAll("[data-row]")];
    if (!rows.length) return false;
    const at = rows.indexOf(document.activeElement);
    row = Math.max(0, Math.min(rows.length - 1, (at >= 0 ? at : row) + step));
    rows[row].focus();
    rows[row].scrollIntoView({ block: "nearest" });
    return true;
  };

  const press = (element) => {
    if (element.disabled) return;
    const needed = element.closest("form")?.querySelector("textarea[data-needed]");
    if (needed && !needed.value.trim() && element.dataset.key === "a") { edit(); return; }
    element.click();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && typing(event.target)) { event.target.blur(); return; }
    if (typing(event.target)) return;
    if (goes && Date.now() - goes < 1500 && PLACES[event.key]) {
      goes = 0;
      event.preventDefault();
      document.querySelector(`nav a[href="${PLACES[event.key]}"]`)?.click();
      return;
    }
    goes = 0;
    if (event.key === "g") { goes = Date.now(); return; }
    if (event.key === "/") { event.preventDefault(); document.getElementById("find")?.focus(); return; }
    if (event.key === "?") { event.preventDefault(); document.querySelector('a[href="/help"]')?.click(); return; }
    if (event.key === "t") { switchTheme(); return; }
    if (event.key === "w") { const field = document.getElementById("reason"); if (field) { event.preventDefault(); field.focus(); } return; }
    const found = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (found) { event.preventDefault(); press(found); return; }
    if (event.key === "j" && moveRow(1)) event.preventDefault();
    if (event.key === "k" && moveRow(-1)) event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    const act = event.target.closest("[data-act]")?.dataset.act;
    if (act === "theme") switchTheme();
    if (act === "edit") edit();
  });

  const ready = () => {
    row = -1;
    for (const each of document.querySelectorAll(".theme")) each.hidden = false;
  };
  document.addEventListener("DOMContentLoaded", ready);
  document.addEventListener("htmx:afterSettle", () => {
    ready();
    document.getElementById("main")?.focus({ preventScroll: true });
  });
})();
