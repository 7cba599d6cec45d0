// Token usage over time, for chats and for learning.
import { html } from "../lib.js";
import { get } from "../api.js";
import { number, t } from "../i18n.js";
import { useLive } from "../live.js";
import { Choice, Empty, Failure, Heading, Loading, Name, Panel } from "../parts.js";
import { Plot } from "../plot.js";
import { go } from "../routes.js";
import { state } from "../store.js";

const EVERY = 60000; // milliseconds
const SPANS = ["7", "30", "90", "365"]; // days
const DAY = 86400000; // milliseconds

export function UsagePage({ query }) {
  const days = SPANS.includes(query.days) ? query.days : "30";
  const by = query.by === "agent" ? "agent" : "model";
  const who = useLive((signal) => get("/v1/whoami", {}, signal), ["whoami of usage"], EVERY);
  const spent = useLive((signal) => get("/v1/usage", { since: dayBefore(days - 1), by }, signal), ["spent", days, by], EVERY);
  return html`
    <div class="page-head"><${Heading} title=${t("nav.usage")}>${t("nav.usage")}</${Heading}><p class="lead">${t("usage.lead")}</p></div>
    <${Failure} error=${who.error ?? spent.error} retry=${spent.reload} />
    ${who.data && html`<${Today} who=${who.data} />`}
    <div class="choices">
      <${Choice} label=${t("usage.span")} value=${days} onChange=${(name) => go(["usage"], { days: name, by })} options=${SPANS.map((name) => [name, t("usage.days", { n: name })])} />
      <${Choice} label=${t("usage.by")} value=${by} onChange=${(name) => go(["usage"], { days, by: name })} options=${[["model", t("usage.by_model")], ["agent", t("usage.by_agent")]]} />
    </div>
    ${spent.isLoading && html`<${Loading} />`}
    ${spent.data && ["chat", "learning"].map((kind) => html`<${Spent} key=${kind} title=${t(`usage.${kind}`)} spent=${spent.data} kind=${kind} by=${by} />`)}
  `;
}

// Days are in UTC, like budgets.
function dayBefore(days) {
  return new Date(Date.now() - days * DAY).toISOString().slice(0, 10);
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

function Spent({ title, spent, kind, by }) {
  const items = spent.items.filter((item) => item.kind === kind);
  if (!items.length) return html`<${Panel} title=${title}><${Empty} title=${t("usage.none")}>${t("usage.none.why")}</${Empty}></${Panel}>`;
  return html`<${Panel} title=${title}>
    <${Plot} title=${title} rows=${byDay(items, spent)} names=${[t("tokens.input"), t("tokens.output")]} head=${t("usage.when")} />
    <${Names} title=${title} items=${items} by=${by} />
  </${Panel}>`;
}

// Totals, highest first.
function Names({ title, items, by }) {
  const sums = new Map();
  for (const item of items) {
    const name = (by === "agent" ? item.agent_id : item.model) || "–";
    const [requests, input, output] = sums.get(name) ?? [0, 0, 0];
    sums.set(name, [requests + item.requests, input + item.input_tokens, output + item.output_tokens]);
  }
  const rows = [...sums].sort(([, one], [, other]) => other[1] + other[2] - one[1] - one[2]);
  const head = [t(by === "agent" ? "filter.agent" : "usage.model"), t("usage.requests"), t("tokens.input"), t("tokens.output")];
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${`${title}: ${head[0]}`}><table>
    <thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
    <tbody>${rows.map(([name, values]) => html`<tr key=${name}><th scope="row"><${Name} value=${name} most=${60} /></th>${values.map((value) => html`<td>${number(value)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

// [day, input, output] from the first day with usage. Days without usage in between are included.
function byDay(items, { until }) {
  const sums = new Map();
  const last = Date.parse(until);
  for (let at = Math.min(Date.parse(items[0].day), last - 6 * DAY); at <= last; at += DAY) sums.set(new Date(at).toISOString().slice(0, 10), [0, 0]);
  for (const { day, input_tokens: input, output_tokens: output } of items) {
    const sum = sums.get(day);
    sum[0] += input;
    sum[1] += output;
  }
  const told = new Intl.DateTimeFormat(state.language === "zh" ? "zh-CN" : "en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  return [...sums].map(([day, sum]) => [told.format(new Date(day)), ...sum]);
}
