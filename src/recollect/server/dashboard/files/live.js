// Load data, and reload it while the page is visible.
import { useEffect, useRef, useState } from "./lib.js";
import { state } from "./store.js";

const LONGEST_WAIT = 60000; // milliseconds

// `load(signal)` runs when `about` changes, when the service is back, and at a fixed interval.
export function useLive(load, about, every = 0) {
  const [result, setResult] = useState({ about: null, data: undefined, error: null });
  const latest = useRef(load);
  const again = useRef(() => {});
  latest.current = load;
  const name = JSON.stringify(about);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    let wait = every;
    const read = async () => {
      clearTimeout(timer);
      const error = await readOnce(latest.current, name, stop.signal, setResult);
      if (stop.signal.aborted || !every || (error && isFinal(error))) return;
      wait = error ? Math.min(Math.max(wait * 2, error.retryAfter * 1000), LONGEST_WAIT) : every;
      timer = setTimeout(next, wait);
    };
    const next = () => (document.hidden ? (timer = setTimeout(next, every)) : read());
    again.current = read;
    read();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [name, every, state.epoch]);
  const isCurrent = result.about === name;
  return {
    data: isCurrent ? result.data : undefined,
    error: isCurrent ? result.error : null,
    isLoading: !isCurrent,
    reload: () => again.current(),
  };
}

async function readOnce(load, name, signal, setResult) {
  try {
    const data = await load(signal);
    if (!signal.aborted) setResult({ about: name, data, error: null });
    return null;
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return null;
    const isGone = error.status === 404;
    setResult((before) => ({ about: name, data: before.about === name && !isGone ? before.data : undefined, error }));
    return error;
  }
}

// Errors that a retry does not fix: a missing or weak key, or an object that does not exist.
function isFinal(error) {
  return [0, 401, 403, 404, 422, 501].includes(error.status);
}

// Cursor pagination: the first page reloads as above, more pages load on request.
export function usePages(fetchPage, about, idOf, every = 0) {
  const name = JSON.stringify(about);
  const [more, setMore] = useState({ about: name, items: [], cursor: undefined, isLoading: false, error: null });
  const first = useLive((signal) => fetchPage(undefined, signal), about, every);
  const added = more.about === name ? more : { items: [], cursor: undefined, isLoading: false, error: null };
  const cursor = added.cursor === undefined ? first.data?.next_cursor : added.cursor;
  const loadMore = async () => {
    setMore({ ...added, about: name, isLoading: true });
    try {
      const page = await fetchPage(cursor);
      setMore({ about: name, items: [...added.items, ...page.items], cursor: page.next_cursor, isLoading: false, error: null });
    } catch (error) {
      setMore({ ...added, about: name, isLoading: false, error });
    }
  };
  const seen = new Set();
  const all = [...(first.data?.items ?? []), ...added.items].filter((item) => {
    const isNew = !seen.has(idOf(item));
    seen.add(idOf(item));
    return isNew;
  });
  return { ...first, error: first.error ?? added.error, items: all, hasMore: Boolean(cursor), loadMore, isLoadingMore: added.isLoading };
}
