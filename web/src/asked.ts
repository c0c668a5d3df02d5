/** An answer of the server while it is on its way, there, or refused. */

import { useCallback, useEffect, useState } from "react";

import { ask, Refused } from "./api";

export type Asked<T> =
  { state: "loading" } | { state: "there"; value: T } | { state: "refused"; refused: Refused };

/** Asks for `path`, again when it or `turn` changes; what is there stays until the new answer is. */
export function useAsked<T>(path: string, turn: unknown = 0): { asked: Asked<T>; again: () => void } {
  const [asked, setAsked] = useState<Asked<T>>({ state: "loading" });
  const [tries, setTries] = useState(0);
  const [shownPath, setShownPath] = useState(path);
  if (shownPath !== path) {
    setShownPath(path);
    setAsked({ state: "loading" });
  }
  useEffect(() => {
    const abort = new AbortController();
    ask<T>(path, abort.signal).then(
      (value) => setAsked({ state: "there", value }),
      (error: unknown) => {
        if (!abort.signal.aborted) setAsked({ state: "refused", refused: asRefused(error) });
      },
    );
    return () => abort.abort();
  }, [path, turn, tries]);
  return { asked, again: useCallback(() => setTries((count) => count + 1), []) };
}

export function asRefused(error: unknown): Refused {
  if (error instanceof Refused) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new Refused(0, { code: "unreadable", message, retryable: false });
}
