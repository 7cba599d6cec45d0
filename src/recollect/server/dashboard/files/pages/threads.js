// The threads of LangGraph: the list, and one thread with its steps as turns and its forks as branches.
import { html, useState } from "../lib.js";
import { get } from "../api.js";
import { count, number, t } from "../i18n.js";
import { useLive, usePages } from "../live.js";
import { Ago, At, Chip, Empty, Failure, Field, Fold, Gone, Heading, Loading, MoreButton, Name, Panel, Text } from "../parts.js";
import { go, link } from "../routes.js";
import { textOf } from "../text.js";
import { Tree, ordered } from "./branches.js";
import { Call } from "./call.js";

const EVERY = 5000; // milliseconds
const AT_ONCE = 30; // steps

export function ThreadsPage({ query }) {
  const { user = "" } = query;
  return html`
    <div class="page-head"><${Heading} title=${t("nav.threads")}>${t("nav.threads")}</${Heading}><p class="lead">${t("threads.lead")}</p></div>
    <${Filter} key=${user} user=${user} />
    <${List} user=${user} />
  `;
}

function Filter({ user }) {
  const [value, change] = useState(user);
  const send = (event) => {
    event.preventDefault();
    go(["threads"], { user: value });
  };
  return html`<form class="filters" role="search" aria-label=${t("threads.filter")} onSubmit=${send}>
    <${Field} label=${t("filter.user")}><input value=${value} onInput=${(event) => change(event.target.value)} autocomplete="off" /></${Field}>
    <div class="filter-buttons">
      <button type="submit" class="primary">${t("action.filter")}</button>
      ${user && html`<a class="button" href=${link(["threads"])}>${t("action.clear")}</a>`}
    </div>
  </form>`;
}

function List({ user }) {
  const pages = usePages((cursor, signal) => get("/v1/threads", { user_id: user, cursor, limit: 50 }, signal), ["threads", user], (item) => item.thread_id, EVERY);
  if (pages.isLoading) return html`<${Loading} />`;
  return html`
    <${Failure} error=${pages.error} retry=${pages.reload} />
    ${pages.error?.status === 403 && html`<p class="hint">${t("threads.name_user")}</p>`}
    ${pages.data && !pages.items.length && html`<${Empty} title=${t("threads.none")}>${t("threads.none.why")}</${Empty}>`}
    ${pages.items.length > 0 && html`<ul class="rows">${pages.items.map((item) => html`<${Row} key=${item.thread_id} item=${item} />`)}</ul>`}
    <${MoreButton} pages=${pages} />
  `;
}

function Row({ item }) {
  return html`<li class="row"><a class="row-link" href=${link(["threads", item.thread_id])}>
    <span class="row-title"><${Name} value=${item.thread_id} most=${160} /></span>
    <span class="row-meta">
      ${item.user_id !== null && html`<span><${Name} value=${item.user_id} most=${40} /></span>`}
      <span>${count("checkpoints", item.checkpoint_count)}</span>
      <span><${Ago} at=${item.updated_at} /></span>
    </span>
  </a></li>`;
}

// --- one thread ---

export function ThreadPage({ id, query }) {
  const namespace = query.graph ?? "";
  const [chosen, choose] = useState(null); // a branch; null for the current one
  const outline = useLive((signal) => get("/v1/threads/branches", { thread_id: id, namespace }, signal), ["thread", id, namespace], EVERY);
  if (outline.error?.status === 404) {
    return html`<div class="page-head"><${Heading} title=${t("thread.gone")}>${t("nav.threads")}</${Heading}></div><${Gone} what="thread.gone" back=${["threads"]} />`;
  }
  if (!outline.data) return html`<${Failure} error=${outline.error} retry=${outline.reload} />${!outline.error && html`<${Loading} />`}`;
  const { user_id: user, namespaces, items: branches } = outline.data;
  const shown = branches.find((branch) => branch.name === chosen) ?? branches.find((branch) => branch.is_current);
  return html`
    <p class="crumbs"><a href=${link(["threads"])}>← ${t("nav.threads")}</a></p>
    <div class="page-head">
      <${Heading} title=${id.slice(0, 60)}><${Name} value=${id} most=${120} /></${Heading}>
      <div class="facts">
        ${user !== null && html`<a href=${link(["threads"], { user })}><${Name} value=${user} most=${60} /></a>`}
        ${shown && html`<span>${count("steps", shown.step_count)}</span>`}
      </div>
    </div>
    <div class="columns">
      <div class="column-main">
        ${shown ? html`<${Steps} key=${shown.name} id=${id} namespace=${namespace} branch=${shown} />` : html`<${Empty} title=${t("thread.empty")} />`}
      </div>
      <div class="column-side">
        <${Forks} branches=${branches} shown=${shown} choose=${choose} />
        ${namespaces.length > 1 && html`<${Graphs} id=${id} namespace=${namespace} namespaces=${namespaces} />`}
      </div>
    </div>
  `;
}

