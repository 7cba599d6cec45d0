// The memory of a user: instructions, profile, events, mind.
import { html, useState } from "../lib.js";
import { call, get, part } from "../api.js";
import { count, date, number, t } from "../i18n.js";
import { Icon } from "../icons.js";
import { useLive, usePages } from "../live.js";
import { Ago, Chip, Choice, DangerButton, Empty, Failure, Field, Gone, Heading, Loading, MoreButton, Name, Owner, Panel } from "../parts.js";
import { go, link } from "../routes.js";
import { announce } from "../store.js";
import { Entry } from "./entry.js";

const EVERY = 4000; // milliseconds
const RECENT = 7 * 24 * 3600 * 1000; // milliseconds in which an entry is new or changed
const REVIEWED = ["new", "changed", "doubtful", "expired", "rejected"];

export function MemoryPage({ id }) {
  const path = `/v1/memories/${part(id)}`;
  const [past, setPast] = useState({ at: "", isAll: false });
  const [shown, setShown] = useState("");
  const memory = useLive((signal) => get(path, {}, signal), ["memory", id], EVERY);
  if (memory.error?.status === 404) {
    return html`<div class="page-head"><${Heading} title=${t("memory.gone")}>${t("nav.memories")}</${Heading}></div><${Gone} what="memory.gone" back=${["memories"]} />`;
  }
  if (!memory.data) return memory.error ? html`<${Failure} error=${memory.error} retry=${memory.reload} />` : html`<${Loading} />`;
  const outline = memory.data;
  const shared = { id, version: outline.version, past, shown, changed: memory.reload };
  return html`
    <p class="crumbs"><a href=${link(["memories"])}>← ${t("nav.memories")}</a></p>
    <div class="page-head">
      <${Heading} title=${outline.user_id.slice(0, 60)}><${Name} value=${outline.user_id} most=${80} /></${Heading}>
      <${Facts} outline=${outline} path=${path} />
    </div>
    <${Past} past=${past} setPast=${setPast} />
    <${Choice} label=${t("review.title")} value=${shown} onChange=${setShown} options=${[["", t("review.all")], ...REVIEWED.map((name) => [name, t(`review.${name}`)])]} />
    <div class="columns even">
      <div class="column-main">
        <${Kind} kind="instruction" ...${shared} /><${Kind} kind="profile" ...${shared} /><${Kind} kind="mind" ...${shared} />
      </div>
      <div class="column-main"><${Kind} kind="event" ...${shared} /></div>
    </div>
  `;
}

function Facts({ outline, path }) {
  const erase = async () => {
    await call("DELETE", path);
    announce(t("memory.deleted"));
    go(["memories"]);
  };
  const all = outline.profile_content.length + outline.event_content.length + outline.mind_content.length + (outline.instruction_content ?? []).length;
  return html`<div class="facts">
    <span>${t("owner.with")} <${Name} value=${outline.agent_id} most=${60} /></span>
    <span>${count("entries", all)}</span>
    <span><${Ago} at=${outline.updated_at} /></span>
    <span class="spacer" />
    <a class="button" href=${link(["search"], { agent: outline.agent_id, user: outline.user_id })}><${Icon} name="search" />${t("nav.search")}</a>
    <a class="button" href=${link(["conversations"], { agent: outline.agent_id, user: outline.user_id })}><${Icon} name="conversations" />${t("nav.conversations")}</a>
    <${DangerButton} label=${t("action.delete")} title=${t("memory.delete")} warning=${t("memory.delete.why")} act=${erase} />
  </div>`;
}

// The memory at another point in time.
function Past({ past, setPast }) {
  return html`<div class="past" role="group" aria-label=${t("past.title")}>
    <${Field} label=${t("past.at")}><input type="datetime-local" value=${past.at} onInput=${(event) => setPast({ ...past, at: event.target.value })} /></${Field}>
    <label class="check"><input type="checkbox" checked=${past.isAll} onChange=${(event) => setPast({ ...past, isAll: event.target.checked })} />${t("past.all")}</label>
    ${past.at && html`<button type="button" onClick=${() => setPast({ ...past, at: "" })}>${t("past.now")}</button><${Chip} kind="accent">${t("past.shown")}</${Chip}>`}
  </div>`;
}

