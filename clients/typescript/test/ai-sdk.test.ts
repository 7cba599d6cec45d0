import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, type ModelMessage, simulateReadableStream, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import * as mocks from "ai/test";
import { z } from "zod";

import { recollectMemory } from "../src/ai-sdk.js";
import { Recollect } from "../src/index.js";
import { collect } from "./collect.js";

const baseUrl = process.env["RECOLLECT_URL"] ?? "";
const key = process.env["RECOLLECT_KEY"] ?? "";
const client = new Recollect({ baseUrl, key });
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const stop = { unified: "stop" as const, raw: "stop" };

/** The newest mock model: version 7 of `ai` has one of a newer specification. */
type MockModel = mocks.MockLanguageModelV3;
const { MockLanguageModelV4: Newer } = mocks as { MockLanguageModelV4?: unknown };
const MockModel = (Newer ?? mocks.MockLanguageModelV3) as typeof mocks.MockLanguageModelV3;

function answering(text: string): MockModel {
  return new MockModel({
    doGenerate: async () => ({ content: [{ type: "text", text }], finishReason: stop, usage, warnings: [] }),
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: "text-start", id: "1" },
          ...[...text].map((delta) => ({ type: "text-delta" as const, id: "1", delta })),
          { type: "text-end", id: "1" },
          { type: "finish", finishReason: stop, usage },
        ],
      }),
    }),
  });
}

async function userWhoIsAllergic(): Promise<string> {
  const userId = `ada-${crypto.randomUUID()}`;
  await client.addEntry({
    agent_id: "assistant",
    user_id: userId,
    content_type: "profile",
    content_text: "Ada is allergic to nuts.",
  });
  return userId;
}

test("what is relevant is added as data, and the turn is recorded without it", async () => {
  const userId = await userWhoIsAllergic();
  const model = answering("Try the harbour.");
  const memory = recollectMemory({ client, agentId: "assistant", userId });
  const question = "What is Ada allergic to?";
  const result = await generateText({ model: wrapLanguageModel({ model, middleware: memory }), prompt: question });
  assert.equal(result.text, "Try the harbour.");
  const sent = JSON.stringify(model.doGenerateCalls[0]?.prompt);
  assert.match(sent, /allergic to nuts/);
  const [recorded] = await collect(client.conversations({ agentId: "assistant", userId }));
  const messages = await collect(client.messages(recorded?.conversation_id ?? ""));
  assert.deepEqual(
    messages.map((message) => message.content),
    [question, "Try the harbour."],
  );
});

test("prompts keep their prefix for twenty turns", async () => {
  const userId = await userWhoIsAllergic();
  const boat = "My sailing boat in the harbour is called Argo.";
  await client.record({ agent_id: "assistant", user_id: userId, messages: [{ role: "user", content: boat }] });
  const model = answering("Noted.");
  const middleware = recollectMemory({ client, agentId: "assistant", userId, deadline: 60_000 });
  const messages: ModelMessage[] = [];
  for (let turn = 0; turn < 20; turn++) {
    const dog = { agent_id: "assistant", user_id: userId, content_type: "profile" as const, content_text: "Ada adopted a dog." };
    if (turn === 6) await client.addEntry(dog);
    messages.push({ role: "user", content: turn === 3 ? "What is my sailing boat called?" : `What about number ${turn}?` });
    const { response } = await generateText({ model: wrapLanguageModel({ model, middleware }), system: "Be brief.", messages });
    messages.push(...response.messages);
  }
  const prompts = model.doGenerateCalls.map((call) => call.prompt.flatMap(blocksOf));
  const stable = (blocks: string[]) => blocks.slice(0, blocks.findLastIndex((each) => each.startsWith("user: What")) + 1);
  for (const [turn, prompt] of prompts.slice(1).entries()) {
    const before = stable(prompts[turn]!);
    assert.deepEqual(prompt.slice(0, before.length), before, `turn ${turn + 1}`);
  }
  assert.match(prompts[0]!.join("\n"), /allergic to nuts/);
  assert.match(prompts[3]!.at(-1)!, /user: <remembered-data>[^]*Argo/);
  assert.doesNotMatch(prompts[4]!.join("\n"), /Argo/);
  assert.match(prompts[6]!.at(-1)!, /adopted a dog/);
  assert.doesNotMatch(stable(prompts[19]!).join("\n"), /adopted a dog/);
});

function blocksOf(message: MockModel["doGenerateCalls"][number]["prompt"][number]): string[] {
  if (message.role === "system") return [`system: ${message.content}`];
  return message.content.map((part) => `${message.role}: ${part.type === "text" ? part.text : JSON.stringify(part)}`);
}

test("a page stays, also for an unrelated question, and streams pass as they are", async () => {
  const userId = await userWhoIsAllergic();
  const model = answering("Use reversed().");
  const memory = recollectMemory({ client, agentId: "assistant", userId, conversationId: crypto.randomUUID() });
  const wrapped = wrapLanguageModel({ model, middleware: memory });
  for (let turn = 0; turn < 2; turn++) {
    const result = streamText({ model: wrapped, prompt: "How do I reverse a list in Python?" });
    const deltas = await collect(result.textStream);
    assert.equal(deltas.join(""), "Use reversed().");
    assert.equal(deltas.length, 15);
  }
  const [first, second] = model.doStreamCalls.map((call) => JSON.stringify(call.prompt));
  assert.match(first ?? "", /allergic/);
  assert.equal(first, second);
  const recorded = await collect(client.conversations({ agentId: "assistant", userId }));
  assert.deepEqual(
    recorded.map((conversation) => conversation.turn_count),
    [4],
  );
});

test("a turn with calls of tools is recorded once", async () => {
  const userId = await userWhoIsAllergic();
  const call = { type: "tool-call" as const, toolCallId: "1", toolName: "weather", input: "{}" };
  const steps = [
    { content: [call], finishReason: { unified: "tool-calls" as const, raw: "tool" } },
    { content: [{ type: "text" as const, text: "Sunny." }], finishReason: stop },
  ];
  const model = new MockModel({
    doGenerate: async () => ({ ...steps.shift()!, usage, warnings: [] }),
  });
  await generateText({
    model: wrapLanguageModel({ model, middleware: recollectMemory({ client, agentId: "assistant", userId }) }),
    prompt: "How is the weather?",
    tools: { weather: tool({ inputSchema: z.object({}), execute: async () => "sunny" }) },
    stopWhen: stepCountIs(3),
  });
  const recorded = await collect(client.conversations({ agentId: "assistant", userId }));
  assert.equal(recorded.length, 1);
});

test("without a service the model still answers, and the error is reported", async () => {
  const errors: unknown[] = [];
  const memory = recollectMemory({
    client: new Recollect({ baseUrl: "http://127.0.0.1:1", retries: 0 }),
    agentId: "assistant",
    userId: "ada",
    onError: (error) => errors.push(error),
  });
  const model = wrapLanguageModel({ model: answering("Hello."), middleware: memory });
  assert.equal((await generateText({ model, prompt: "Hi" })).text, "Hello.");
  assert.equal(errors.length, 2);
});