function Forks({ branches, shown, choose }) {
  const rows = ordered(branches).map((branch) => ({ ...branch, user_turn_count: branch.step_count, from_turn: branch.from_step }));
  return html`<${Panel} title=${t("branches.title")}>
    <div class="branches">
      <${Tree} rows=${rows} />
      <ul>${rows.map(
        (branch) => html`<li key=${branch.name} class=${branch.is_current ? "current" : ""}>
          <div class="branch-words">
            <div class="branch-name"><${Name} value=${branch.name} most=${60} /></div>
            <div class="branch-meta">${count("steps", branch.step_count)}${branch.from_branch !== null ? html`, ${t("thread.from", { step: branch.from_step })} <${Name} value=${branch.from_branch} most=${40} />` : ""}</div>
          </div>
          <div class="branch-actions">
            ${branch.is_current && html`<${Chip} kind="accent">${t("branches.current")}</${Chip}>`}
            <button type="button" class="small" aria-pressed=${branch.name === shown?.name} aria-label=${t("thread.show", { name: branch.name })} onClick=${() => choose(branch.name)}>${t("thread.show_short")}</button>
          </div>
        </li>`,
      )}</ul>
    </div>
  </${Panel}>`;
}

// A graph inside the graph has checkpoints of its own.
function Graphs({ id, namespace, namespaces }) {
  return html`<${Panel} title=${t("thread.graphs")}><ul class="graphs">
    ${namespaces.map(
      (name) => html`<li key=${name}><a href=${link(["threads", id], { graph: name })} aria-current=${name === namespace ? "page" : undefined}><${Name} value=${name || t("thread.root")} most=${80} /></a></li>`,
    )}
  </ul></${Panel}>`;
}

// --- steps ---

function Steps({ id, namespace, branch }) {
  const pages = usePages(
    (cursor, signal) => get("/v1/threads/steps", { thread_id: id, namespace, branch: branch.name, cursor, limit: AT_ONCE }, signal),
    ["steps", id, namespace, branch.name, branch.step_count],
    (step) => step.checkpoint_id,
  );
  if (pages.isLoading) return html`<${Loading} />`;
  return html`
    <${Failure} error=${pages.error} retry=${pages.reload} />
    <p class="hint">${t("thread.newest_first")}</p>
    <ol class="messages" reversed start=${pages.items[0]?.position}>${pages.items.map((step) => html`<${Step} key=${step.checkpoint_id} step=${step} isFork=${step.position === branch.from_step} />`)}</ol>
    <${MoreButton} pages=${pages} />
  `;
}

function Step({ step, isFork }) {
  return html`<li class="step" id=${`step-${step.position}`}>
    <div class="message-head">
      <span class="role">${t("thread.step", { n: number(step.position) })}</span>
      ${step.nodes.map((node) => html`<${Chip} key=${node}><${Name} value=${node} most=${60} /></${Chip}>`)}
      ${!step.nodes.length && step.source && html`<${Chip}>${t(`thread.source.${step.source}`)}</${Chip}>`}
      ${isFork && html`<${Chip} kind="accent">${t("thread.forked")}</${Chip}>`}
      ${step.created_at && html`<${At} at=${step.created_at} />`}
    </div>
    ${!step.is_readable && html`<p class="hint">${t("thread.encrypted")}</p>`}
    ${step.removed > 0 && html`<p class="hint">${t("thread.removed", { n: number(step.removed) })}</p>`}
    <ol class="messages">
      ${withOutputs(step.items).map((item, place) => html`<${Item} key=${place} item=${item} />`)}
    </ol>
    ${step.changes.length > 0 && html`<${Fold} summary=${t("thread.changes")}>
      ${step.changes.map(({ channel, text }) => html`<p class="label"><${Name} value=${channel} most=${80} /></p><${Text} value=${text} most=${400} />`)}
    </${Fold}>`}
    ${step.interrupts.map((asked, place) => html`<div class="notice" key=${place}><strong>${t("thread.waits")}</strong> <${Text} value=${asked} most=${400} /></div>`)}
    ${step.errors.map((error, place) => html`<div class="notice notice-bad" key=${place}><strong>${t("thread.failed")}</strong> <${Text} value=${error} most=${400} /></div>`)}
  </li>`;
}

function Item({ item }) {
  if (item.type === "function_call") return html`<${Call} call=${{ name: item.name, input: item.arguments, output: item.output }} />`;
  const role = item.role ?? (item.type === "function_call_output" ? "tool" : null);
  const text = textOf(item.content ?? item.output);
  if (role === null || !text) return null;
  const from = { user: "user", assistant: "assistant" }[role] ?? "system";
  return html`<li class=${`message from-${from}`}>
    <div class="message-head"><span class="role">${["user", "assistant", "system", "tool"].includes(role) ? t(`role.${role}`) : role}</span></div>
    <${Text} value=${text} />
  </li>`;
}

// A call and its output in the same step are shown as one.
function withOutputs(items) {
  const outputs = new Map(items.filter((item) => item.type === "function_call_output").map((item) => [item.call_id, item]));
  const shown = new Set();
  for (const item of items) {
    if (item.type === "function_call" && outputs.has(item.call_id)) shown.add(outputs.get(item.call_id));
  }
  return items.filter((item) => !shown.has(item)).map((item) => (item.type === "function_call" && outputs.has(item.call_id) ? { ...item, output: textOf(outputs.get(item.call_id).output) } : item));
}
