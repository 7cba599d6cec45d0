// The model's view of a conversation, with its own strategy or a preview of another.
import { html, useEffect, useState } from "../lib.js";
import { call, get, part } from "../api.js";
import { number, t } from "../i18n.js";
import { Formatted } from "../formatted.js";
import { useLive } from "../live.js";
import { Empty, Failure, Field, Loading, Text } from "../parts.js";
import { announce } from "../store.js";
import { textOf } from "../text.js";
import { Call } from "./call.js";

const KNOBS = {
  trim: ["max_user_turns", "keep_last_user_turns"],
  summarize: ["max_user_turns", "keep_last_user_turns"],
  compact: ["compact_trigger_turns", "compact_keep"],
};
const AT_FIRST = { max_user_turns: 20, keep_last_user_turns: 5, compact_trigger_turns: 8, compact_keep: 2 };

export function View({ id, sign, total }) {
  const path = `/v1/conversations/${part(id)}`;
  const [tried, tryOut] = useState(null); // a strategy to preview, without saving it
  const settings = useLive((signal) => get(`${path}/memory`, {}, signal), ["memory settings", id, sign]);
  const view = useLive((signal) => get(`${path}/view`, tried ?? {}, signal), ["view", id, sign, tried]);
  const reload = () => {
    tryOut(null);
    settings.reload();
    view.reload();
  };
  return html`
    <${Failure} error=${settings.error} retry=${settings.reload} />
    ${settings.data && html`<${Strategy} path=${path} settings=${settings.data} key=${settings.data.version} tried=${tried} tryOut=${tryOut} changed=${reload} />`}
    ${tried && settings.data && html`<p class="notice" role="status">${t("strategy.tried")} <button type="button" class="small" onClick=${() => tryOut(null)}>${t("strategy.own")}</button></p>`}
    <${Failure} error=${view.error} retry=${view.reload} />
    ${view.isLoading && html`<${Loading} />`}
    ${view.data && html`<p class="hint" role="status">${seen(view.data, total)}</p><${Memories} block=${view.data.memories} /><${Items} items=${view.data.items} /><${Tail} block=${view.data.tail} />`}
  `;
}

// The page about the user that follows the instructions of the agent.
function Memories({ block }) {
  if (!block) return html`<p class="hint">${t("view.no_memories")}</p>`;
  return html`<section class="message from-system memories-seen" aria-label=${t("view.memories")}>
    <div class="message-head"><span class="role">${t("view.memories")}</span></div>
    <${Text} value=${block} most=${2000} />
  </section>`;
}

// What is remembered about the newest message.
function Tail({ block }) {
  return block && html`<section class="message from-system memories-seen" aria-label=${t("view.tail")}>
    <div class="message-head"><span class="role">${t("view.tail")}</span></div>
    <${Text} value=${block} most=${2000} />
  </section>`;
}

// Even if no item is missing, some can be shortened.
function seen({ items, memory_strategy: strategy }, total) {
  const isWhole = (total ?? 0) <= items.length;
  const words = !isWhole ? "view.some" : strategy && strategy.mode !== "none" ? "view.items" : "view.all";
  return t(words, { n: number(items.length), of: number(total ?? items.length) });
}

function Strategy({ path, settings, tried, tryOut, changed }) {
  const stored = settings.memory_strategy;
  const [mode, setMode] = useState(stored?.mode ?? "");
  const [values, setValues] = useState({ ...AT_FIRST, ...stored });
  const [error, setError] = useState(null);
  const knobs = Object.fromEntries((KNOBS[mode] ?? []).map((name) => [name, Number(values[name])]));
  const chosen = mode ? { mode, ...knobs } : null;
  const look = (event) => {
    event.preventDefault();
    tryOut(chosen);
  };
  const keep = async () => {
    try {
      await call("PATCH", `${path}/memory`, { body: { memory_strategy: chosen }, headers: { "If-Match": `"${settings.version}"` } });
      setError(null);
      announce(t("strategy.changed"));
      changed();
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    if (!tried) setMode(stored?.mode ?? "");
  }, [tried]);
  return html`<form class="strategy" aria-label=${t("strategy.title")} onSubmit=${look}>
    <${Field} label=${t("strategy.title")}>
      <select value=${mode} onChange=${(event) => setMode(event.target.value)}>
        ${["", "none", "trim", "summarize", "compact"].map((name) => html`<option value=${name} selected=${name === mode}>${t(`strategy.${name || "agent"}`)}</option>`)}
      </select>
    </${Field}>
    ${(KNOBS[mode] ?? []).map(
      (name) => html`<${Field} label=${t(`knob.${name}`)}><input type="number" min=${name === "keep_last_user_turns" ? 0 : 1} required value=${values[name]} onInput=${(event) => setValues({ ...values, [name]: event.target.value })} /></${Field}>`,
    )}
    <div class="filter-buttons">
      <button type="submit" class="primary">${t("strategy.try")}</button>
      <button type="button" onClick=${keep}>${t("strategy.apply")}</button>
    </div>
    <p class="hint">${t("strategy.note")}</p>
    <${Failure} error=${error} />
  </form>`;
}

function Items({ items }) {
  if (!items.length) return html`<${Empty} title=${t("view.none")} />`;
  const outputs = new Map(items.filter((item) => item.output !== undefined).map((item) => [item.call_id, item.output]));
  return html`<ol class="messages">${items.map((item, index) => {
    if (item.type === "function_call") return html`<${Call} key=${index} call=${{ name: item.name, input: item.arguments, output: outputs.get(item.call_id) }} />`;
    if (item.output !== undefined) return null;
    const role = ["user", "assistant", "system"].includes(item.role) ? item.role : "system";
    return html`<li class=${`message from-${role}`} key=${index}>
      <div class="message-head"><span class="role">${t(`role.${role}`)}</span></div>
      <${Formatted} value=${item.content === undefined ? JSON.stringify(item) : textOf(item.content)} />
    </li>`;
  })}</ol>`;
}
