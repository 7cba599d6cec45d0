// All memories, with the number of entries.
import { html, useState } from "../lib.js";
import { get } from "../api.js";
import { count, number, t } from "../i18n.js";
import { usePages } from "../live.js";
import { Ago, Empty, Failure, Field, Heading, Loading, MoreButton, Owner } from "../parts.js";
import { go, link } from "../routes.js";

const EVERY = 5000; // milliseconds
const KINDS = ["profile", "event", "mind", "instruction"];

export function MemoriesPage({ query }) {
  // The service filters by user, or by agent and user. A filter by agent only is applied here.
  const filters = query.user ? { agent_id: query.agent, user_id: query.user } : {};
  const pages = usePages(
    (cursor, signal) => get("/v1/memories", { ...filters, cursor, limit: 60 }, signal),
    ["memories", filters],
    (item) => item.memory_id,
    EVERY,
  );
  const shown = pages.items.filter((item) => !query.agent || item.agent_id === query.agent);
  const isNarrowed = Boolean(query.agent || query.user);
  return html`
    <div class="page-head"><${Heading} title=${t("nav.memories")}>${t("nav.memories")}</${Heading}><p class="lead">${t("memories.lead")}</p></div>
    <${Filters} key=${JSON.stringify(query)} query=${query} isNarrowed=${isNarrowed} />
    ${pages.isLoading && html`<${Loading} />`}
    <${Failure} error=${pages.error} retry=${pages.reload} />
    ${pages.error?.status === 403 && html`<p class="hint">${t("conversations.name_owner")}</p>`}
    ${pages.data && !shown.length && html`<${Empty} title=${t("memories.none")}>${t(isNarrowed ? "conversations.none_found.why" : "memories.none.why")}</${Empty}>`}
    ${shown.length > 0 && html`<ul class="cards">${shown.map((item) => html`<${Card} key=${item.memory_id} item=${item} />`)}</ul>`}
    <${MoreButton} pages=${pages} />
  `;
}

function Filters({ query, isNarrowed }) {
  const [values, change] = useState({ user: "", agent: "", ...query });
  const field = (name) => ({ value: values[name], onInput: (event) => change({ ...values, [name]: event.target.value }), autocomplete: "off" });
  const send = (event) => {
    event.preventDefault();
    go(["memories"], values);
  };
  return html`<form class="filters" role="search" aria-label=${t("memories.filter")} onSubmit=${send}>
    <${Field} label=${t("filter.user")}><input ...${field("user")} /></${Field}>
    <${Field} label=${t("filter.agent")}><input ...${field("agent")} /></${Field}>
    <div class="filter-buttons">
      <button type="submit" class="primary">${t("action.filter")}</button>
      ${isNarrowed && html`<a class="button" href=${link(["memories"])}>${t("action.clear")}</a>`}
    </div>
  </form>`;
}

function Card({ item }) {
  const all = KINDS.reduce((sum, kind) => sum + item.counts[kind], 0);
  return html`<li class="card"><a class="card-link" href=${link(["memories", item.memory_id])}>
    <${Owner} agent=${item.agent_id} user=${item.user_id} />
    <span class="counts">
      ${KINDS.map((kind) => html`<span class=${`count kind-${kind}`}><strong>${number(item.counts[kind])}</strong> ${t(`kind.${kind}`)}</span>`)}
    </span>
    <span class="card-foot"><span>${count("entries", all)}</span><${Ago} at=${item.updated_at} /></span>
  </a></li>`;
}
