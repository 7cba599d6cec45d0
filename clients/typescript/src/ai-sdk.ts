import type { LanguageModelMiddleware } from "ai";

import type { Recollect } from "./index.js";

type TransformParams = NonNullable<LanguageModelMiddleware["transformParams"]>;
type CallOptions = Parameters<TransformParams>[0]["params"];
type WrapStream = NonNullable<LanguageModelMiddleware["wrapStream"]>;
type StreamPart = Awaited<ReturnType<WrapStream>>["stream"] extends ReadableStream<infer Part> ? Part : never;

export interface MemoryOptions {
  client: Recollect;
  agentId: string;
  userId: string;
  /** Turns with the same id are recorded as one conversation; without it, each turn is one. */
  conversationId?: string;
  /** The most tokens of what is remembered about the newest message. 1,000 by default. */
  budget?: number;
  /** The most tokens of the page about the user. 600 by default; 0 for no page. */
  pageBudget?: number;
  /** When the page is written anew: in each turn, or when a conversation starts or was idle, the default. */
  refresh?: "turn" | "conversation";
  /** Milliseconds that a call waits for memory before it goes on without it. 1,000 by default. */
  deadline?: number;
  /** Called when memory cannot be read or written. The call of the model goes on. */
  onError?: (error: unknown) => void;
}

/**
 * A middleware for the AI SDK that recalls before each call of the model and records the turn after it.
 *
 * A page about the user follows the system text and stays the same while a conversation goes on. What is
 * remembered about the newest message comes after its text. Both are marked as data. So a cached prefix of the
 * prompt stays valid: everything up to the user's previous message.
 */
export function recollectMemory(options: MemoryOptions): LanguageModelMiddleware {
  const { onError = () => undefined } = options;
  // The prompt without memory, by the one with it: memory must not be recorded as something that was said.
  const questions = new WeakMap<CallOptions, string>();
  let page = "";

  async function transformParams({ params }: { params: CallOptions }): Promise<CallOptions> {
    const question = questionIn(params);
    if (question === undefined) return params;
    try {
      const remembered = await recall(options, params, question);
      page = remembered.page;
      return remember(questions, question, withMemory(params, remembered));
    } catch (error) {
      onError(error);
      return remember(questions, question, withMemory(params, { page, tail: "" }));
    }
  }

  async function recordTurn(params: CallOptions, answer: string, finishReason: string): Promise<void> {
    const question = questions.get(params);
    if (question === undefined || answer.trim() === "" || finishReason === "tool-calls") return;
    await record(options, question, answer).catch(onError);
  }

  return {
    specificationVersion: "v3",
    transformParams,
    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      const answer = result.content.map((part) => (part.type === "text" ? part.text : "")).join("");
      await recordTurn(params, answer, result.finishReason.unified);
      return result;
    },
    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      let answer = "";
      let finishReason = "other";
      const listen = new TransformStream<StreamPart, StreamPart>({
        transform(part, controller) {
          if (part.type === "text-delta") answer += part.delta;
          if (part.type === "finish") finishReason = part.finishReason.unified;
          controller.enqueue(part);
        },
        flush: () => recordTurn(params, answer, finishReason),
      });
      return { stream: stream.pipeThrough(listen), ...rest };
    },
  };
}

function remember(questions: WeakMap<CallOptions, string>, question: string, params: CallOptions): CallOptions {
  questions.set(params, question);
  return params;
}

/** The text of the user's newest message, if it is what the model is to answer, also after calls of tools. */
function questionIn(params: CallOptions): string | undefined {
  const message = params.prompt.findLast((each) => each.role === "user");
  if (message?.role !== "user") return undefined;
  const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("\n").trim();
  return text === "" ? undefined : text;
}

interface Remembered {
  page: string;
  tail: string;
}

/** The prompt with the page at the end of its system text, and the tail as the last part of the newest message. */
function withMemory(params: CallOptions, { page, tail }: Remembered): CallOptions {
  const newest = params.prompt.findLastIndex((each) => each.role === "user");
  const prompt: CallOptions["prompt"] = params.prompt.map((message, index) =>
    tail !== "" && index === newest && message.role === "user"
      ? { ...message, content: [...message.content, { type: "text" as const, text: tail }] }
      : message,
  );
  if (page === "") return { ...params, prompt };
  const leading = prompt.findIndex((each) => each.role !== "system");
  const system = { role: "system" as const, content: page };
  return { ...params, prompt: [...prompt.slice(0, leading), system, ...prompt.slice(leading)] };
}

/** What memory adds. */
async function recall(options: MemoryOptions, params: CallOptions, question: string): Promise<Remembered> {
  const texts = (role: "user" | "assistant") =>
    params.prompt.flatMap((each) =>
      each.role === role ? [each.content.map((part) => (part.type === "text" ? part.text : "")).join("\n").trim()] : [],
    );
  const request = {
    query: question,
    agent_id: options.agentId,
    user_id: options.userId,
    said: texts("user").slice(0, -1),
    answered: texts("assistant"),
    is_start: options.conversationId === undefined && params.prompt.every((each) => each.role === "user" || each.role === "system"),
    page_budget: options.pageBudget ?? 600,
    budget: options.budget ?? 1000,
    refresh: options.refresh ?? "conversation",
    ...(options.conversationId !== undefined && { conversation_id: options.conversationId }),
  };
  return options.client.prompt(request, AbortSignal.timeout(options.deadline ?? 1000));
}

async function record(options: MemoryOptions, question: string, answer: string): Promise<void> {
  const { client, agentId, userId, conversationId } = options;
  const messages = [
    { role: "user" as const, content: question },
    { role: "assistant" as const, content: answer },
  ];
  if (conversationId === undefined) {
    await client.record({ agent_id: agentId, user_id: userId, messages });
    return;
  }
  await client.http.PUT("/v1/conversations/{conversation_id}", {
    params: { path: { conversation_id: conversationId } },
    body: { agent_id: agentId, user_id: userId },
  });
  await client.append(conversationId, messages);
}
