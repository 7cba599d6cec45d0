// What every program does with the client, with nothing but APIs of the web, so that it runs everywhere.
import { NotFoundError, Recollect, RecollectError } from "recollect-client";

export interface Service {
  url: string;
  /** The same service, but the answers to the first requests that change something are lost. */
  cuttingUrl: string;
  key: string;
}

const agentId = "assistant";

export async function smoke(service: Service): Promise<Record<string, unknown>> {
  const client = new Recollect({ baseUrl: service.url, key: service.key });
  const user = `ada/${crypto.randomUUID()}?&`;
  const owner = { agent_id: agentId, user_id: user };
  return {
    found: await saveAndSearch(client, owner),
    pages: await readPages(client, owner),
    chat: await chat(client, user),
    error: await provokeError(client),
    storedAfterLostAnswers: await recordWithLostAnswers(service, client),
  };
}

type Owner = { agent_id: string; user_id: string };

async function saveAndSearch(client: Recollect, owner: Owner): Promise<string | undefined> {
  await client.addEntry({ ...owner, content_type: "profile", content_text: "Ada is allergic to nuts: 花生过敏 🥜" });
  const found = await client.search({ ...owner, query: "What is Ada allergic to?" });
  return found.items[0]?.entry.content_text;
}

async function readPages(client: Recollect, owner: Owner): Promise<string[]> {
  const lines = Array.from({ length: 25 }, (_, index) => `line ${index}`);
  const messages = lines.map((content) => ({ role: "user" as const, content }));
  const { conversation_id } = await client.record({ ...owner, messages });
  const read: string[] = [];
  for await (const message of client.messages(conversation_id)) read.push(message.content);
  return read;
}

async function chat(client: Recollect, user: string): Promise<string[]> {
  const events = new Set<string>();
  for await (const { event } of client.chat({ message: "Hello", user_id: user })) events.add(event);
  return [...events];
}

async function provokeError(client: Recollect): Promise<unknown> {
  try {
    return await client.conversation("nothing");
  } catch (error) {
    if (!(error instanceof NotFoundError && error instanceof RecollectError)) throw error;
    return [error.name, error.code, error.status];
  }
}

async function recordWithLostAnswers(service: Service, client: Recollect): Promise<number> {
  const userId = `lost/${crypto.randomUUID()}`;
  const cut = new Recollect({ baseUrl: service.cuttingUrl, key: service.key });
  await cut.record({ agent_id: agentId, user_id: userId, messages: [{ role: "user", content: "Hello" }] });
  let stored = 0;
  for await (const _ of client.conversations({ agentId, userId })) stored++;
  return stored;
}
