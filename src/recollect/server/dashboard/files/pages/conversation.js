// One conversation: messages, the model's view, branches, tokens, learning progress.
import { html, useEffect, useRef, useState } from "../lib.js";
import { call, get, part } from "../api.js";
import { count, number, t } from "../i18n.js";
import { Formatted, FormatSwitch, useMarkdown } from "../formatted.js";
import { useLive } from "../live.js";
import { ActionButton, At, Choice, Chip, DangerButton, Empty, Failure, Gone, Heading, Labels, Loading, Name, Owner, Panel, Speaker } from "../parts.js";
import { Plot } from "../plot.js";
import { go, link } from "../routes.js";
import { announce } from "../store.js";
import { titleOf } from "../text.js";
import { Branches } from "./branches.js";
import { Call } from "./call.js";
import { RunStatus } from "./runs.js";
import { View } from "./view.js";

const EVERY = 3000; // milliseconds
const AT_ONCE = 100; // messages
const PAGE = 200; // rows per request
const MOST_EVENTS = 2000; // events to load for the shown messages

export function ConversationPage({ id, query }) {
  const path = `/v1/conversations/${part(id)}`;
  const [shown, show] = useState("said");
  const [chosen, choose] = useState(null);
  const span = chosen && chosen.target === query.message ? chosen : { target: query.message, first: null, most: AT_ONCE }; // range of shown messages
  const before = useRef(null);
  useMarkdown(); // loads while the messages do
  const pulse = useLive((signal) => readPulse(id, path, before, signal), ["pulse", id], EVERY);
  const sign = pulse.data?.sign ?? null;
  const whole = useLive(async (signal) => (sign ? readShown(path, span, pulse.data, signal) : null), ["conversation", id, span, sign]);
  const branches = useLive(async (signal) => (sign ? (await get(`${path}/branches`, {}, signal)).items : null), ["branches", id, sign]);
  const [latest, keep] = useState(null); // shown while it reloads
  useEffect(() => {
    if (whole.data) keep(whole.data);
  }, [whole.data]);
  if (pulse.error?.status === 404 || whole.error?.status === 404) {
    return html`<div class="page-head"><${Heading} title=${t("conversation.gone")}>${t("nav.conversations")}</${Heading}></div><${Gone} what="conversation.gone" back=${["conversations"]} />`;
  }
  const data = whole.data ?? latest;
  if (!data || !pulse.data) return html`<${Failure} error=${pulse.error ?? whole.error} retry=${pulse.reload} />${!pulse.error && !whole.error && html`<${Loading} />`}`;
  const { outline, runs, usage } = pulse.data;
  const title = titleOf(outline.summary) || t("conversation.empty");
  return html`
    <${Crumbs} />
    <div class="page-head">
      <${Heading} title=${title.slice(0, 60)}><${Name} value=${title} most=${120} /></${Heading}>
      <${Facts} conversation=${outline} path=${path} reload=${pulse.reload} />
    </div>
    <div class="columns">
      <div class="column-main">
        <div class="choices">
          <${Choice} label=${t("view.switch")} value=${shown} onChange=${show} options=${[["said", t("view.said")], ["seen", t("view.seen")]]} />
          <${FormatSwitch} />
        </div>
        ${shown === "said"
          ? html`<${Said} data=${data} total=${outline.turn_count} turns=${usage.turns} target=${query.message} setSpan=${(wider) => choose({ target: query.message, ...wider })} />`
          : html`<${View} id=${id} sign=${sign} total=${branches.data?.find((branch) => branch.is_current)?.item_count} />`}
      </div>
      <div class="column-side">
        <${Learned} runs=${runs} memory=${outline.memory_id} />
        ${branches.data && html`<${Branches} id=${id} branches=${branches.data} changed=${branches.reload} />`}
        <${Tokens} usage=${usage} />
      </div>
    </div>
  `;
}

// A cheap change marker. Turns reload only if it changes, or while one is running.
async function readPulse(id, path, before, signal) {
  const readUsage = () => get(`${path}/usage`, {}, signal);
  const [outline, runs, first] = await Promise.all([
    get(`${path}/outline`, {}, signal),
    get("/v1/runs", { conversation_id: id, order: "newest", limit: 100 }, signal),
    before.current ? null : readUsage(),
  ]);
  const mark = JSON.stringify([id, outline.updated_at, outline.turn_count, outline.closed_at]);
  const isSame = before.current?.mark === mark && before.current.usage.turns.every((turn) => turn.status !== "running");
  const usage = first ?? (isSame ? before.current.usage : await readUsage());
  before.current = { mark: first ? null : mark, usage }; // data loaded with the outline can be older than it
  return { outline, runs: runs.items, usage, sign: [mark, runs.items.length, usage.turns.length, usage.turns.at(-1)?.status] };
}

