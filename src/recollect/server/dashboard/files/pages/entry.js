// One entry: evidence, dates, history, edit and delete.
import { html, useState } from "../lib.js";
import { call, get, part } from "../api.js";
import { number, t } from "../i18n.js";
import { Icon } from "../icons.js";
import { useLive } from "../live.js";
import { ActionButton, At, Chip, DangerButton, Day, Failure, Labels, Loading, Speaker, Text, isOffline } from "../parts.js";
import { link } from "../routes.js";
import { announce } from "../store.js";

const CHIPS = { doubtful: "warn", expired: "plain", retired: "plain", rejected: "bad" };

export function Entry({ entry, changed, isReadOnly = false, children }) {
  const [open, setOpen] = useState(null); // null | why | edit
  const toggle = (what) => setOpen(open === what ? null : what);
  const path = `/v1/entries/${part(entry.content_id)}`;
  const erase = async () => {
    await call("DELETE", path);
    announce(t("entry.deleted"));
    changed();
  };
  const review = async (verb) => {
    await call("POST", `${path}/${verb}`);
    announce(t(`reviewed.${verb}`));
    changed();
  };
  const isTold = entry.state === "current" || entry.state === "doubtful";
  return html`<article class=${isTold ? "entry" : "entry retired"}>
    <${Text} value=${entry.content_text} />
    <div class="entry-meta">
      <${Validity} entry=${entry} />
      ${entry.state !== "current" && html`<${Chip} kind=${CHIPS[entry.state]}>${t(`entry.${entry.state}`)}</${Chip}>`}
      <span title=${t("entry.confidence")}>${t("entry.sure", { n: number(entry.confidence, { style: "percent" }) })}</span>
      <${Labels} of=${entry} />
      ${children}
      <span class="spacer" />
      <span class="entry-actions">
        <button type="button" class="small" aria-expanded=${open === "why"} onClick=${() => toggle("why")}><${Icon} name="why" />${t("entry.why")}</button>
        ${entry.state !== "retired" && !isReadOnly && html`<${ActionButton} class="small" act=${() => review("confirm")}><${Icon} name="check" />${t("entry.confirm")}</${ActionButton}>`}
        ${isTold && !isReadOnly && html`<${ActionButton} class="small" act=${() => review("reject")}><${Icon} name="cross" />${t("entry.reject")}</${ActionButton}>`}
        ${isTold && !isReadOnly && html`<button type="button" class="small" aria-expanded=${open === "edit"} onClick=${() => toggle("edit")}><${Icon} name="edit" />${t("action.edit")}</button>`}
        ${!isReadOnly && html`<${DangerButton} small label=${t("action.delete")} title=${t("entry.delete")} warning=${t("entry.delete.why")} act=${erase} />`}
      </span>
    </div>
    ${open === "why" && html`<${Why} path=${path} id=${entry.content_id} />`}
    ${open === "edit" && html`<${Edit} path=${path} entry=${entry} done=${() => { setOpen(null); changed(); }} cancel=${() => setOpen(null)} />`}
  </article>`;
}

function Validity({ entry }) {
  if (!entry.valid_from && !entry.valid_to) return null;
  return html`<span class="validity">${entry.valid_from && html`<${Day} at=${entry.valid_from} />`}${entry.valid_to && html` – <${Day} at=${entry.valid_to} />`}</span>`;
}

function Edit({ path, entry, done, cancel }) {
  const [text, change] = useState(entry.content_text);
  const [error, setError] = useState(null);
  const save = async (event) => {
    event.preventDefault();
    try {
      await call("PATCH", path, { body: { content_text: text } });
      announce(t("entry.changed"));
      done();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<form class="entry-edit" onSubmit=${save}>
    <label class="field"><span>${t("entry.text")}</span><textarea dir="auto" rows="3" required value=${text} onInput=${(event) => change(event.target.value)}></textarea></label>
    <p class="hint">${t("entry.edit.note")}</p>
    <${Failure} error=${error} />
    <div class="buttons"><button type="button" onClick=${cancel}>${t("action.cancel")}</button><button type="submit" class="primary">${t("action.save")}</button></div>
  </form>`;
}

// Until when an entry holds, and how much it is trusted.
function Lifetime({ entry }) {
  return html`<p class="hint">${t("why.trust", { n: number(entry.trust, { style: "percent" }) })}
    ${entry.last_confirmed_at && html` · ${t("why.confirmed")} <${At} at=${entry.last_confirmed_at} />`}
    ${entry.expires_at && html` · ${t("why.expires")} <${At} at=${entry.expires_at} />`}
    ${entry.rejected_at && html` · ${t("why.rejected")} <${At} at=${entry.rejected_at} />`}</p>`;
}

function Why({ path, id }) {
  const found = useLive(async (signal) => ({ why: await get(`${path}/why`, {}, signal), history: (await get(`${path}/history`, {}, signal)).items }), ["why", id]);
  if (found.isLoading) return html`<${Loading} />`;
  if (found.error) return html`<${Failure} error=${found.error} retry=${found.reload} />`;
  const { why, history } = found.data;
  const before = history.filter((entry) => entry.content_id !== id);
  return html`<div class="why">
    <h3>${t("why.because")}</h3>
    ${why.edit && html`<p class="hint">${why.edit.edited_by && why.edit.edited_by !== "no key" ? t("why.edited_by", { by: why.edit.edited_by }) : t("why.edited")} <${At} at=${why.edit.edited_at} /></p>`}
    ${!why.edit && !why.evidence.length && html`<p class="hint">${t(why.origin ? "why.erased" : "why.person")}</p>`}
    ${why.evidence.map(
      (quote) => html`<figure class="quote" key=${quote.message_id}>
        <blockquote><${Text} value=${quote.content} most=${600} /></blockquote>
        <figcaption><${Speaker} of=${quote} />, <${At} at=${quote.created_at} /> · <a href=${link(["conversations", quote.conversation_id], { message: quote.message_id })}>${t("why.go")} →</a></figcaption>
      </figure>`,
    )}
    ${why.origin && html`<p class="hint">${isOffline(why.origin.model) ? t("why.learned_by_rule") : t("why.learned_by", { model: why.origin.model ?? "?" })} <${At} at=${why.origin.finished_at ?? why.entry.learned_at} /></p>`}
    <${Lifetime} entry=${why.entry} />
    <h3>${t("why.history")}</h3>
    ${!before.length && html`<p class="hint">${t("why.no_history")}</p>`}
    ${before.length > 0 &&
    html`<ol class="history">${history.map(
      (entry) => html`<li key=${entry.content_id} class=${entry.content_id === id ? "now" : ""}><${Text} value=${entry.content_text} most=${300} /><span class="hint"><${At} at=${entry.learned_at} />${entry.retired_at && html` – <${At} at=${entry.retired_at} />`}</span></li>`,
    )}</ol>`}
  </div>`;
}
