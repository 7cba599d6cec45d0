/** An event of a chat stream, such as `text.delta` or `turn.completed`. */
export interface ChatEvent {
  event: string;
  data: Record<string, unknown>;
}

/** The events of a response with server-sent events, as they arrive. */
export async function* eventsOf(response: Response): AsyncGenerator<ChatEvent> {
  if (response.body === null) return;
  let rest = "";
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event !== undefined) yield event;
      }
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parseEvent(block: string): ChatEvent | undefined {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  if (data.length === 0) return undefined; // a comment, which keeps the connection alive
  return { event, data: JSON.parse(data.join("\n")) as Record<string, unknown> };
}