async function readShown(path, span, { usage }, signal) {
  const { messages, isGone } = await readMessages(path, span, signal);
  const events = usage.turns.length && messages.length ? await readEvents(path, messages, signal) : [];
  return { messages, isGone, events };
}

async function readMessages(path, { target, first, most }, signal) {
  let place = first === null && target ? { around: target } : { from_index: first ?? 0 };
  const found = [];
  let isGone = false;
  while (place && found.length < most) {
    const query = { ...place, limit: Math.min(PAGE, most - found.length) };
    const page = await get(`${path}/messages`, query, signal).catch((error) => {
      if (error.status !== 404 || !place.around) throw error;
      return null;
    });
    isGone = isGone || !page;
    if (page) found.push(...page.items);
    place = !page ? { from_index: 0 } : page.next_cursor && { cursor: page.next_cursor };
  }
  return { messages: found, isGone };
}

// Events of the shown messages: an event never has a lower number than its message.
async function readEvents(path, messages, signal) {
  const end = messages.at(-1).created_at;
  const found = [];
  let place = { from_sequence: messages[0].message_index };
  while (place && found.length < MOST_EVENTS) {
    const page = await get(`${path}/events`, { ...place, limit: PAGE }, signal);
    found.push(...page.items);
    place = page.next_cursor && found.at(-1).created_at <= end ? { cursor: page.next_cursor } : null;
  }
  return found;
}

function Crumbs() {
  return html`<p class="crumbs"><a href=${link(["conversations"])}>← ${t("nav.conversations")}</a></p>`;
}

function Facts({ conversation, path, reload }) {
  const erase = async () => {
    await call("DELETE", path);
    announce(t("conversation.deleted"));
    go(["conversations"]);
  };
  const close = async () => {
    await call("POST", `${path}/close`);
    announce(t("conversation.closed"));
    reload();
  };
  return html`<div class="facts">
    <${Owner} agent=${conversation.agent_id} user=${conversation.user_id} />
    <span>${count("messages", conversation.turn_count)}</span>
    <span><${At} at=${conversation.updated_at} /></span>
    ${conversation.closed_at ? html`<${Chip}>${t("conversation.closed")}</${Chip}>` : html`<${Chip} kind="good">${t("conversation.open")}</${Chip}>`}
    <${Labels} of=${conversation} />
    <span class="spacer" />
    ${!conversation.closed_at && html`<${ActionButton} act=${close}>${t("conversation.close")}</${ActionButton}>`}
    <${DangerButton} label=${t("action.delete")} title=${t("conversation.delete")} warning=${t("conversation.delete.why")} act=${erase} />
  </div>`;
}

// --- messages ---

function Said({ data, total, turns, target, setSpan }) {
  const { messages, events, isGone } = data;
  const turnOf = new Map();
  for (const turn of turns) {
    turnOf.set(turn.user_message_id, turn);
    turnOf.set(turn.assistant_message_id, turn);
  }
  const calls = callsByTurn(events, turns);
  if (!total || !messages.length) return html`<${Empty} title=${t("conversation.empty")} />`;
  const first = messages[0].message_index;
  const left = total - messages.length; // an erased message leaves a gap in the positions
  const earlier = Math.min(first, left);
  const widen = (by) => setSpan({ first: Math.max(0, first - by), most: messages.length + AT_ONCE });
  let branch = "main";
  return html`
    ${total > AT_ONCE && html`<${Jump} total=${total} setSpan=${setSpan} />`}
    ${isGone && html`<p class="notice" role="status">${t("message.gone")}</p>`}
    ${earlier > 0 && html`<div class="more"><button type="button" onClick=${() => widen(AT_ONCE)}>${t("messages.earlier", { n: number(earlier) })}</button></div>`}
    <ol class="messages">
      ${messages.map((message) => {
        const turn = turnOf.get(message.message_id);
        const isNewBranch = turn?.branch && turn.branch !== branch;
        if (isNewBranch) branch = turn.branch;
        const isAnswer = turn && message.message_id === turn.assistant_message_id;
        return html`
          ${isNewBranch && html`<li class="divider" key=${`${message.message_id} branch`}><span>${t("branches.on")} <${Name} value=${turn.branch} most=${40} /></span></li>`}
          ${isAnswer && (calls.get(turn.turn_id) ?? []).map((each) => html`<${Call} key=${each.id} call=${each} />`)}
          <${Message} key=${message.message_id} message=${message} turn=${isAnswer ? turn : null} isTarget=${message.message_id === target} />
          ${turn && !isAnswer && turn.status === "failed" && html`<li class="notice notice-bad" key=${turn.turn_id}>${t("turn.failed")} <code>${turn.error_code}</code></li>`}
        `;
      })}
    </ol>
    ${left - earlier > 0 && html`<div class="more"><button type="button" onClick=${() => widen(0)}>${t("messages.more", { n: number(left - earlier) })}</button></div>`}
  `;
}

