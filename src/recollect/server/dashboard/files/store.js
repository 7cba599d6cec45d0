// What the whole page shares: language, colours, the connection, and whether a key is asked for.
import { useEffect, useState } from "./lib.js";

const KEY = "recollect.key";
const listeners = new Set();

function kept(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null; // storage may be forbidden
  }
}

function keep(storage, name, value) {
  try {
    if (value === null) window[storage].removeItem(name);
    else window[storage].setItem(name, value);
  } catch {
    return; // then it is known until the page is left
  }
}

const browserLanguage = (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";

export const state = {
  language: kept("localStorage", "recollect.language") || browserLanguage,
  theme: kept("localStorage", "recollect.theme") || "system",
  key: kept("sessionStorage", KEY),
  needsKey: false,
  connection: "ok", // ok | gone
  epoch: 0, // counts the reasons to read everything anew
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
  keep("sessionStorage", KEY, key); // never longer than the tab lives
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

// Said to those who hear the page; the same words twice are said twice.
export function announce(words) {
  update({ announcement: state.announcement === words ? `${words}\u00a0` : words });
}
