// Messages as Markdown. The parser's tokens become elements of a fixed list: no HTML of a message is ever parsed,
// nothing is loaded from elsewhere, and links lead to the web or to mail only.
import { h, html, useMemo } from "./lib.js";
import { highlighted } from "./highlight.js";
import { visible } from "./text.js";
import createParser from "./vendor/markdown-it.js";

const SAFE_LINK = /^(?:https?:\/\/|mailto:)[^\s]+$/i;
const DEEPEST = 40; // levels; the parser leaves out what is deeper
const MOST_TOKENS = 15000; // a text of 50,000 characters has about half as many
const HEADING = /^h([1-6])$/;
const TAGS = new Set(["p", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "s"]);

const parser = createParser({ html: false, linkify: true, typographer: false, maxNesting: DEEPEST });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
parser.validateLink = (url) => SAFE_LINK.test(url); // any other link stays as it was written

export function Markdown({ text }) {
  const content = useMemo(() => contentOf(text), [text]);
  return html`<div class="markdown">${content}</div>`;
}

function contentOf(text) {
  const tokens = parser.parse(text, {});
  const count = tokens.reduce((sum, token) => sum + 1 + (token.children?.length ?? 0), 0);
  return count > MOST_TOKENS || tokens.some(isTooDeep) ? h("p", { class: "text" }, visible(text)) : nodesOf(tokens);
}

// A message with more levels or elements is shown as it was written: a browser takes long to lay it out.
function isTooDeep(token) {
  return token.level >= DEEPEST - 1 || (token.children ?? []).some(isTooDeep);
}

// Tokens are a flat list in which some open an element and others close it.
function nodesOf(tokens) {
  const open = [{ token: null, children: [] }];
  for (const token of tokens) {
    if (token.nesting === 1) {
      open.push({ token, children: [] });
    } else if (token.nesting === -1) {
      const { token: opened, children } = open.pop();
      open.at(-1).children.push(elementOf(opened, children));
    } else {
      open.at(-1).children.push(leafOf(token));
    }
  }
  return open[0].children;
}

function elementOf(token, children) {
  if (token.type === "link_open") return linkTo(token.attrGet("href"), children);
  if (token.hidden) return children; // a paragraph in a tight list
  const level = HEADING.exec(token.tag)?.[1];
  if (level) return h("p", { class: `heading heading-${level}` }, children); // the page has its own headings
  if (token.tag === "table") return h("div", { class: "scroll-wide", tabindex: 0 }, h("table", null, children));
  if (!TAGS.has(token.tag)) return children;
  const start = token.tag === "ol" ? token.attrGet("start") : null;
  return h(token.tag, { start: start ?? undefined }, children);
}

function leafOf(token) {
  switch (token.type) {
    case "inline":
      return nodesOf(token.children);
    case "softbreak":
    case "hardbreak":
      return h("br");
    case "hr":
      return h("hr");
    case "code_inline":
      return h("code", null, visible(token.content));
    case "code_block":
      return codeOf(token.content, "");
    case "fence":
      return codeOf(token.content, token.info.trim().split(/\s/, 1)[0]);
    case "image":
      return linkTo(token.attrGet("src"), ["🖼 ", visible(token.content || token.attrGet("src"))]);
    default:
      return visible(token.content);
  }
}

// The address is checked again: the parser is not the only one who must be right.
function linkTo(address, children) {
  if (!SAFE_LINK.test(address ?? "")) return children;
  return h("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank", title: visible(address) }, children);
}

function codeOf(code, language) {
  const pieces = highlighted(visible(code.replace(/\n$/, "")), language);
  return h("pre", { tabindex: 0, dir: "ltr" }, h("code", null, pieces.map(([kind, text]) => (kind ? h("span", { class: `code-${kind}` }, text) : text))));
}
