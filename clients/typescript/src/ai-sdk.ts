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
  /** The most tokens of what is remembered. 1,000 by default. */
  budget?: number;
  /** Milliseconds that a call waits for memory before it goes on without it. 1,000 by default. */
  deadline?: number;
  /** Called when memory cannot be read or written. The call of the model goes on. */
  onError?: (error: unknown) => void;
}

/**
 * A middleware for the AI SDK that recalls before each call of the model and records the turn after it.
 *
 * What is remembered is put in front of the newest message of the user, marked as data, so that a cached prefix
 * of the prompt stays valid. Nothing relevant, nothing added.
 */
export function recollectMemory(options: MemoryOptions): LanguageModelMiddleware {
  const { onError = () => undefined } = options;
  // The prompt without memory, by the one with it: memory must not be recorded as something that was said.
  const questions = new WeakMap<CallOptions, string>();

  async function transformParams({ params }: { params: CallOptions }): Promise<CallOptions> {
    const question = questionIn(params);
    if (question === undefined) return params;
    const changed = { ...params };
    questions.set(changed, question);
    try {
      const text = await recall(options, question);
      return text === "" ? changed : remember(questions, question, withMemory(params, text));
    } catch (error) {
      onError(error);
      return changed;
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

function withMemory(params: CallOptions, text: string): CallOptions {
  const newest = params.prompt.findLastIndex((each) => each.role === "user");
  const prompt = params.prompt.map((message, index) =>
    index === newest && message.role === "user"
      ? { ...message, content: [{ type: "text" as const, text }, ...message.content] }
      : message,
  );
  return { ...params, prompt };
}

async function recall(options: MemoryOptions, question: string): Promise<string> {
  const request = {
    query: question,
    agent_id: options.agentId,
    user_id: options.userId,
    budget: options.budget ?? 1000,
  };
  const recalled = await options.client.recall(request, AbortSignal.timeout(options.deadline ?? 1000));
  return recalled.text;
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
