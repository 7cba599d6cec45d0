import { ConnectionError, errorFrom } from "./errors.js";

export interface TransportOptions {
  /** The most repetitions of a request that may be repeated. 3 by default. */
  retries?: number;
  /** Milliseconds until an attempt is given up; a stream may last longer. 30,000 by default. */
  timeout?: number;
  /** Another implementation of `fetch`. */
  fetch?: typeof globalThis.fetch;
}

const BUSY = new Set([429, 502, 503, 504]);
const NOTHING_DONE = new Set([
  "concurrency_limited",
  "idempotency_in_progress",
  "not_ready",
  "overloaded",
  "rate_limited",
]);
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;
const READING_POSTS = /\/v1\/(memories\/(search|recall)|conversations\/search)$/;

/**
 * A `fetch` with retries. A request is repeated if it changes nothing or carries an `Idempotency-Key`, and
 * otherwise only if the service says that it did nothing. Responses that are no success throw.
 */
export function transportOf(options: TransportOptions): (request: Request) => Promise<Response> {
  const { retries = 3, timeout = 30_000 } = options;
  const send = options.fetch ?? globalThis.fetch;
  return async (request) => {
    const copies = request.clone();
    for (let attempt = 0; ; attempt++) {
      const result = await attemptOnce(send, copies.clone(), timeout);
      if (result instanceof Response && result.ok) return result;
      const pause = pauseBefore(attempt, result);
      if (attempt >= retries || request.signal.aborted || !(await mayRepeat(request, result))) {
        throw result instanceof Response ? await errorFrom(result) : result;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  };
}

async function attemptOnce(
  send: typeof globalThis.fetch,
  request: Request,
  timeout: number,
): Promise<Response | ConnectionError> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeout);
  try {
    return await send(new Request(request, { signal: AbortSignal.any([request.signal, late.signal]) }));
  } catch (cause) {
    if (request.signal.aborted) throw cause;
    const what = late.signal.aborted ? `no answer within ${timeout} ms` : "no connection to the service";
    return new ConnectionError(what, { cause });
  } finally {
    clearTimeout(timer);
  }
}

async function mayRepeat(request: Request, result: Response | ConnectionError): Promise<boolean> {
  const isSafe =
    request.method === "GET" ||
    request.headers.has("Idempotency-Key") ||
    (request.method === "POST" && READING_POSTS.test(new URL(request.url).pathname));
  if (!(result instanceof Response)) return isSafe;
  if (isSafe && BUSY.has(result.status)) return true;
  const problem = (await result.clone().json().catch(() => ({}))) as { code?: string };
  return NOTHING_DONE.has(problem.code ?? "");
}

function pauseBefore(attempt: number, result: Response | ConnectionError): number {
  const backOff = Math.min(FIRST_PAUSE * 2 ** attempt, LONGEST_PAUSE) * (0.5 + Math.random() / 2);
  const asked = result instanceof Response ? Number(result.headers.get("Retry-After") ?? 0) * 1000 : 0;
  return Math.max(backOff, Number.isFinite(asked) ? Math.min(asked, LONGEST_PAUSE) : 0);
}
