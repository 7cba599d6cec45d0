// Bar charts with uPlot, which loads with the first chart. A table has the same data.
import { html, useEffect, useRef } from "./lib.js";
import { number, t } from "./i18n.js";
import { Fold } from "./parts.js";
import { state } from "./store.js";

const HEIGHT = 170; // pixels

let library = null;

function loadLibrary() {
  if (!library) {
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/dashboard/vendor/uplot.css" });
    document.head.append(style);
    library = import("./vendor/uplot.js").then((module) => module.default);
  }
  return library;
}

// `rows` are `[label, first, second]`; the second value is stacked on the first.
export function Plot({ title, rows, names, head }) {
  const place = useRef(null);
  const content = JSON.stringify([rows, names, state.theme, state.language]);
  useEffect(() => {
    let plot = null;
    let isOver = false;
    const resize = new ResizeObserver(([entry]) => plot?.setSize({ width: entry.contentRect.width, height: HEIGHT }));
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const draw = async () => {
      const UPlot = await loadLibrary();
      if (isOver) return;
      plot?.destroy();
      plot = new UPlot(options(UPlot, place.current.clientWidth, rows, names), stacked(rows), place.current);
      for (const canvas of place.current.querySelectorAll("canvas")) canvas.setAttribute("aria-hidden", "true");
    };
    draw();
    resize.observe(place.current);
    dark.addEventListener("change", draw);
    return () => {
      isOver = true;
      resize.disconnect();
      dark.removeEventListener("change", draw);
      plot?.destroy();
    };
  }, [content]);
  return html`<figure class="plot">
    <div class="legend" aria-hidden="true">${names.map((name, index) => html`<span class=${`key key-${index}`}>${name}</span>`)}</div>
    <div ref=${place} class="plot-place" role="img" aria-label=${title}></div>
    <${Fold} summary=${t("plot.table")}><${Table} head=${[head, ...names]} rows=${rows} caption=${title} /></${Fold}>
  </figure>`;
}

function Table({ head, rows, caption }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table>
    <caption class="visually-hidden">${caption}</caption>
    <thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
    <tbody>${rows.map(([label, ...values]) => html`<tr><th scope="row">${label}</th>${values.map((value) => html`<td>${number(value)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

function stacked(rows) {
  const places = rows.map((_, index) => index);
  // Draw order: first the sum, then the first part on top of it.
  return [places, rows.map((row) => row[1] + (row[2] ?? 0)), rows.map((row) => row[1])];
}

// Resolve a color of the current theme: a canvas cannot use CSS variables.
function color(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function options(UPlot, width, rows, names) {
  const bars = UPlot.paths.bars({ size: [0.62, 46, 2], radius: 0.18 });
  const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const wide = 16 + 7 * Math.max(...rows.map(([label]) => label.length)); // approximate label width in pixels
  const step = Math.max(1, Math.ceil((Math.max(rows.length, 4) * wide) / Math.max(width - 60, 60)));
  const labels = (_, splits) => splits.map((at) => (Number.isInteger(at) && at % step === 0 ? (rows[at]?.[0] ?? "") : ""));
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: [-0.6, Math.max(rows.length, 4) - 0.4] }, y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 28, gap: 6, splits: () => rows.map((_, index) => index), values: labels },
      { ...axis, size: 44, values: (_, splits) => splits.map((at) => (Number.isInteger(at) ? number(at, { notation: "compact" }) : "")) },
    ],
    series: [
      {},
      { label: names[1], fill: color("--plot-1"), width: 0, paths: bars, points: { show: false } },
      { label: names[0], fill: color("--plot-0"), width: 0, paths: bars, points: { show: false } },
    ],
  };
}
