// The view library under one roof: pages import from here, so that it can be exchanged in one place.
import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { render };
export const html = htm.bind(h);
