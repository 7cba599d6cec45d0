// Progress of learning, and failed runs.
import { html } from "../lib.js";
import { call, get, part } from "../api.js";
import { count, number, t } from "../i18n.js";
import { useLive, usePages } from "../live.js";
import { ActionButton, Ago, At, Chip, Choice, Empty, Failure, Fold, Heading, Loading, MoreButton, Name, Owner, Panel, Text, learnerName } from "../parts.js";
import { go, link } from "../routes.js";
import { announce } from "../store.js";

const EVERY = 4000; // milliseconds
const STATUSES = ["failed", "running", "pending", "done"];
const KINDS = { failed: "bad", running: "accent", pending: "warn", done: "good" };

export function RunStatus({ status }) {
  return html`<${Chip} kind=${KINDS[status] ?? "plain"}>${t(`status.${status}`)}</${Chip}>`;
}

export function RunsPage({ query }) {
  const status = STATUSES.includes(query.status) ? query.status : "";
  const pages = usePages(
    (cursor, signal) => get("/v1/runs", { status, order: "newest", cursor, limit: 50 }, signal),
    ["runs", status],
    (run) => run.run_id,
    EVERY,
  );
  return html`
    <div class="page-head"><${Heading} title=${t("nav.runs")}>${t("nav.runs")}</${Heading}><p class="lead">${t("runs.lead")}</p></div>
    <${Coverage} />
    <${Choice} label=${t("runs.status")} value=${status} onChange=${(name) => go(["runs"], { status: name })} options=${[["", t("runs.all")], ...STATUSES.map((name) => [name, t(`status.${name}`)])]} />
    ${pages.isLoading && html`<${Loading} />`}
    <${Failure} error=${pages.error} retry=${pages.reload} />
    ${pages.data && !pages.items.length && html`<${Empty} title=${t(status === "failed" ? "runs.none_failed" : "runs.none")}>${t("runs.none.why")}</${Empty}>`}
    ${pages.items.length > 0 && html`<ul class="rows">${pages.items.map((run) => html`<${Run} key=${run.run_id} run=${run} changed=${pages.reload} />`)}</ul>`}
    <${MoreButton} pages=${pages} />
  `;
}

function Coverage() {
  const { data, error, reload } = useLive((signal) => get("/v1/coverage", {}, signal), ["coverage"], EVERY);
  if (!data) return html`<${Failure} error=${error} retry=${reload} />`;
  const all = data.remembered + data.partial + data.pending + data.failed;
  if (!all) return html`<${Panel} title=${t("coverage.title")}><p class="hint">${t("coverage.none")}</p></${Panel}>`;
  const part = (name) => html`<i class=${`cover-${name}`} style=${{ width: `${(data[name] / all) * 100}%` }} />`;
  return html`<${Panel} title=${t("coverage.title")}>
    <p class="figure-line"><strong>${number(data.share, { style: "percent", maximumFractionDigits: 1 })}</strong> ${t("coverage.share", { n: number(all) })}</p>
    <div class="cover" aria-hidden="true">${["remembered", "partial", "pending", "failed"].map(part)}</div>
    <ul class="legend">${["remembered", "partial", "pending", "failed"].map((name) => html`<li class=${`key cover-key-${name}`}>${t(`coverage.${name}`)} <strong>${number(data[name])}</strong></li>`)}</ul>
    ${data.behind_seconds >= 1 ? html`<p class="hint">${t("coverage.behind", { n: number(Math.round(data.behind_seconds)) })}</p>` : null}
  </${Panel}>`;
}

function Run({ run, changed }) {
  const retry = async () => {
    await call("POST", `/v1/runs/${part(run.run_id)}/retry`);
    announce(t("runs.retried"));
    changed();
  };
  const tokens = [...run.stages, ...run.failures].reduce((sum, each) => sum + each.prompt_tokens + each.completion_tokens, 0);
  return html`<li class="row run">
    <div class="run-head">
      <${RunStatus} status=${run.status} />
      <a class="row-title" href=${link(["conversations", run.conversation_id])}><${Name} value=${run.title || t("conversation.empty")} most=${120} /></a>
      <span class="spacer" />
      ${run.status === "done" && html`<a class="run-result" href=${link(["memories", run.memory_id])}>${run.learned ? count("learned", run.learned) : t("learned.nothing")}</a>`}
      ${run.status === "failed" && html`<${ActionButton} class="primary small" act=${retry}>${t("runs.retry")}</${ActionButton}>`}
    </div>
    <p class="row-meta">
      <${Owner} agent=${run.agent_id} user=${run.user_id} />
      <span>${run.first_index === run.last_index ? t("runs.message", { n: run.first_index + 1 }) : t("runs.messages", { from: run.first_index + 1, to: run.last_index + 1 })}</span>
      <span>${learnerName(run.model)}</span>${tokens > 0 && html`<span>${count("tokens", tokens)}</span>`}<${Ago} at=${run.created_at} />
    </p>
    ${run.error && html`<p class="run-error"><${Text} value=${run.error} most=${300} /></p>`}
    ${run.stages.length + run.failures.length > 0 && html`<${Fold} summary=${t("runs.details")}><${Details} run=${run} /></${Fold}>`}
  </li>`;
}

function Details({ run }) {
  return html`<ul class="stages">
    ${run.stages.map((stage) => html`<li key=${stage.stage}><${Chip} kind="good">${t("status.done")}</${Chip}> <code>${stage.stage}</code> <span class="hint">${learnerName(stage.model)} · ${count("tokens", stage.prompt_tokens + stage.completion_tokens)} · <${At} at=${stage.finished_at} /></span></li>`)}
    ${["dropped", "masked"].map((what) => Object.keys(run[what]).length > 0 && html`<li key=${what}><${Chip} kind="warn">${t(`guard.${what}`)}</${Chip}> <span class="hint">${Object.entries(run[what]).map(([name, n]) => `${number(n)} × ${name}`).join(", ")}</span></li>`)}
    ${run.failures.map(
      (failure) => html`<li key=${`${failure.attempt} ${failure.stage}`}><${Chip} kind="bad">${t("runs.attempt", { n: failure.attempt })}</${Chip}> <code>${failure.stage}</code> <span class="hint"><${At} at=${failure.failed_at} /></span>
        <p class="label">${t("runs.answer")}</p><${Text} value=${failure.raw_response || "–"} most=${600} /></li>`,
    )}
  </ul>`;
}
