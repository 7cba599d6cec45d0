// A folded tool call: its name is enough to follow the conversation.
import { html } from "../lib.js";
import { t } from "../i18n.js";
import { Icon } from "../icons.js";
import { Fold, Name, Text } from "../parts.js";

export function Call({ call: { name, input, output } }) {
  return html`<li class="call"><${Fold} summary=${html`<${Icon} name="tool" /><span>${t("tool.called")} <code><${Name} value=${name} most=${60} /></code></span>`}>
    ${input !== undefined && input !== null && html`<p class="label">${t("tool.input")}</p><${Text} value=${input} />`}
    ${output !== undefined && output !== null && html`<p class="label">${t("tool.output")}</p><${Text} value=${typeof output === "string" ? output : JSON.stringify(output)} />`}
  </${Fold}></li>`;
}
