// All conversations, newest first, with filters and search.
import { html, useState } from "../lib.js";
import { call, get } from "../api.js";
import { count, t } from "../i18n.js";
import { useLive, usePages } from "../live.js";
import { Ago, At, Chip, Empty, Failure, Field, Heading, Labels, Loading, MoreButton, Name, Owner, Speaker, Text } from "../parts.js";
import { go, link } from "../routes.js";
import { titleOf } from "../text.js";

const EVERY = 5000; // milliseconds

export function ConversationsPage({ query }) {
  const { q = "", agent = "", user = "", session = "" } = query;
  const isAsked = Boolean(q && agent && user);
  return html`
    <div class="page-head"><${Heading} title=${t("nav.conversations")}>${t("nav.conversations")}</${Heading}><p class="lead">${t("conversations.lead")}</p></div>
    <${Filters} key=${JSON.stringify(query)} query=${query} />
    ${isAsked ? html`<${Said} q=${q} agent=${agent} user=${user} session=${session} />` : html`<${List} q=${q} agent=${agent} user=${user} session=${session} />`}
  `;
}

function Filters({ query }) {
  const [values, change] = useState({ q: "", agent: "", user: "", session: "", ...query });
  const field = (name) => ({ value: values[name], onInput: (event) => change({ ...values, [name]: event.target.value }) });
  const send = (event) => {
    event.preventDefault();
    go(["conversations"], values);
  };
  const isNarrowed = Object.values(query).some(Boolean);
  return html`<form class="filters" role="search" aria-label=${t("conversations.filter")} onSubmit=${send}>
    <${Field} label=${t("filter.words")}><input type="search" ...${field("q")} placeholder=${t("filter.words.hint")} /></${Field}>
    <${Field} label=${t("filter.user")}><input ...${field("user")} autocomplete="off" /></${Field}>
    <${Field} label=${t("filter.agent")}><input ...${field("agent")} autocomplete="off" /></${Field}>
    <div class="filter-buttons">
      <button type="submit" class="primary">${t("action.filter")}</button>
      ${isNarrowed && html`<a class="button" href=${link(["conversations"])}>${t("action.clear")}</a>`}
    </div>
  </form>`;
}

function List({ q, agent, user, session }) {
  const filters = { q, agent_id: agent, user_id: user, session_id: session };
  const pages = usePages(
    (cursor, signal) => get("/v1/conversations", { ...filters, cursor, limit: 50 }, signal),
    ["conversations", filters],
    (item) => item.conversation_id,
    q ? 0 : EVERY, // a word search is expensive: no automatic reload
  );
  if (pages.isLoading) return html`<${Loading} />`;
  const isNarrowed = Boolean(q || agent || user || session);
  return html`
    <${Failure} error=${pages.error} retry=${pages.reload} />
    ${pages.error?.status === 403 && html`<p class="hint">${t("conversations.name_owner")}</p>`}
    ${pages.data && !pages.items.length && (pages.hasMore ? html`<${Empty} title=${t("conversations.none_so_far")}>${t("conversations.none_so_far.why")}</${Empty}>` : html`<${Nothing} isNarrowed=${isNarrowed} />`)}
    ${pages.items.length > 0 && html`<ul class="rows">${pages.items.map((item) => html`<${Row} key=${item.conversation_id} item=${item} />`)}</ul>`}
    <${MoreButton} pages=${pages} />
  `;
}

function Nothing({ isNarrowed }) {
  if (isNarrowed) return html`<${Empty} title=${t("conversations.none_found")}>${t("conversations.none_found.why")}</${Empty}>`;
  return html`<${Empty} title=${t("conversations.none")}>${t("conversations.none.why")} <code>POST /v1/conversations</code></${Empty}>`;
}

function Row({ item }) {
  return html`<li class="row"><a class="row-link" href=${link(["conversations", item.conversation_id])}>
    <span class="row-title"><${Name} value=${titleOf(item.summary) || t("conversation.empty")} most=${160} /></span>
    <span class="row-meta">
      <${Owner} agent=${item.agent_id} user=${item.user_id} />
      <span>${count("messages", item.turn_count)}</span>
      <span><${Ago} at=${item.updated_at} /></span>
      ${item.closed_at && html`<${Chip}>${t("conversation.closed")}</${Chip}>`}
      <${Labels} of=${item} />
    </span>
  </a></li>`;
}

// With an agent and a user, the service searches all their messages.
function Said({ q, agent, user, session }) {
  const body = { query: q, agent_id: agent, user_id: user, limit: 30, ...(session && { session_id: session }) };
  const found = useLive((signal) => call("POST", "/v1/conversations/search", { body, signal }), ["said", body]);
  if (found.isLoading) return html`<${Loading} />`;
  const hits = found.data?.items ?? [];
  return html`
    <${Failure} error=${found.error} retry=${found.reload} />
    ${found.data && html`<p class="hint" role="status">${count("hits", hits.length)}</p>`}
    ${found.data && !hits.length && html`<${Nothing} isNarrowed=${true} />`}
    ${hits.length > 0 &&
    html`<ul class="rows">${hits.map(
      ({ message, conversation_id }) => html`<li class="row" key=${message.message_id}><a class="row-link" href=${link(["conversations", conversation_id], { message: message.message_id })}>
        <span class="row-title"><${Text} value=${message.content.slice(0, 400)} most=${300} /></span>
        <span class="row-meta"><span><${Speaker} of=${message} /></span><${At} at=${message.created_at} /></span>
      </a></li>`,
    )}</ul>`}
  `;
}