// Whether an entry is shown under one of the choices above the lists.
function isShown(entry, shown) {
  if (shown === "" || entry.state === shown) return true;
  const isRecent = Date.now() - Date.parse(entry.learned_at) < RECENT;
  if (!isRecent || (entry.state !== "current" && entry.state !== "doubtful")) return false;
  return shown === (entry.supersedes.length ? "changed" : "new");
}

function Kind({ kind, id, version, past, shown, changed }) {
  const [isAdding, setAdding] = useState(false);
  const withRetired = past.isAll || shown === "expired" || shown === "rejected";
  const asked = { type: kind, as_of: past.at ? new Date(past.at).toISOString() : "", include_retired: withRetired ? "true" : "" };
  const pages = usePages(
    (cursor, signal) => get(`/v1/memories/${part(id)}/entries`, { ...asked, cursor, limit: 50 }, signal),
    ["entries", id, version, asked],
    (entry) => entry.content_id,
  );
  const items = pages.items.filter((entry) => isShown(entry, shown));
  const added = () => {
    setAdding(false);
    changed();
  };
  const add = html`<button type="button" class="small" aria-expanded=${isAdding} aria-label=${t(`add.${kind}`)} onClick=${() => setAdding(!isAdding)}><${Icon} name="plus" />${t("action.add")}</button>`;
  return html`<${Panel} title=${t(`kind.${kind}`)} className=${`kind-panel kind-${kind}`} actions=${add}>
    ${isAdding && html`<${Add} kind=${kind} id=${id} done=${added} cancel=${() => setAdding(false)} />`}
    <${Failure} error=${pages.error?.status === 404 ? null : pages.error} retry=${pages.reload} />
    ${pages.isLoading && html`<${Loading} />`}
    ${pages.data && !items.length && html`<${Empty} title=${t(`none.${kind}`)} />`}
    ${kind === "event" ? html`<${TimeLine} entries=${items} changed=${changed} past=${past} />` : items.map((entry) => html`<${Entry} key=${entry.content_id} entry=${entry} changed=${changed} isReadOnly=${Boolean(past.at)} />`)}
    <${MoreButton} pages=${pages} />
  </${Panel}>`;
}

// Newest first, grouped by month.
function TimeLine({ entries, changed, past }) {
  const dated = entries.map((entry) => ({ entry, at: entry.valid_from ?? (entry.said_at ?? entry.learned_at).slice(0, 10) }));
  dated.sort((one, other) => (one.at < other.at ? 1 : -1));
  const months = Map.groupBy(dated, ({ at }) => at.slice(0, 7));
  return html`<div class="timeline">${[...months].map(
    ([month, group]) => html`<section key=${month} aria-label=${date(month)}>
      <h3>${date(month)}</h3>
      ${group.map(({ entry }) => html`<div class="moment" key=${entry.content_id}><${Entry} entry=${entry} changed=${changed} isReadOnly=${Boolean(past.at)} /></div>`)}
    </section>`,
  )}</div>`;
}

function Add({ kind, id, done, cancel }) {
  const [text, change] = useState("");
  const [error, setError] = useState(null);
  const save = async (event) => {
    event.preventDefault();
    try {
      await call("POST", `/v1/memories/${part(id)}/entries`, { body: { content_type: kind, content_text: text } });
      announce(t("entry.added"));
      done();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<form class="entry-edit" onSubmit=${save}>
    <label class="field"><span>${t("entry.text")}</span><textarea dir="auto" rows="2" required value=${text} onInput=${(event) => change(event.target.value)}></textarea></label>
    <${Failure} error=${error} />
    <div class="buttons"><button type="button" onClick=${cancel}>${t("action.cancel")}</button><button type="submit" class="primary">${t("action.save")}</button></div>
  </form>`;
}
