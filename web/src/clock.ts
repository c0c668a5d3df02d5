/** One clock for all that tick, a beat a second, and none while nobody looks. */

import { useSyncExternalStore } from "react";

const BEAT_MS = 1_000;

const readers = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function beat(): void {
  now = Date.now();
  if (document.hidden) return;
  for (const reader of readers) reader();
}

function subscribe(reader: () => void): () => void {
  if (readers.size === 0) {
    now = Date.now();
    timer = setInterval(beat, BEAT_MS);
    document.addEventListener("visibilitychange", beat);
  }
  readers.add(reader);
  return () => {
    readers.delete(reader);
    if (readers.size > 0) return;
    clearInterval(timer);
    document.removeEventListener("visibilitychange", beat);
  };
}

/** What is made of the present moment; a render only when that changes. */
export function useNow<T extends string | number>(of: (now: number) => T): T {
  return useSyncExternalStore(subscribe, () => of(now));
}
