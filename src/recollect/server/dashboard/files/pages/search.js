// Search entries and messages, with the parts of each score.
import { html, useState } from "../lib.js";
import { call, get } from "../api.js";
import { count, number, t } from "../i18n.js";
import { useLive } from "../live.js";
import { At, Chip, Choice, Empty, Failure, Field, Fold, Heading, Loading, Speaker, Text } from "../parts.js";
import { go, link } from "../routes.js";
import { Entry } from "./entry.js";

const COLORS = 6; // in the style sheet
const FILTERS = ["tags", "metadata", "name", "role", "since", "until"];
const ROLES = ["user", "assistant", "tool"]; // system messages are not searched

export function SearchPage({ query }) {
  const place = query.in === "said" ? "said" : "known";
  const isAsked = Boolean(query.q && query.user);
  return html`
    <div class="page-head"><${Heading} title=${t("nav.search")}>${t("nav.search")}</${Heading}><p class="lead">${t("search.lead")}</p></div>
    <${Question} key=${JSON.stringify(query)} query=${query} place=${place} />
    ${isAsked ? html`<${Found} q=${query.q} agent=${query.agent} user=${query.user} place=${place} kind=${query.kind} filters=${readFilters(query)} />` : html`<${Empty} title=${t("search.ask")}>${t("search.ask.why")}</${Empty}>`}
  `;
}

function Question({ query, place }) {
  const [values, change] = useState({ q: "", agent: "", user: "", kind: "", ...Object.fromEntries(FILTERS.map((name) => [name, ""])), ...query });
  const owners = useLive((signal) => get("/v1/memories", { limit: 200 }, signal), ["owners"]);
  const field = (name) => ({ value: values[name], onInput: (event) => change({ ...values, [name]: event.target.value }) });
  const send = (event) => {
    event.preventDefault();
    go(["search"], { ...values, in: place });
  };
  const known = (name) => [...new Set((owners.data?.items ?? []).map((item) => item[name]))].sort();
  return html`<form class="filters" role="search" aria-label=${t("nav.search")} onSubmit=${send}>
    <${Field} label=${t("search.question")}><input type="search" required ...${field("q")} placeholder=${t("search.question.hint")} /></${Field}>
    <${Field} label=${t("filter.user")}><input required list="known-users" autocomplete="off" ...${field("user")} /></${Field}>
    <${Field} label=${t("filter.agent")}><input list="known-agents" autocomplete="off" ...${field("agent")} placeholder=${t("search.agent.all")} /></${Field}>
    <datalist id="known-users">${known("user_id").map((name) => html`<option value=${name} />`)}</datalist>
    <datalist id="known-agents">${known("agent_id").map((name) => html`<option value=${name} />`)}</datalist>
    <div class="filter-buttons"><button type="submit" class="primary">${t("nav.search")}</button></div>
    <div class="filter-line">
      <${Choice} label=${t("search.where")} value=${place} onChange=${(name) => go(["search"], { ...values, in: name })} options=${[["known", t("search.known")], ["said", t("search.said")]]} />
      ${place === "known" &&
      html`<${Choice} label=${t("search.kind")} value=${query.kind ?? ""} onChange=${(name) => go(["search"], { ...values, in: place, kind: name })} options=${[["", t("search.kind.all")], ...["profile", "event", "mind", "instruction"].map((name) => [name, t(`kind.${name}`)])]} />`}
    </div>
    <div class="filter-line"><${Fold} summary=${t("search.filters")} open=${FILTERS.some((name) => query[name])}>
      <div class="more-filters">
        <${Field} label=${t("search.tags")}><input ...${field("tags")} placeholder=${t("search.tags.hint")} autocomplete="off" /></${Field}>
        <${Field} label=${t("label.metadata")}><input ...${field("metadata")} placeholder=${'{"ticket": 17}'} autocomplete="off" /></${Field}>
        <${Field} label=${t("search.name")}><input ...${field("name")} autocomplete="off" /></${Field}>
        <${Field} label=${t("search.role")}><select value=${values.role} onChange=${field("role").onInput}>${["", ...ROLES].map((name) => html`<option value=${name}>${t(name ? `role.${name}` : "search.kind.all")}</option>`)}</select></${Field}>
        <${Field} label=${t("search.since")}><input type="date" ...${field("since")} /></${Field}>
        <${Field} label=${t("search.until")}><input type="date" ...${field("until")} /></${Field}>
      </div>
    </${Fold}></div>
  </form>`;
}

