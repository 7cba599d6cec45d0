// Components that pages share.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { ago, date, dateTime, number, t } from "./i18n.js";
import { Icon } from "./icons.js";
import { link } from "./routes.js";
import { shorten, visible } from "./text.js";

const LONGEST_SHOWN = 1500; // characters, until the reader expands the text

// --- contents ---

export function Text({ value, most = LONGEST_SHOWN, quiet = false }) {
  const [isWhole, setWhole] = useState(false);
  const text = String(value ?? "");
  const isLong = text.length > most * 1.2;
  const shown = isLong && !isWhole ? shorten(text, most) : text;
  return html`<div class=${quiet ? "text quiet" : "text"}>
    <bdi dir="auto">${visible(shown)}</bdi>${isLong && !isWhole ? "…" : null}
    ${isLong &&
    html`<button type="button" class="linkish show-all" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>
      ${isWhole ? t("text.show_less") : t("text.show_all", { n: number(text.length) })}
    </button>`}
  </div>`;
}

// A name or a title: one line, in any script.
export function Name({ value, most = 120 }) {
  const text = String(value ?? "");
  const shown = text.length > most ? `${shorten(text, most)}…` : text;
  return html`<bdi class="name" dir="auto" title=${text.length > most ? shorten(visible(text), 1000) : undefined}>${visible(shown).replace(/\s+/g, " ")}</bdi>`;
}

// The speaker: the role, and the name if there is one.
export function Speaker({ of }) {
  return html`${t(`role.${of.role}`)}${of.name && html` · <${Name} value=${of.name} most=${60} />`}`;
}

export function Owner({ agent, user }) {
  return html`<span class="owner"><span class="avatar" aria-hidden="true">${[...visible(user)][0] ?? "?"}</span><span class="owner-names"><${Name} value=${user} most=${40} /> <span class="with">${t("owner.with")} <${Name} value=${agent} most=${40} /></span></span></span>`;
}

// The model that learned something; "offline" is the name of learning by rule.
export const isOffline = (model) => model === "offline";
export const learnerName = (model) => (isOffline(model) ? t("learned.by_rule") : (model ?? ""));

export function Ago({ at }) {
  return at ? html`<time datetime=${at} title=${dateTime(at)}>${ago(at)}</time>` : null;
}

export function At({ at }) {
  return at ? html`<time datetime=${at}>${dateTime(at)}</time>` : null;
}

export function Day({ at }) {
  return html`<time datetime=${at}>${date(at)}</time>`;
}

export function Chip({ kind = "plain", children }) {
  return html`<span class=${`chip chip-${kind}`}>${children}</span>`;
}

// The tags and the metadata of a conversation or an entry.
export function Labels({ of }) {
  const hasMetadata = Object.keys(of.metadata).length > 0;
  return html`${of.tags.map((tag) => html`<span key=${tag} title=${t("label.tag")}><${Chip}><${Name} value=${tag} most=${64} /></${Chip}></span>`)}
    ${hasMetadata && html`<span class="hint" title=${t("label.metadata")}><${Name} value=${JSON.stringify(of.metadata)} most=${200} /></span>`}`;
}

// --- a page ---

let isFirst = true; // after the first load, the first Tab must reach the skip link

// The heading of a new page gets the focus: screen readers read it, and Tab continues from there.
export function Heading({ children, title }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = title ? `${title} · Recollect` : "Recollect";
  }, [title]);
  useLayoutEffect(() => {
    const active = document.activeElement;
    if (!isFirst && (active === document.body || active?.closest("nav"))) heading.current?.focus({ preventScroll: true });
    isFirst = false;
    scrollTo(0, 0);
  }, []);
  return html`<h1 tabindex="-1" ref=${heading}>${children}</h1>`;
}

export function Panel({ title, children, actions, className = "" }) {
  return html`<section class=${`panel ${className}`} aria-label=${title}>
    ${title && html`<div class="panel-head"><h2>${title}</h2>${actions}</div>`}
    ${children}
  </section>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p>${children}</p>`}</div>`;
}

export function Loading() {
  return html`<div class="loading" role="status"><span class="visually-hidden">${t("loading")}</span><i /><i /><i /></div>`;
}

// An error: the text of the dashboard, then the detail from the service.
export function Failure({ error, retry }) {
  if (!error || error.status === 401 || error.status === 0) return null;
  const known = { 403: "error.forbidden", 404: "error.gone", 409: "error.conflict", 412: "error.conflict", 429: "error.rate" };
  return html`<div class="notice notice-bad" role="alert">
    <div><strong>${t(known[error.status] ?? "error.other")}</strong> <span class="detail">${error.detail}</span></div>
    ${retry && html`<button type="button" onClick=${retry}>${t("action.again")}</button>`}
  </div>`;
}

export function Gone({ what, back }) {
  return html`<${Empty} title=${t(what)}><a href=${link(back)}>${t("action.back")}</a></${Empty}>`;
}

export function MoreButton({ pages }) {
  if (!pages.hasMore) return null;
  return html`<div class="more"><button type="button" onClick=${pages.loadMore} disabled=${pages.isLoadingMore}>
    ${pages.isLoadingMore ? t("loading") : t("action.more")}
  </button></div>`;
}

// A choice of a few options, as toggle buttons.
export function Choice({ label, value, options, onChange }) {
  return html`<div class="choice" role="group" aria-label=${label}>
    ${options.map(
      ([key, words]) => html`<button type="button" key=${key} aria-pressed=${key === value} onClick=${() => onChange(key)}>${words}</button>`,
    )}
  </div>`;
}

export function Field({ label, children }) {
  return html`<label class="field"><span>${label}</span>${children}</label>`;
}

export function Fold({ summary, children, open = false }) {
  return html`<details class="fold" open=${open}><summary><${Icon} name="chevron" />${summary}</summary><div class="fold-body">${children}</div></details>`;
}

// --- dialogs ---

export function Dialog({ title, children, onCancel }) {
  const dialog = useRef(null);
  useEffect(() => {
    const shown = dialog.current;
    shown.showModal();
    return () => shown.close();
  }, []);
  const cancelled = (event) => {
    event.preventDefault();
    onCancel?.();
  };
  return html`<dialog ref=${dialog} aria-labelledby="dialog-title" onCancel=${cancelled}>
    <h2 id="dialog-title">${title}</h2>
    ${children}
  </dialog>`;
}

// A button that runs an action and shows an error next to it.
export function ActionButton({ act, children, ...more }) {
  const [error, setError] = useState(null);
  const start = async () => {
    try {
      await act();
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<button type="button" ...${more} onClick=${start}>${children}</button><${Failure} error=${error} />`;
}

// A button for an irreversible action. It asks for confirmation.
export function DangerButton({ label, title, warning, act, small = false, bare = false }) {
  const [isAsked, setAsked] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const close = () => {
    setAsked(false);
    setError(null);
  };
  const confirm = async () => {
    setBusy(true);
    try {
      await act();
      close();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return html`<button type="button" class=${small ? "danger small" : "danger"} aria-label=${bare ? title : undefined} onClick=${() => setAsked(true)}><${Icon} name="trash" />${bare ? null : label}</button>
    ${isAsked &&
    html`<${Dialog} title=${title} onCancel=${close}>
      <p>${warning}</p>
      <${Failure} error=${error} />
      <div class="buttons">
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
        <button type="button" class="danger-fill" disabled=${isBusy} onClick=${confirm}>${label}</button>
      </div>
    </${Dialog}>`}`;
}
