// Runs before the first paint, so that the page does not flash in the wrong theme.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("recollect.theme");
  } catch {
    chosen = null; // storage can be forbidden: use the theme of the system
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
