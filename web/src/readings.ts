/**
 * Which requests have been read: the whole of each was on the screen, and for a moment. What was not
 * read is not allowed, whichever button or key is pressed.
 */

import { useSyncExternalStore } from "react";

import { READ_MS_MIN, READINGS_MAX } from "./limits";
import type { Card, RequestView } from "./wire";

/**
 * `cut`: the daemon has only its beginning. `unread`: a part is folded, or was not on the screen.
 * `fresh`: it came a moment ago, maybe in the place of another one.
 */
export type ReadState = "cut" | "unread" | "fresh" | "ready";

export class Readings {
  /** Since when a request is on the page. */
  private readonly shownAt = new Map<string, number>();
  /** Since when the whole of it has been on the screen. */
  private readonly wholeAt = new Map<string, number>();
  private readonly readers = new Set<() => void>();

  constructor(private readonly now: () => number) {}

  /** It is on the page from now on, maybe in the place of another one. */
  shown(request: RequestView): void {
    this.shownAt.set(nameOf(request), this.now());
    this.changed();
  }

  /** The whole of it has been on the screen. */
  whole(request: RequestView): void {
    const name = nameOf(request);
    if (this.wholeAt.has(name)) return;
    this.wholeAt.set(name, this.now());
    for (const oldest of this.wholeAt.keys()) {
      if (this.wholeAt.size <= READINGS_MAX) break;
      this.wholeAt.delete(oldest);
    }
    this.changed();
  }

  /** It is on the page no more. */
  gone(request: RequestView): void {
    this.shownAt.delete(nameOf(request));
    this.changed();
  }

  of = (request: RequestView): ReadState => {
    const [shown, whole] = [this.shownAt.get(nameOf(request)), this.wholeAt.get(nameOf(request))];
    if (request.cut === true) return "cut";
    if (shown === undefined || (whole === undefined && request.kind !== "question")) return "unread";
    return this.now() < Math.max(shown, whole ?? 0) + READ_MS_MIN ? "fresh" : "ready";
  };

  /** It did not come or change just now: a key is meant for it. */
  isSettled(request: RequestView): boolean {
    const shown = this.shownAt.get(nameOf(request));
    return shown !== undefined && this.now() >= shown + READ_MS_MIN;
  }

  subscribe = (reader: () => void): (() => void) => {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  };

  /** Readers are told now, and again when what is fresh is so no more. */
  private changed(): void {
    const tell = () => {
      for (const reader of this.readers) reader();
    };
    tell();
    setTimeout(tell, READ_MS_MIN + 1);
  }
}

/** A request that asks for something else is another one to a reader. */
const nameOf = (request: RequestView): string =>
  `${request.key ?? request.requestId} ${request.revision ?? JSON.stringify([request.tool, request.text, request.input])}`;

export const readings = new Readings(() => performance.now());

export const useReadState = (request: RequestView): ReadState =>
  useSyncExternalStore(readings.subscribe, () => readings.of(request));

/** Whether the session may be let run without asking: that allows what it asks for now, too. */
export const mayBeReleased = (card: Card): boolean =>
  card.requests.every((request) => request.kind !== "permission" || readings.of(request) === "ready");

export const useMayBeReleased = (card: Card): boolean =>
  useSyncExternalStore(readings.subscribe, () => mayBeReleased(card));
