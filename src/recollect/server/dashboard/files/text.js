// Make contents safe to show: no code, no invisible characters, no change of writing direction.

// Invisible control characters, and characters that change the writing direction.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g;

export function visible(text) {
  return String(text).replace(HIDDEN, (character) => {
    if (character === "\r") return "";
    return `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// Cut a text to a number of characters without splitting one.
export function shorten(text, most) {
  if (text.length <= most) return text;
  const isHalf = /[\ud800-\udbff]/.test(text[most - 1]);
  return text.slice(0, isHalf ? most - 1 : most);
}

// The topic of a conversation: the service returns it as "Conversation with 2 turns: I live in Lisbon....".
export function titleOf(summary) {
  const found = /^Conversation with \d+ turns?: ([\s\S]*)\.\.\.$/.exec(summary || "");
  return (found ? found[1] : summary || "").trim();
}

// The text of an item: a string, or parts of which some have text.
export function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? "" : JSON.stringify(content);
  return content.map((piece) => piece.text ?? piece.refusal ?? `[${piece.type}]`).join("\n");
}