// A conversation of many messages is read in parts, from any place.
function Jump({ total, setSpan }) {
  const [place, setPlace] = useState("");
  const start = (number) => setSpan({ first: Math.max(0, Math.min(number, total - 1)), most: AT_ONCE });
  const go = (event) => {
    event.preventDefault();
    start(Number(place) - 1);
  };
  return html`<form class="jump" onSubmit=${go}>
    <button type="button" class="small" onClick=${() => start(0)}>${t("messages.first")}</button>
    <button type="button" class="small" onClick=${() => start(total - AT_ONCE)}>${t("messages.last")}</button>
    <label>${t("messages.go_to")} <input type="number" min="1" max=${total} required value=${place} onInput=${(event) => setPlace(event.target.value)} /></label>
    <button type="submit" class="small">${t("messages.go")}</button>
  </form>`;
}

function Message({ message, turn, isTarget }) {
  const place = useRef(null);
  useEffect(() => {
    if (!isTarget) return;
    place.current.scrollIntoView({ block: "center" });
    place.current.focus({ preventScroll: true });
  }, [isTarget]);
  return html`<li class=${`message from-${message.role} ${isTarget ? "target" : ""}`} ref=${place} tabindex=${isTarget ? -1 : undefined} id=${`message-${message.message_index}`}>
    <div class="message-head">
      <span class="role"><${Speaker} of=${message} /></span>
      ${turn && turn.total_tokens > 0 && html`<span class="tokens">${count("tokens", turn.total_tokens)}</span>`}
      <${At} at=${message.created_at} />
    </div>
    <${Formatted} value=${message.content} />
    ${message.attachments.length > 0 && html`<p class="hint">${t("message.attachments")}: ${message.attachments.map((each) => each.type).join(", ")}</p>`}
  </li>`;
}

// A tool call belongs to the last turn that started before it.
function callsByTurn(events, turns) {
  const found = new Map();
  const outputs = new Map(events.filter((event) => event.call_output !== null).map((event) => [event.tool_call_id, event.call_output]));
  for (const event of events) {
    if (!event.item_type.endsWith("_call")) continue;
    const turn = turns.findLast((each) => each.started_at <= event.created_at);
    if (!turn) continue;
    const toolCall = { id: `call ${event.sequence_number}`, name: event.tool_name ?? event.item_type, input: event.call_arguments, output: outputs.get(event.tool_call_id) };
    found.set(turn.turn_id, [...(found.get(turn.turn_id) ?? []), toolCall]);
  }
  return found;
}

// --- side column ---

function Learned({ runs, memory }) {
  const counted = {};
  for (const run of runs) counted[run.status] = (counted[run.status] ?? 0) + 1;
  const isDone = runs.length > 0 && counted.done === runs.length;
  return html`<${Panel} title=${t("learned.title")}>
    <p role="status" class="learned">
      ${!runs.length && t("learned.none")}
      ${isDone && html`<${RunStatus} status="done" /> ${t("learned.done")}`}
      ${!isDone && Object.entries(counted).map(([status, n]) => html`<span><${RunStatus} status=${status} /> ${number(n)} </span>`)}
    </p>
    ${memory && html`<p><a href=${link(["memories", memory])}>${t("learned.memory")} →</a></p>`}
  </${Panel}>`;
}

function Tokens({ usage }) {
  const rows = usage.turns.filter((turn) => turn.total_tokens > 0).map((turn, index) => [String(index + 1), turn.input_tokens, turn.output_tokens]);
  return html`<${Panel} title=${t("tokens.title")}>
    ${rows.length
      ? html`<p class="figure-line"><strong>${number(usage.totals.total_tokens)}</strong> ${t("tokens.in_all")}</p><${Plot} title=${t("tokens.title")} rows=${rows} names=${[t("tokens.input"), t("tokens.output")]} head=${t("tokens.turn")} />`
      : html`<p class="hint">${t("tokens.none")}</p>`}
  </${Panel}>`;
}
