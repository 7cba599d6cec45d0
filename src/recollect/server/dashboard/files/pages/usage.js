// The tokens that models cost, over time: for chats, and for learning.
import { html } from "../lib.js";
import { get, part } from "../api.js";
import { number, t } from "../i18n.js";
import { useLive } from "../live.js";
import { Empty, Failure, Heading, Loading, Panel } from "../parts.js";
import { Plot } from "../plot.js";
import { state } from "../store.js";

const EVERY = 60000; // milliseconds
const CONVERSATIONS = 30; // the newest, whose chats are counted
const RUN_PAGES = 2; // of 200
const AT_ONCE = 4;
const HOURS_SHOWN = 48;

export function UsagePage() {
  const who = useLive((signal) => get("/v1/whoami", {}, signal), ["whoami of usage"], EVERY);
  const spent = useLive(readSpent, ["spent"], EVERY);
  return html`
    <div class="page-head"><${Heading} title=${t("nav.usage")}>${t("nav.usage")}</${Heading}><p class="lead">${t("usage.lead")}</p></div>
    <${Failure} error=${who.error ?? spent.error} retry=${spent.reload} />
    ${who.data && html`<${Today} who=${who.data} />`}
    ${spent.isLoading && html`<${Loading} />`}
    ${spent.data && html`
      <${Spent} title=${t("usage.chat")} rows=${spent.data.chats} note=${t("usage.chat.note", { n: number(spent.data.conversations) })} />
      <${Spent} title=${t("usage.learning")} rows=${spent.data.learning} note=${t("usage.learning.note", { n: number(spent.data.runs) })} />`}
  `;
}

function Today({ who }) {
  const { tokens_per_day: most, requests_per_minute: rate, retention_days: days } = who.limits;
  const without = t("usage.no_limit");
  return html`<${Panel} title=${t("usage.today")}>
    <dl class="figures">
      <div><dt>${t("usage.tokens_today")}</dt><dd>${number(who.tokens_used_today)}</dd></div>
      <div><dt>${t("usage.budget")}</dt><dd>${most ? number(most) : without}</dd></div>
      <div><dt>${t("usage.rate")}</dt><dd>${rate ? number(rate) : without}</dd></div>
      <div><dt>${t("usage.retention")}</dt><dd>${days ? number(days) : without}</dd></div>
    </dl>
    ${most && html`<div class="cover" role="img" aria-label=${`${number(who.tokens_used_today)} / ${number(most)}`}><i class="cover-remembered" style=${{ width: `${Math.min(100, (who.tokens_used_today / most) * 100)}%` }} /></div>`}
  </${Panel}>`;
}

function Spent({ title, rows, note }) {
  const buckets = inBuckets(rows);
  return html`<${Panel} title=${title}>
    ${buckets.length ? html`<${Plot} title=${title} rows=${buckets} names=${[t("tokens.input"), t("tokens.output")]} head=${t("usage.when")} />` : html`<${Empty} title=${t("usage.none")}>${t("usage.none.why")}</${Empty}>`}
    <p class="hint">${note}</p>
  </${Panel}>`;
}

// --- what was spent: [time, input, output] ---

async function readSpent(signal) {
  const page = await get("/v1/conversations", { limit: CONVERSATIONS }, signal);
  const [chats, runs] = await Promise.all([readChats(page.items, signal), readRuns(signal)]);
  const learning = runs.flatMap((run) => [...run.stages, ...run.failures].map((each) => [each.finished_at ?? each.failed_at, each.prompt_tokens, each.completion_tokens]));
  return { chats, learning: learning.filter(costs), conversations: page.items.length, runs: runs.length };
}

const costs = ([, input, output]) => input + output > 0;

async function readChats(conversations, signal) {
  const waiting = [...conversations];
  const found = [];
  const work = async () => {
    for (let each = waiting.pop(); each; each = waiting.pop()) {
      const usage = await get(`/v1/conversations/${part(each.conversation_id)}/usage`, {}, signal).catch(goneSince);
      for (const turn of usage.turns) found.push([turn.finished_at ?? turn.started_at, turn.input_tokens, turn.output_tokens]);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found.filter(costs);
}

function goneSince(error) {
  if (error.status === 404) return { turns: [] };
  throw error;
}

async function readRuns(signal) {
  const found = [];
  let cursor;
  for (let count = 0; count < RUN_PAGES; count += 1) {
    const page = await get("/v1/runs", { cursor, limit: 200 }, signal);
    found.push(...page.items);
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  return found;
}

// By hours if all is of the last days, else by days; empty ones between are shown, for time goes on.
export function inBuckets(rows) {
  if (!rows.length) return [];
  const times = rows.map(([at]) => new Date(at).getTime());
  const isShort = Math.max(...times) - Math.min(...times) < HOURS_SHOWN * 3600000;
  const floor = (time) => {
    const at = new Date(time);
    if (isShort) at.setMinutes(0, 0, 0);
    else at.setHours(0, 0, 0, 0);
    return at;
  };
  const buckets = new Map();
  const last = Math.max(...times);
  for (let at = floor(Math.min(...times)); at <= last; isShort ? at.setHours(at.getHours() + 1) : at.setDate(at.getDate() + 1)) {
    buckets.set(at.getTime(), [0, 0]);
  }
  rows.forEach(([, input, output], index) => {
    const sums = buckets.get(floor(times[index]).getTime());
    sums[0] += input;
    sums[1] += output;
  });
  const parts = isShort ? { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" };
  const told = new Intl.DateTimeFormat(state.language === "zh" ? "zh-CN" : "en-GB", parts);
  return [...buckets].map(([at, sums]) => [told.format(at), ...sums]);
}
