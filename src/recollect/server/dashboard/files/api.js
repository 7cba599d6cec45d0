// The client of the service's API: requests, rejected keys, and retries while the server is unreachable.
import { state, update } from "./store.js";

const FIRST_WAIT = 1000; // milliseconds
const LONGEST_WAIT = 10000;

export class ApiError extends Error {
  constructor(status, code, detail, retryAfter = 0) {
    super(detail || code);
    Object.assign(this, { status, code, detail, retryAfter });
  }
}

export async function call(method, path, { query, body, headers = {}, signal } = {}) {
  const response = await reach(method, path + asQuery(query), body, headers, signal);
  if (response.status === 401) {
    update({ needsKey: true });
  } else if (state.connection === "gone") {
    recovered();
  }
  if (!response.ok) throw await problem(response);
  return response.status === 204 ? null : response.json();
}

export const get = (path, query, signal) => call("GET", path, { query, signal });

export const part = encodeURIComponent;

function asQuery(query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

async function reach(method, url, body, headers, signal) {
  const sent = { ...headers };
  if (state.key) sent.Authorization = `Bearer ${state.key}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  try {
    return await fetch(url, { method, headers: sent, body: text, signal, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lost();
    throw new ApiError(0, "unreachable", "");
  }
}

async function problem(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    body = {}; // a proxy answered instead of the service
  }
  const wait = Number(response.headers.get("Retry-After")) || 0;
  return new ApiError(response.status, body.code || "unknown", body.detail || response.statusText, wait);
}

// --- the server is unreachable: retry with growing delays until it is back ---

function lost() {
  if (state.connection === "gone") return;
  update({ connection: "gone" });
  let wait = FIRST_WAIT;
  const look = async () => {
    if (state.connection !== "gone") return;
    try {
      await fetch("/healthz", { cache: "no-store", credentials: "omit" });
      recovered();
    } catch {
      wait = Math.min(wait * 2, LONGEST_WAIT);
      setTimeout(look, wait);
    }
  };
  setTimeout(look, wait);
}

function recovered() {
  if (state.connection === "gone") update({ connection: "ok", epoch: state.epoch + 1 });
}
