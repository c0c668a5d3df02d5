/** Short sentences about what just happened, one at a time. */

import { useSyncExternalStore } from "react";

import { NOTICE_MS, UNDO_MS } from "./limits";

export interface Notice {
  text: string;
  failed: boolean;
  undo?: () => void;
}

const readers = new Set<() => void>();
let current: Notice | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

function show(notice: Notice | undefined): void {
  current = notice;
  clearTimeout(timer);
  if (notice) timer = setTimeout(() => show(undefined), notice.undo ? UNDO_MS : NOTICE_MS);
  for (const reader of readers) reader();
}

export const say = (text: string) => show({ text, failed: false });

/** What was done, and can be undone for a while. */
export const sayUndoable = (text: string, undo: () => void) => show({ text, failed: false, undo });

export const sayFailed = (text: string) => show({ text, failed: true });

function subscribe(reader: () => void): () => void {
  readers.add(reader);
  return () => readers.delete(reader);
}

export const useNotice = () => useSyncExternalStore(subscribe, () => current);
