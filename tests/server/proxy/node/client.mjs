// Calls the proxy with the unmodified clients of OpenAI and Anthropic, and prints what they returned as JSON.
// usage: node client.mjs URL KEY USER CALL...

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [url, apiKey, user, ...calls] = process.argv.slice(2);
const openai = new OpenAI({ baseURL: `${url}/proxy/openai/v1`, apiKey, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: `${url}/proxy/anthropic`, apiKey, maxRetries: 0 });
const messages = [{ role: "user", content: "What is my dog called?" }];
const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];
const asked = { model: "m", messages, max_tokens: 99, metadata: { user_id: user } };

async function collect(stream, textOf) {
  let text = "";
  for await (const event of stream) text += textOf(event) ?? "";
  return text;
}

const CALLS = {
  "chat": async () => (await openai.chat.completions.create({ model: "m", messages, user })).choices[0].message.content,
  "chat choices": async () =>
    (await openai.chat.completions.create({ model: "m", messages, user, n: 2 })).choices.map((each) => each.message.content),
  "chat tool": async () =>
    (await openai.chat.completions.create({ model: "m", messages, tools, user })).choices[0].message.tool_calls[0].function,
  "chat stream": async () =>
    collect(await openai.chat.completions.create({ model: "m", messages, user, stream: true }), (event) => event.choices[0]?.delta.content),
  "chat stream tool": async () => {
    const stream = openai.chat.completions.stream({ model: "m", messages, tools, user });
    return (await stream.finalChatCompletion()).choices[0].message.tool_calls[0].function.arguments;
  },
  "response": async () =>
    (await openai.responses.create({ model: "m", input: messages[0].content, user })).output_text,
  "response stream": async () =>
    collect(
      await openai.responses.create({ model: "m", input: messages[0].content, user, stream: true }),
      (event) => (event.type === "response.output_text.delta" ? event.delta : ""),
    ),
  "embeddings": async () =>
    (await openai.embeddings.create({ model: "text-embedding-3-small", input: "Hi", dimensions: 4 })).data[0].embedding.length,
  "models": async () => (await openai.models.list()).data.map((each) => each.id),
  "memory": async () => {
    const { response } = await openai.chat.completions.create({ model: "m", messages, user }).withResponse();
    return response.headers.get("x-recollect-memory");
  },
  "message": async () => (await anthropic.messages.create(asked)).content[0].text,
  "message stream": async () => await anthropic.messages.stream(asked).finalText(),
  "message tool": async () => {
    const tool = { name: "weather", input_schema: { type: "object" } };
    const stream = anthropic.messages.stream({ ...asked, tools: [tool] });
    return (await stream.finalMessage()).content[0].input;
  },
  "count": async () => (await anthropic.messages.countTokens({ model: "m", messages })).input_tokens > 0,
};

const results = [];
for (const name of calls) {
  try {
    results.push(await CALLS[name]());
  } catch (error) {
    results.push({ error: error.constructor.name, status: error.status ?? null });
  }
}
console.log(JSON.stringify(results));
