/**
 * The one stream: opened, read, opened again with a pause that grows, from where it broke off.
 *
 * Read with fetch and not with EventSource: that one hides the status (signed out or away?) and
 * notices a dead line only when the system does.
 */

import { Refused, refusal } from "./api";
import type { Message } from "./board";
import { doubt, signedFetch, StrangerError } from "./browser_key";
import { EventReader, type StreamEvent } from "./event_stream";
import { RECONNECT_MS_MAX, RECONNECT_MS_MIN, SILENCE_MS_MAX } from "./limits";
import type { Card, SessionList, SessionRemoved, Summary } from "./wire";

export type Link =
  | { state: "connecting" }
  | { state: "live" }
  /** Broken off; cards are as they were at `since`. */
  | { state: "away"; since: number; isStranger: boolean }
  | { state: "signed_out" };

export interface Listener {
  message(message: Message): void;
  /** An event of a session that the daemon drives. */
  agent(event: StreamEvent): void;
  link(link: Link): void;
}

export class Connection {
  private readonly listener: Listener;
  private readonly url: string;
  private lastEventId: string | undefined;
  private attempts = 0;
  private away: number | undefined;
  private current: AbortController | undefined;
  private wake: (() => void) | undefined;
  private retries = 0;
  private closed = false;

  constructor(url: string, listener: Listener) {
    this.url = url;
    this.listener = listener;
  }

  open(): void {
    void this.run();
  }

  /** Something changed (the network is back, somebody looks, somebody signed in): try at once. */
  retry(): void {
    this.retries += 1;
    this.attempts = 0;
    this.wake?.();
  }

  close(): void {
    this.closed = true;
    this.current?.abort();
    this.wake?.();
  }

  private async run(): Promise<void> {
    while (!this.closed) {
      const { retries } = this;
      const problem = await this.listen();
      if (this.closed) return;
      if (problem instanceof Refused && problem.signedOut) {
        // Somebody who signed in while the refusal was on its way is not signed out.
        if (this.retries !== retries) continue;
        this.listener.link({ state: "signed_out" });
        await this.pause(undefined);
        continue;
      }
      this.away ??= Date.now();
      const isStranger = problem instanceof StrangerError;
      this.listener.link({ state: "away", since: this.away, isStranger });
      await this.pause(pauseMs(this.attempts++, Math.random()));
    }
  }

  /** Until it breaks; says why. */
  private async listen(): Promise<Error> {
    const abort = new AbortController();
    this.current = abort;
    let watchdog = setTimeout(() => abort.abort(), SILENCE_MS_MAX);
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (this.lastEventId !== undefined) headers["last-event-id"] = this.lastEventId;
      const response = await signedFetch(this.url, { headers, cache: "no-store", signal: abort.signal });
      if (!response.ok || !response.body) return await refusal(response);
      // Who goes on from where he was may have nothing to hear for a while.
      if (this.lastEventId !== undefined) this.arrived();
      const text = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const reader = new EventReader();
      for (;;) {
        const { done, value } = await text.read();
        if (done) return new Error("the daemon closed the stream");
        clearTimeout(watchdog);
        watchdog = setTimeout(() => abort.abort(), SILENCE_MS_MAX);
        for (const event of reader.read(value)) this.take(event);
      }
    } catch (error) {
      // What cannot be read would come again and again: begin with a snapshot.
      if (error instanceof SyntaxError) this.lastEventId = undefined;
      if (error instanceof StrangerError) return error;
      return new Error("the daemon does not answer");
    } finally {
      doubt();
      clearTimeout(watchdog);
      abort.abort();
    }
  }

  private take(event: StreamEvent): void {
    const message = messageOf(event);
    if (event.name.startsWith("agent:")) this.listener.agent(event);
    if (message) {
      this.listener.message(message);
      this.arrived();
    }
    // Only after it was taken in: what is not, comes again.
    if (event.id !== undefined) this.lastEventId = event.id;
  }

  private arrived(): void {
    this.attempts = 0;
    this.away = undefined;
    this.listener.link({ state: "live" });
  }

  private pause(ms: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Doubles with each attempt up to a bound; up to a half is chance, so that tabs do not come together. */
export function pauseMs(attempt: number, chance: number): number {
  const full = Math.min(RECONNECT_MS_MIN * 2 ** attempt, RECONNECT_MS_MAX);
  return full * (1 - chance / 2);
}

/** Events of other names are for other readers, or for a page that is newer than this one. */
export function messageOf(event: StreamEvent): Message | undefined {
  switch (event.name) {
    case "snapshot":
      return { type: "snapshot", list: JSON.parse(event.data) as SessionList };
    case "session_changed":
      return { type: "session_changed", card: JSON.parse(event.data) as Card };
    case "session_removed":
      return { type: "session_removed", removed: JSON.parse(event.data) as SessionRemoved };
    case "summary":
      return { type: "summary", summary: JSON.parse(event.data) as Summary };
    default:
      return undefined;
  }
}
