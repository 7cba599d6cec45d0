// Shared state: language, theme, connection, key dialog.
import { useEffect, useState } from "./lib.js";

const KEY = "recollect.key";
const listeners = new Set();

function readStored(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null; // storage can be forbidden
  }
}

function keep(storage, name, value) {
  try {
    if (value === null) window[storage].removeItem(name);
    else window[storage].setItem(name, value);
  } catch {
    return; // then the value lasts until the page is closed
  }
}

const browserLanguage = (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";

export const state = {
  language: readStored("localStorage", "recollect.language") || browserLanguage,
  theme: readStored("localStorage", "recollect.theme") || "system",
  key: readStored("sessionStorage", KEY),
  isFormatted: readStored("localStorage", "recollect.format") !== "no",
  needsKey: false,
  connection: "ok", // ok | gone
  epoch: 0, // incremented when everything must be reloaded
  announcement: "",
};

export function update(changes) {
  Object.assign(state, changes);
  for (const listener of listeners) listener();
}

export function useShared() {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((count) => count + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return state;
}

export function setKey(key) {
  keep("sessionStorage", KEY, key); // cleared when the tab closes
  update({ key, needsKey: false, epoch: state.epoch + 1 });
}

export function setLanguage(language) {
  keep("localStorage", "recollect.language", language);
  update({ language });
}

export function setTheme(theme) {
  keep("localStorage", "recollect.theme", theme === "system" ? null : theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  update({ theme });
}

// Whether messages are shown as Markdown or as they were written.
export function setFormatted(isFormatted) {
  keep("localStorage", "recollect.format", isFormatted ? null : "no");
  update({ isFormatted });
}

// Announce a text to screen readers, even if it repeats.
export function announce(words) {
  update({ announcement: state.announcement === words ? `${words}\u00a0` : words });
}
