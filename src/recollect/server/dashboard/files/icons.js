// Icons. Each has a text next to it, so screen readers skip them.
import { html } from "./lib.js";

const PATHS = {
  conversations: "M4 5h16v11H9l-5 4z",
  memories: "M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM4 20c1-4 4-6 8-6s7 2 8 6",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM16 16l5 5",
  threads: "M6 4v16M6 9c0 4 12 2 12 7v4M15 17l3 3 3-3M3 17l3 3 3-3",
  runs: "M4 12a8 8 0 0 1 14-5l2 2M20 4v5h-5M20 12a8 8 0 0 1-14 5l-2-2M4 20v-5h5",
  usage: "M5 20v-7M12 20V5M19 20v-11",
  tool: "M14 6a4 4 0 0 1 5 5l-9 9-4-4 9-9zM14 6l-2-2-3 3",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  edit: "M4 20l1-5L16 4l4 4L9 19z",
  chevron: "M9 6l6 6-6 6",
  why: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 16.5v.5",
  check: "M5 12l5 5L19 7",
  cross: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  light: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  key: "M8 11a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM11 12l8-8M16 7l3 3",
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>`;
}
