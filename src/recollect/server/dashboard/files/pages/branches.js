// The branches of a chat as a tree: one line per branch, one dot per turn.
import { html } from "../lib.js";
import { call, part } from "../api.js";
import { count, t } from "../i18n.js";
import { ActionButton, Chip, DangerButton, Name, Panel } from "../parts.js";
import { announce } from "../store.js";

const ROW = 62; // pixels, as in the style sheet
const STEP = 16;
const MOST_TURNS = 7; // dots with full spacing; more are compressed
const MOST_DOTS = 40; // a line with more turns has a dot at each end only

export function Branches({ id, branches, changed }) {
  const rows = ordered(branches);
  const act = async (method, path, body, words) => {
    await call(method, `/v1/conversations/${part(id)}/branches/${path}`, { body });
    announce(words);
    changed();
  };
  return html`<${Panel} title=${t("branches.title")}>
    <div class="branches">
      <${Tree} rows=${rows} />
      <ul>${rows.map(
        (branch) => html`<li key=${branch.name} class=${branch.is_current ? "current" : ""}>
          <div class="branch-words">
            <div class="branch-name"><${Name} value=${branch.name} most=${60} /></div>
            <div class="branch-meta">${count("turns", branch.user_turn_count)}${branch.from_branch !== null ? html`, ${t("branches.from", { turn: branch.from_turn })} <${Name} value=${branch.from_branch} most=${40} />` : ""}</div>
          </div>
          <div class="branch-actions">
            ${branch.is_current && html`<${Chip} kind="accent">${t("branches.current")}</${Chip}>`}
            ${!branch.is_current && html`<${ActionButton} class="small" aria-label=${t("branches.switch_to", { name: branch.name })} act=${() => act("PUT", "current", { name: branch.name }, t("branches.switched", { name: branch.name }))}>${t("branches.switch")}</${ActionButton}>`}
            ${!branch.is_current && branch.name !== "main" && html`<${DangerButton} small bare label=${t("action.delete")} title=${t("branches.delete")} warning=${t("branches.delete.why", { name: branch.name })} act=${() => act("DELETE", part(branch.name), undefined, t("branches.deleted"))} />`}
          </div>
        </li>`,
      )}</ul>
    </div>
  </${Panel}>`;
}

// Each branch follows its parent.
export function ordered(branches) {
  const names = new Set(branches.map((branch) => branch.name));
  const childrenOf = (name) => branches.filter((branch) => branch.from_branch === name);
  const below = (branch) => [branch, ...childrenOf(branch.name).flatMap(below)];
  return branches.filter((branch) => branch.from_branch === null || !names.has(branch.from_branch)).flatMap(below);
}

export function Tree({ rows }) {
  const most = Math.max(1, ...rows.map((branch) => branch.user_turn_count));
  const step = most > MOST_TURNS ? (STEP * MOST_TURNS) / most : STEP;
  const width = step * most + 10;
  const x = (turn) => step * (turn - 0.5) + 6;
  const y = (row) => ROW * row + ROW / 2;
  return html`<svg class="tree" width=${width} height=${ROW * rows.length} aria-hidden="true">
    ${rows.map((branch, row) => {
      const start = branch.from_turn ?? 1;
      const parent = rowWithTurn(rows, branch);
      const own = dots(start, branch.user_turn_count);
      const last = Math.max(branch.user_turn_count, start);
      return html`<g class=${branch.is_current ? "lane current" : "lane"}>
        ${parent >= 0 && html`<path d=${bend(x(Math.max(start - 1, 0.6)), y(parent), x(start), y(row))} />`}
        <path d=${`M${x(start)} ${y(row)}H${x(last)}`} />
        ${own.map((turn) => html`<circle cx=${x(turn)} cy=${y(row)} r=${Math.min(4.5, step / 3)} />`)}
        ${!own.length && html`<circle class="open" cx=${x(start)} cy=${y(row)} r="4.5" />`}
      </g>`;
    })}
  </svg>`;
}

function dots(first, last) {
  if (last - first >= MOST_DOTS) return [first, last];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}

// The line with the turn before a branch. It can be an ancestor of its parent.
function rowWithTurn(rows, branch) {
  let row = rows.findIndex((each) => each.name === branch.from_branch);
  for (let steps = 0; steps < rows.length && row >= 0; steps += 1) {
    const { from_branch: parent, from_turn: first } = rows[row];
    if (parent === null || first < branch.from_turn) break;
    row = rows.findIndex((each) => each.name === parent);
  }
  return row;
}

function bend(fromX, fromY, toX, toY) {
  return `M${fromX} ${fromY}V${toY - 8}Q${fromX} ${toY} ${Math.min(fromX + 8, toX)} ${toY}H${toX}`;
}
