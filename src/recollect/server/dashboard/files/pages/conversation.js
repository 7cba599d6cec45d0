// One conversation: what was said, what the model sees of it, its branches, its tokens, and how far it is learned.
import { html, useEffect, useRef, useState } from "../lib.js";
import { call, get, part } from "../api.js";
import { count, number, t } from "../i18n.js";
import { useLive } from "../live.js";
import { ActionButton, At, Choice, Chip, DangerButton, Empty, Failure, Gone, Heading, Loading, Name, Owner, Panel, Text } from "../parts.js";
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

export function ConversationPage({ id, query }) {
  const path = `/v1/conversations/${part(id)}`;
  const [shown, show] = useState("said");
  const pulse = useLive(async (signal) => ({ runs: (await get(`${path}/runs`, { limit: 100 }, signal)).items, usage: await get(`${path}/usage`, {}, signal) }), ["pulse", id], EVERY);
  const sign = pulse.data ? [pulse.data.runs.length, pulse.data.usage.turns.map((turn) => turn.status)] : null;
  const whole = useLive(async (signal) => (sign ? readWhole(path, signal) : null), ["conversation", id, sign]);
  const [latest, keep] = useState(null); // what is shown while it is read again
  useEffect(() => {
    if (whole.data) keep(whole.data);
  }, [whole.data]);
  if (pulse.error?.status === 404 || whole.error?.status === 404) {
    return html`<div class="page-head"><${Heading} title=${t("conversation.gone")}>${t("nav.conversations")}</${Heading}></div><${Gone} what="conversation.gone" back=${["conversations"]} />`;
  }
  const data = whole.data ?? latest;
  if (!data || !pulse.data) return html`<${Failure} error=${pulse.error ?? whole.error} retry=${pulse.reload} />${!pulse.error && !whole.error && html`<${Loading} />`}`;
  const { conversation, events, branches } = data;
  const title = titleOf(conversation.summary) || t("conversation.empty");
  return html`
    <${Crumbs} />
    <div class="page-head">
      <${Heading} title=${title.slice(0, 60)}><${Name} value=${title} most=${120} /></${Heading}>
      <${Facts} conversation=${conversation} path=${path} reload=${whole.reload} />
    </div>
    <div class="columns">
      <div class="column-main">
        <${Choice} label=${t("view.switch")} value=${shown} onChange=${show} options=${[["said", t("view.said")], ["seen", t("view.seen")]]} />
        ${shown === "said"
          ? html`<${Said} messages=${conversation.conversation_data.messages} events=${events} turns=${pulse.data.usage.turns} target=${query.message} />`
          : html`<${View} id=${id} sign=${sign} total=${branches.find((branch) => branch.is_current)?.item_count} />`}
      </div>
      <div class="column-side">
        <${Learned} runs=${pulse.data.runs} memory=${conversation.memory_id} />
        <${Branches} id=${id} branches=${branches} changed=${whole.reload} />
        <${Tokens} usage=${pulse.data.usage} />
      </div>
    </div>
  `;
}

async function readWhole(path, signal) {
  const [conversation, events, branches] = await Promise.all([get(path, {}, signal), readEvents(path, signal), get(`${path}/branches`, {}, signal)]);
  return { conversation, events, branches: branches.items };
}

async function readEvents(path, signal) {
  const found = [];
  let cursor;
  do {
    const page = await get(`${path}/events`, { cursor, limit: 200 }, signal);
    found.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
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
    <span class="spacer" />
    ${!conversation.closed_at && html`<${ActionButton} act=${close}>${t("conversation.close")}</${ActionButton}>`}
    <${DangerButton} label=${t("action.delete")} title=${t("conversation.delete")} warning=${t("conversation.delete.why")} act=${erase} />
  </div>`;
}

// --- what was said ---

function Said({ messages, events, turns, target }) {
  const aim = messages.findIndex((message) => message.message_id === target);
  const [most, setMost] = useState(Math.max(AT_ONCE, aim + 10));
  const turnOf = new Map();
  for (const turn of turns) {
    turnOf.set(turn.user_message_id, turn);
    turnOf.set(turn.assistant_message_id, turn);
  }
  const calls = callsByTurn(events, turns);
  if (!messages.length) return html`<${Empty} title=${t("conversation.empty")} />`;
  let branch = "main";
  return html`
    ${target && aim < 0 && html`<p class="notice" role="status">${t("message.gone")}</p>`}
    <ol class="messages">
      ${messages.slice(0, most).map((message) => {
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
    ${messages.length > most && html`<div class="more"><button type="button" onClick=${() => setMost(most + AT_ONCE)}>${t("messages.more", { n: number(messages.length - most) })}</button></div>`}
  `;
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
      <span class="role">${t(`role.${message.role}`)}</span>
      ${turn && turn.total_tokens > 0 && html`<span class="tokens">${count("tokens", turn.total_tokens)}</span>`}
      <${At} at=${message.created_at} />
    </div>
    <${Text} value=${message.content} />
  </li>`;
}

// A call belongs to the last turn that had begun when it was made.
function callsByTurn(events, turns) {
  const found = new Map();
  const outputs = new Map(events.filter((event) => event.call_output !== null).map((event) => [event.tool_call_id, event.call_output]));
  for (const event of events) {
    if (!event.item_type.endsWith("_call")) continue;
    const turn = turns.findLast((each) => each.started_at <= event.created_at);
    if (!turn) continue;
    const told = { id: `call ${event.sequence_number}`, name: event.tool_name ?? event.item_type, input: event.call_arguments, output: outputs.get(event.tool_call_id) };
    found.set(turn.turn_id, [...(found.get(turn.turn_id) ?? []), told]);
  }
  return found;
}

// --- beside it ---

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
