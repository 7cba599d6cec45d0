import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import {
  AccessDeniedError,
  ConflictError,
  ConnectionError,
  InvalidRequestError,
  NotFoundError,
  Recollect,
  RecollectError,
} from "../src/index.js";
import { collect } from "./collect.js";

const baseUrl = process.env["RECOLLECT_URL"] ?? "";
const key = process.env["RECOLLECT_KEY"] ?? "";
const client = new Recollect({ baseUrl, key });
const agentId = "assistant";
const said = [
  { role: "user" as const, content: "I moved to Lisbon. I'm allergic to nuts." },
  { role: "assistant" as const, content: "Noted!" },
];

function newUser(): string {
  return `ada/${crypto.randomUUID()}?&`;
}

test("what is recorded is read again, learned, found, recalled and erased", async () => {
  const userId = newUser();
  const saved = await client.record({ agent_id: agentId, user_id: userId, messages: said });
  const read = await client.conversation(saved.conversation_id);
  assert.deepEqual(
    read.messages.map((message) => message.content),
    said.map((message) => message.content),
  );
  assert.equal(await client.waitUntilLearned(agentId, userId, 30), true);
  const found = await client.search({ query: "What is she allergic to?", agent_id: agentId, user_id: userId });
  assert.match(found.items[0]?.entry.content_text ?? "", /nuts/);
  const recalled = await client.recall({ query: "Which allergies does she have?", agent_id: agentId, user_id: userId });
  assert.match(recalled.text, /nuts/);
  const memory = await client.memory(agentId, userId);
  const entries = await collect(client.entries(memory.memory_id));
  assert.ok(entries.length > 0);
  const receipt = await client.eraseUser(userId);
  assert.equal(receipt.counts["conversations"], 1);
});

test("lists are read over all their pages", async () => {
  const userId = newUser();
  for (let number = 0; number < 25; number++) {
    await client.record({ agent_id: agentId, user_id: userId, messages: [{ role: "user", content: `number ${number}` }] });
  }
  const conversations = await collect(client.conversations({ agentId, userId }));
  assert.equal(new Set(conversations.map((each) => each.conversation_id)).size, 25);
  const long = await client.record({
    agent_id: agentId,
    user_id: userId,
    messages: Array.from({ length: 45 }, (_, index) => ({ role: "user" as const, content: `line ${index}` })),
  });
  await client.append(long.conversation_id, [{ role: "user", content: "line 45" }]);
  const messages = await collect(client.messages(long.conversation_id));
  assert.deepEqual(
    messages.map((message) => message.content),
    Array.from({ length: 46 }, (_, index) => `line ${index}`),
  );
});

test("errors have types and stable codes", async () => {
  await assert.rejects(client.conversation("nothing"), (error) => error instanceof NotFoundError && error.code === "not_found");
  const invalid = client.record({ agent_id: agentId, user_id: "", messages: said });
  await assert.rejects(invalid, (error) => error instanceof InvalidRequestError && error.errors[0]?.field === "body.user_id");
  const conversation = { agent_id: agentId, user_id: newUser(), messages: said, conversation_id: crypto.randomUUID() };
  await client.record(conversation);
  await assert.rejects(
    client.record({ ...conversation, messages: [{ role: "user", content: "else" }] }),
    (error) => error instanceof ConflictError,
  );
  const stranger = new Recollect({ baseUrl, key: "rk_wrong" });
  await assert.rejects(stranger.conversation("x"), (error) => error instanceof AccessDeniedError);
});

test("a chat streams its events", async () => {
  const events = await collect(client.chat({ message: "Hello", user_id: newUser() }));
  assert.equal(events.at(-1)?.event, "turn.completed");
});

/** A server that forwards to the service, but answers the first requests in its own way. */
async function between(
  first: (respond: (status: number, headers?: Record<string, string>) => void, cut: () => void, count: number) => boolean,
): Promise<{ url: string; requests: { method: string; key: string | undefined }[]; close: () => void }> {
  const requests: { method: string; key: string | undefined }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    requests.push({ method: request.method ?? "", key: request.headers["idempotency-key"] as string | undefined });
    const { host: _, connection: __, ...headers } = request.headers as Record<string, string>;
    const forwarded = await fetch(baseUrl + request.url, {
      method: request.method ?? "GET",
      headers,
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const body = Buffer.from(await forwarded.arrayBuffer());
    const respond = (status: number, extra: Record<string, string> = {}) => {
      const problem = JSON.stringify({ code: "overloaded", detail: "busy", status });
      response.writeHead(status, { "Content-Type": "application/problem+json", ...extra }).end(problem);
    };
    if (first(respond, () => request.socket.destroy(), requests.length)) return;
    response.writeHead(forwarded.status, { "Content-Type": forwarded.headers.get("Content-Type") ?? "" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, requests, close: () => server.close() };
}

test("a write whose answer is lost is repeated and stored once", async () => {
  const userId = newUser();
  const cutting = await between((_, cut, count) => (count <= 2 ? (cut(), true) : false));
  await new Recollect({ baseUrl: cutting.url, key }).record({ agent_id: agentId, user_id: userId, messages: said });
  cutting.close();
  assert.equal(new Set(cutting.requests.map((each) => each.key)).size, 1);
  assert.equal(cutting.requests.length, 3);
  assert.equal((await collect(client.conversations({ agentId, userId }))).length, 1);
});

test("an erasure whose answer is lost is not repeated", async () => {
  const cutting = await between((_, cut) => (cut(), true));
  const erasing = new Recollect({ baseUrl: cutting.url, key }).eraseUser(newUser());
  await assert.rejects(erasing, (error) => error instanceof ConnectionError);
  cutting.close();
  assert.equal(cutting.requests.length, 1);
});

test("a busy service is asked again, and an endless one is given up", async () => {
  const busyOnce = await between((respond, _, count) => (count === 1 ? (respond(503, { "Retry-After": "0" }), true) : false));
  await new Recollect({ baseUrl: busyOnce.url, key }).waitUntilLearned(agentId, newUser(), 0);
  busyOnce.close();
  assert.equal(busyOnce.requests.length, 2);
  const busy = await between((respond) => (respond(503), true));
  const given = new Recollect({ baseUrl: busy.url, key, retries: 1 }).conversation("x");
  await assert.rejects(given, (error) => error instanceof RecollectError && error.code === "overloaded");
  busy.close();
  assert.equal(busy.requests.length, 2);
});

test("another server and no server are clear errors", async () => {
  const html = createServer((_, response) => response.writeHead(404).end("<html>"));
  await new Promise<void>((resolve) => html.listen(0, "127.0.0.1", resolve));
  const other = new Recollect({ baseUrl: `http://127.0.0.1:${(html.address() as AddressInfo).port}` });
  await assert.rejects(other.conversation("x"), (error) => error instanceof ConnectionError);
  html.close();
  const none = new Recollect({ baseUrl: "http://127.0.0.1:1", retries: 0 });
  await assert.rejects(none.conversation("x"), (error) => error instanceof ConnectionError);
});
