// The only import of the view library. Replace the library here.
import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { h, render };
export const html = htm.bind(h);
