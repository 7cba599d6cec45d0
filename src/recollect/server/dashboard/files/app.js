// The frame around all pages: navigation, language and theme, connection state, key dialog.
import { html, render, useEffect, useState } from "./lib.js";
import { get } from "./api.js";
import { LANGUAGES, t } from "./i18n.js";
import { Icon } from "./icons.js";
import { useLive } from "./live.js";
import { Dialog, Empty, Field, Heading, Name } from "./parts.js";
import { link, useRoute } from "./routes.js";
import { setKey, setLanguage, setTheme, state, useShared } from "./store.js";
import { ConversationPage } from "./pages/conversation.js";
import { ConversationsPage } from "./pages/conversations.js";
import { MemoriesPage } from "./pages/memories.js";
import { MemoryPage } from "./pages/memory.js";
import { RunsPage } from "./pages/runs.js";
import { SearchPage } from "./pages/search.js";
import { ThreadPage, ThreadsPage } from "./pages/threads.js";
import { UsagePage } from "./pages/usage.js";

const PLACES = ["conversations", "memories", "search", "threads", "runs", "usage"];
const LISTS = { conversations: ConversationsPage, memories: MemoriesPage, search: SearchPage, threads: ThreadsPage, runs: RunsPage, usage: UsagePage };
const ONES = { conversations: ConversationPage, memories: MemoryPage, threads: ThreadPage };

function App() {
  const { language, connection, needsKey, announcement } = useShared();
  const route = useRoute();
  useEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  }, [language]);
  const place = route.parts[0] ?? "conversations";
  return html`
    <a class="skip" href="#main" onClick=${skip}>${t("skip")}</a>
    <${Header} />
    <${Navigation} place=${place} />
    <main id="main" tabindex="-1">
      <div role="alert" class="banner-place">${connection === "gone" && html`<p class="banner"><span class="pulse" />${t("server.gone")}</p>`}</div>
      <${Shown} route=${route} place=${place} key=${route.parts.join("/")} />
    </main>
    <div class="visually-hidden" role="status" aria-live="polite">${announcement}</div>
    ${needsKey && html`<${KeyDialog} />`}
  `;
}

function Shown({ route, place }) {
  const Page = route.parts.length > 1 ? ONES[place] : LISTS[place];
  if (!Page) {
    return html`<${Heading} title=${t("nowhere")}>${t("nowhere")}</${Heading}><${Empty} title=${t("nowhere.why")}><a href=${link([])}>${t("action.back")}</a></${Empty}>`;
  }
  return html`<${Page} id=${route.parts[1]} query=${route.query} />`;
}

// The address must not change: it selects the page.
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function Header() {
  const { data } = useLive((signal) => get("/v1/whoami", {}, signal), ["whoami"]);
  return html`<header>
    <a class="brand" href=${link([])}><img src="/dashboard/icon.svg" alt="" width="28" height="28" />Recollect</a>
    <div class="switches">
      <${Field} label=${html`<span class="visually-hidden">${t("switch.language")}</span>`}>
        <select value=${state.language} onChange=${(event) => setLanguage(event.target.value)} aria-label=${t("switch.language")}>
          ${Object.entries(LANGUAGES).map(([key, name]) => html`<option value=${key} selected=${key === state.language}>${name}</option>`)}
        </select>
      </${Field}>
      <${Field} label=${html`<span class="visually-hidden">${t("switch.theme")}</span>`}>
        <select value=${state.theme} onChange=${(event) => setTheme(event.target.value)} aria-label=${t("switch.theme")}>
          ${["system", "light", "dark"].map((key) => html`<option value=${key} selected=${key === state.theme}>${t(`theme.${key}`)}</option>`)}
        </select>
      </${Field}>
      ${data && html`<span class="whoami" title=${t("whoami")}><${Icon} name="key" /><${Name} value=${data.tenant} most=${24} /> · ${t(`scope.${data.scope}`)}</span>`}
      ${state.key && html`<button type="button" class="small" onClick=${() => setKey(null)}>${t("key.forget")}</button>`}
    </div>
  </header>`;
}

function Navigation({ place }) {
  return html`<nav aria-label=${t("nav")}><ul>
    ${PLACES.map((name) => html`<li key=${name}><a href=${link([name])} aria-current=${name === place ? "page" : undefined}><${Icon} name=${name} /><span>${t(`nav.${name}`)}</span></a></li>`)}
  </ul></nav>`;
}

function KeyDialog() {
  const [key, change] = useState("");
  const send = (event) => {
    event.preventDefault();
    if (key.trim()) setKey(key.trim());
  };
  return html`<${Dialog} title=${t("key.title")}>
    <form onSubmit=${send}>
      <p>${t(state.key ? "key.refused" : "key.why")}</p>
      <${Field} label=${t("key.label")}>
        <input type="password" autocomplete="off" spellcheck="false" required placeholder="rk_…" value=${key} onInput=${(event) => change(event.target.value)} />
      </${Field}>
      <p class="hint">${t("key.kept")}</p>
      <div class="buttons"><button type="submit" class="primary">${t("key.use")}</button></div>
    </form>
  </${Dialog}>`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
