// Code in colours: comments, strings, numbers and keywords. One pass over the text, without backtracking.
const WORDS = {
  c: "auto bool break case catch char class const constexpr continue default delete do double else enum extern false float for friend goto if inline int long namespace new nullptr operator private protected public return short signed sizeof static struct switch template this throw true try typedef union unsigned using virtual void volatile while",
  go: "break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var",
  java: "abstract boolean break byte case catch char class const continue default do double else enum extends false final finally float for fun if implements import instanceof int interface internal long new null object override package private protected public return short static super switch this throw throws true try val var void when while",
  javascript: "as async await break case catch class const continue default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null of return set static super switch this throw true try type typeof undefined var void while with yield",
  json: "true false null",
  python: "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
  ruby: "alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue return self super then true undef unless until when while yield",
  rust: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
  shell: "case do done elif else esac export fi for function if in local return select then until while",
  sql: "add all alter and as asc between by case column constraint create cross default delete desc distinct drop else end exists foreign from full group having in index inner insert into is join key left like limit not null offset on or order outer primary references returning right select set table then union unique update using values view when where with",
  yaml: "true false null yes no",
};
const SAME = { bash: "shell", console: "shell", cpp: "c", cs: "java", csharp: "java", h: "c", js: "javascript", jsx: "javascript", kotlin: "java", kt: "java", php: "javascript", postgresql: "sql", py: "python", rb: "ruby", rs: "rust", scala: "java", sh: "shell", sqlite: "sql", swift: "rust", toml: "yaml", ts: "javascript", tsx: "javascript", typescript: "javascript", yml: "yaml", zsh: "shell" };
const HASH_COMMENTS = new Set(["python", "ruby", "shell", "yaml"]);
const DASH_COMMENTS = new Set(["sql"]);

const SLASHES = String.raw`\/\/[^\n]*|\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/)?`;
const STRINGS = String.raw`"(?:[^"\\\n]|\\[^])*"?|'(?:[^'\\\n]|\\[^])*'?|` + "`(?:[^`\\\\]|\\\\[^])*`?";
const REST = String.raw`\b\d[\w.]*|[A-Za-z_$][\w$]*|[^\w$"'\x60/#-]+|[^]`;
const KINDS = ["comment", "string"];

const grammars = new Map(); // by language, made when first needed

function grammarOf(language) {
  const name = SAME[language] ?? language;
  if (!Object.hasOwn(WORDS, name)) return null;
  if (!grammars.has(name)) {
    const comments = HASH_COMMENTS.has(name) ? "#[^\\n]*" : DASH_COMMENTS.has(name) ? `--[^\\n]*|${SLASHES}` : SLASHES;
    const words = new Set(WORDS[name].split(" "));
    grammars.set(name, { tokens: new RegExp(`(${comments})|(${STRINGS})|${REST}`, "y"), words, isAnyCase: name === "sql" });
  }
  return grammars.get(name);
}

// Pieces of a code as [kind, text], where kind is comment, string, number, keyword or "".
export function highlighted(code, language) {
  const grammar = grammarOf(language.toLowerCase());
  if (!grammar) return [["", code]];
  const pieces = [];
  const { tokens } = grammar;
  tokens.lastIndex = 0;
  for (let found = tokens.exec(code); found && found[0]; found = tokens.exec(code)) {
    const kind = kindOf(found, grammar);
    if (pieces.length && pieces.at(-1)[0] === kind) pieces.at(-1)[1] += found[0];
    else pieces.push([kind, found[0]]);
  }
  return pieces;
}

function kindOf(found, { words, isAnyCase }) {
  const group = found.findIndex((text, index) => index > 0 && text !== undefined);
  if (group > 0) return KINDS[group - 1];
  const [text] = found;
  if (/^\d/.test(text)) return "number";
  return words.has(isAnyCase ? text.toLowerCase() : text) ? "keyword" : "";
}
