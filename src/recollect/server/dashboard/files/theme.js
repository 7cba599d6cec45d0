// Runs before anything is drawn, so that the page does not flash in the other colours.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("recollect.theme");
  } catch {
    chosen = null; // storage may be forbidden: the system's colours are used
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