// The filters of the address, as the service takes them. Metadata that is not JSON is sent as it is: the service explains the error.
function readFilters({ tags, metadata, ...others }) {
  const found = Object.fromEntries(FILTERS.filter((name) => others[name]).map((name) => [name, others[name]]));
  const listed = (tags ?? "").split(",").map((tag) => tag.trim()).filter(Boolean);
  if (listed.length) found.tags = listed;
  if (metadata) {
    try {
      found.metadata = JSON.parse(metadata);
    } catch {
      found.metadata = metadata;
    }
  }
  return found;
}

function Found({ q, agent, user, place, kind, filters }) {
  const body = { query: q, ...(agent && { agent_id: agent }), user_id: user, limit: 20, explain: true, ...filters, ...(kind && place === "known" && { content_type: kind }) };
  const path = place === "known" ? "/v1/memories/search" : "/v1/conversations/search";
  const found = useLive((signal) => call("POST", path, { body, signal }), [path, body]);
  if (found.isLoading) return html`<${Loading} />`;
  const hits = found.data?.items ?? [];
  const best = Math.max(0, ...hits.map((hit) => hit.score));
  return html`
    <${Failure} error=${found.error} retry=${found.reload} />
    ${(found.data?.warnings ?? []).map((words) => html`<p class="notice" role="status">${words}</p>`)}
    ${found.data && html`<p class="hint" role="status">${count("hits", hits.length)}</p>`}
    ${found.data && !hits.length && html`<${Empty} title=${t("search.none")}>${t("search.none.why")}</${Empty}>`}
    <ol class="hits">${hits.map((hit) => html`<li class="panel hit" key=${hit.entry?.content_id ?? hit.message.message_id}>
      ${hit.entry ? html`<${Entry} entry=${hit.entry} changed=${found.reload}><${Chip} kind=${hit.entry.content_type}>${t(`kind.${hit.entry.content_type}`)}</${Chip}></${Entry}>` : html`<${Turn} hit=${hit} />`}
      <${Score} hit=${hit} best=${best} />
    </li>`)}</ol>
  `;
}

function Turn({ hit }) {
  return html`<${Text} value=${hit.message.content} most=${600} />
    <p class="entry-meta"><span><${Speaker} of=${hit.message} /></span><${At} at=${hit.message.created_at} /><span class="spacer" /><a href=${link(["conversations", hit.conversation_id], { message: hit.message.message_id })}>${t("why.go")} →</a></p>`;
}

// The parts of a score as a bar, scaled to the best score, then as text.
function Score({ hit, best }) {
  const parts = Object.entries(hit.parts ?? {}).filter(([, value]) => value !== 0);
  parts.sort((one, other) => other[1] - one[1]);
  const share = (value) => `${best > 0 ? Math.max(0, (value / best) * 100) : 0}%`;
  const summary = html`<span class="score-line"><span class="score">${number(hit.score, { maximumFractionDigits: 2, minimumFractionDigits: 2 })}</span><span class="bar" aria-hidden="true">${parts.map(([name, value], index) => html`<i key=${name} class=${`part-${index % COLORS}`} style=${{ width: share(value) }} />`)}</span><span class="score-why">${t("score.why")}</span></span>`;
  return html`<${Fold} summary=${summary}>
    <dl class="score-parts">${parts.map(
      ([name, value], index) => html`<div key=${name}><dt><i class=${`dot part-${index % COLORS}`} aria-hidden="true" />${partName(name)}</dt><dd>${number(value, { maximumFractionDigits: 3, signDisplay: "negative" })}</dd></div>`,
    )}</dl>
  </${Fold}>`;
}

function partName(name) {
  const words = t(`part.${name}`);
  return words === `part.${name}` ? name : words;
}
