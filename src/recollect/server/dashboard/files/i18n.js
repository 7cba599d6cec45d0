// Texts in the chosen language. Both dictionaries have the same keys; a test checks it.
import en from "./words/en.js";
import zh from "./words/zh.js";
import { state } from "./store.js";

export const LANGUAGES = { en: "English", zh: "中文" };
const WORDS = { en, zh };

export function t(key, values = {}) {
  const words = (WORDS[state.language] ?? en)[key] ?? key;
  return words.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

const locale = () => (state.language === "zh" ? "zh-CN" : "en-GB");

export function number(value, options) {
  return new Intl.NumberFormat(locale(), options).format(value);
}

// "1 message", "2 messages": a key with `.one` and one with `.other`.
export function count(key, value) {
  const form = new Intl.PluralRules(locale()).select(value) === "one" ? "one" : "other";
  return t(`${key}.${form}`, { n: number(value) });
}

export function dateTime(text) {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" }).format(new Date(text));
}

// Format a day, a month or a year, as precisely as it is known.
export function date(text) {
  const [year, month, day] = text.split("T")[0].split("-");
  if (!month) return year;
  const at = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day ?? 1)));
  const parts = { year: "numeric", month: day ? "short" : "long", day: day ? "numeric" : undefined, timeZone: "UTC" };
  return new Intl.DateTimeFormat(locale(), parts).format(at);
}

const UNITS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

export function ago(text) {
  const seconds = (Date.now() - new Date(text)) / 1000;
  if (seconds > 7 * 86400) return date(text);
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  for (const [unit, length] of UNITS) {
    if (seconds >= length) return format.format(-Math.floor(seconds / length), unit);
  }
  return t("time.now");
}
