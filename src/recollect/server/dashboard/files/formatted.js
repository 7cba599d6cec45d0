// A message: formatted as Markdown, or as it was written. The parser loads with the first message.
import { html, useEffect, useState } from "./lib.js";
import { number, t } from "./i18n.js";
import { Text } from "./parts.js";
import { shorten } from "./text.js";
import { setFormatted, useShared } from "./store.js";

const LONGEST_SHOWN = 1500; // characters, until the reader expands the text
const LONGEST_FORMATTED = 50000; // a longer text is shown as it was written

let loaded = null;

export function useMarkdown(isWanted = true) {
  const [, redraw] = useState(0);
  useEffect(() => {
    if (!isWanted || loaded) return;
    import("./markdown.js").then(
      (module) => {
        loaded = module.Markdown;
        redraw((count) => count + 1);
      },
      () => {}, // the text stays as it was written
    );
  }, [isWanted]);
  return isWanted ? loaded : null;
}

export function FormatSwitch() {
  const { isFormatted } = useShared();
  return html`<label class="check"><input type="checkbox" checked=${isFormatted} onChange=${(event) => setFormatted(event.target.checked)} />${t("text.format")}</label>`;
}

export function Formatted({ value }) {
  const { isFormatted } = useShared();
  const [isWhole, setWhole] = useState(false);
  const text = String(value ?? "");
  const isLong = text.length > LONGEST_SHOWN * 1.2;
  const Markdown = useMarkdown(isFormatted && text.length <= LONGEST_FORMATTED);
  if (!Markdown) return html`<${Text} value=${text} />`;
  const shown = isLong && !isWhole ? `${shorten(text, LONGEST_SHOWN)}…` : text;
  return html`<div class="text formatted">
    <${Markdown} text=${shown} />
    ${isLong &&
    html`<button type="button" class="linkish show-all" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>
      ${isWhole ? t("text.show_less") : t("text.show_all", { n: number(text.length) })}
    </button>`}
  </div>`;
}
