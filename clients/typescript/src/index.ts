import createClient, { type Client } from "openapi-fetch";

import { type ChatEvent, eventsOf } from "./events.js";
import type { components, paths } from "./schema.js";
import { type TransportOptions, transportOf } from "./transport.js";

export type { ChatEvent } from "./events.js";
export * from "./errors.js";
export type { components, operations, paths } from "./schema.js";

type Schemas = components["schemas"];
export type NewConversation = Schemas["NewConversation"];
export type NewMessage = Schemas["NewMessage"];
export type Message = Schemas["MessagePayload"];
export type Conversation = Schemas["ConversationPayload"];
export type ConversationOutline = Schemas["ConversationOutline"];
export type Entry = Schemas["EntryPayload"];
export type Memory = Schemas["MemoryPayload"];
export type Receipt = Schemas["ReceiptPayload"];
export type SearchRequest = Schemas["MemorySearchRequest"];
export type RecallRequest = Schemas["RecallRequest"];
export type ChatRequest = Schemas["ChatRequest"];

export interface RecollectOptions extends TransportOptions {
  /** The address of the service, such as `https://memory.example.org`. */
  baseUrl: string;
  /** An API key from `recollect keys create`. */
  key?: string;
}

interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/** A request that creates something: its key makes a repetition harmless. */
interface CreateOptions {
  /** The same key and body have the same result within a day. Random by default. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/**
 * The client of a Recollect service. Common tasks have methods; `http` has every route, typed from the
 * OpenAPI document, with the same retries and errors.
 */
export class Recollect {
  readonly http: Client<paths>;

  constructor(options: RecollectOptions) {
    const headers: Record<string, string> = options.key === undefined ? {} : { Authorization: `Bearer ${options.key}` };
    this.http = createClient<paths>({ baseUrl: options.baseUrl, headers, fetch: transportOf(options) });
  }

  /** Record a conversation. It is durable when this resolves; learning goes on in the background. */
  async record(conversation: NewConversation, options: CreateOptions = {}): Promise<Schemas["ConversationSaved"]> {
    return dataOf(await this.http.POST("/v1/conversations", { body: conversation, ...creating(options) }));
  }

  /** Append messages to a conversation. */
  async append(conversationId: string, messages: NewMessage[], options: CreateOptions = {}): Promise<Message[]> {
    const { headers, signal } = creating(options);
    const path = { conversation_id: conversationId };
    const added = await this.http.POST("/v1/conversations/{conversation_id}/messages", {
      params: { path },
      body: { messages },
      headers,
      signal,
    });
    return dataOf(added).messages;
  }

  /** A conversation with its messages. */
  async conversation(conversationId: string): Promise<Conversation> {
    const params = { path: { conversation_id: conversationId } };
    return dataOf(await this.http.GET("/v1/conversations/{conversation_id}", { params }));
  }

  /** The conversations of an agent and a user, the newest first, read page by page. */
  conversations(owner: { agentId?: string; userId?: string }): AsyncGenerator<ConversationOutline> {
    const query = { ...(owner.agentId && { agent_id: owner.agentId }), ...(owner.userId && { user_id: owner.userId }) };
    return pagesOf(async (cursor) =>
      dataOf(await this.http.GET("/v1/conversations", { params: { query: { ...query, ...cursor } } })),
    );
  }

  /** The messages of a conversation in order, read page by page. */
  messages(conversationId: string): AsyncGenerator<Message> {
    const path = { conversation_id: conversationId };
    return pagesOf(async (cursor) =>
      dataOf(
        await this.http.GET("/v1/conversations/{conversation_id}/messages", { params: { path, query: { ...cursor } } }),
      ),
    );
  }

  /** The entries of a memory in the order in which they were learned, read page by page. */
  entries(memoryId: string): AsyncGenerator<Entry> {
    const path = { memory_id: memoryId };
    return pagesOf(async (cursor) =>
      dataOf(await this.http.GET("/v1/memories/{memory_id}/entries", { params: { path, query: { ...cursor } } })),
    );
  }

  /** What an agent knows about a user. */
  async memory(agentId: string, userId: string): Promise<Memory> {
    const params = { query: { agent_id: agentId, user_id: userId } };
    return dataOf(await this.http.GET("/v1/memories/of", { params }));
  }

  /** Add an entry about a user. */
  async addEntry(entry: Schemas["NewOwnedEntry"], options: CreateOptions = {}): Promise<Schemas["EntryAdded"]> {
    return dataOf(await this.http.POST("/v1/entries", { body: entry, ...creating(options) }));
  }

  /** The entries that match a question best. */
  async search(request: SearchRequest): Promise<Schemas["MemorySearchResponse"]> {
    return dataOf(await this.http.POST("/v1/memories/search", { body: request }));
  }

  /** What is remembered about a question, as a text for a prompt. It is empty if nothing is relevant. */
  async recall(request: RecallRequest, signal?: AbortSignal): Promise<Schemas["RecallResponse"]> {
    return dataOf(await this.http.POST("/v1/memories/recall", { body: request, ...(signal && { signal }) }));
  }

  /** What memory adds to a prompt: a page for its system text, and a tail for after the newest message. */
  async prompt(request: Schemas["PromptRequest"], signal?: AbortSignal): Promise<Schemas["PromptResponse"]> {
    return dataOf(await this.http.POST("/v1/memories/prompt", { body: request, ...(signal && { signal }) }));
  }

  /** Whether everything recorded for a user is learned, after at most `seconds`. */
  async waitUntilLearned(agentId: string, userId: string, seconds = 20): Promise<boolean> {
    const query = { agent_id: agentId, user_id: userId, wait: seconds };
    return dataOf(await this.http.GET("/v1/coverage", { params: { query } })).learned ?? false;
  }

  /** One turn of a chat with an agent of the service: the events as they arrive. */
  async *chat(request: ChatRequest, options: CreateOptions = {}): AsyncGenerator<ChatEvent> {
    const { headers, signal } = creating(options);
    const sent = await this.http.POST("/v1/chat/stream", { body: request, headers, signal, parseAs: "stream" });
    yield* eventsOf(sent.response);
  }

  /** Erase everything stored about a user, for good. The receipt holds nothing personal. */
  async eraseUser(userId: string): Promise<Receipt> {
    return dataOf(await this.http.DELETE("/v1/users", { params: { query: { user_id: userId } } }));
  }
}

function creating(options: CreateOptions): { headers: Record<string, string>; signal: AbortSignal | null } {
  const key = options.idempotencyKey ?? crypto.randomUUID();
  return { headers: { "Idempotency-Key": key }, signal: options.signal ?? null };
}

/** The data of a response. Responses that are no success have thrown already. */
function dataOf<Data>(result: { data?: Data }): Data {
  return result.data as Data;
}

async function* pagesOf<Item>(read: (cursor: { cursor?: string }) => Promise<Page<Item>>): AsyncGenerator<Item> {
  let cursor: { cursor?: string } | undefined = {};
  while (cursor !== undefined) {
    const page: Page<Item> = await read(cursor);
    yield* page.items;
    cursor = page.next_cursor === null ? undefined : { cursor: page.next_cursor };
  }
}
