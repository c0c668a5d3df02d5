/**
 * The board of this tab: fed by the stream, seen by the parts. A change shows in the next frame;
 * of many, those of a moment show together.
 */

import { useSyncExternalStore } from "react";

import { AgentFeed } from "./agent_feed";
import { apply, type Board, EMPTY, type Message } from "./board";
import { Connection, type Link } from "./connection";
import type { StreamEvent } from "./event_stream";
import { FLUSH_MS_MIN, HIDDEN_FLUSH_MS, PENDING_MAX } from "./limits";
import { TAB } from "./tab";
import type { Card } from "./wire";

export interface Live {
  readonly board: Board;
  readonly link: Link;
  /** A snapshot was taken in: an empty board is empty, and not unknown. */
  readonly known: boolean;
}

export class LiveStore {
  /** Those who look at a driven session. */
  readonly agents = new AgentFeed();
  private state: Live = { board: EMPTY, link: { state: "connecting" }, known: false };
  private pending: Message[] = [];
  private scheduled = false;
  private flushedAt = 0;
  private readonly readers = new Set<() => void>();

  message(message: Message): void {
    if (message.type === "snapshot") {
      // What came before a snapshot is in it.
      this.pending = [];
      this.agents.broke();
    }
    this.pending.push(message);
    if (this.pending.length >= PENDING_MAX) this.flush();
    else this.schedule();
  }

  agent(event: StreamEvent): void {
    this.agents.event(event);
  }

  link(link: Link): void {
    if (link.state === "live" && this.state.link.state === "live") return;
    this.state = { ...this.state, link };
    this.schedule();
  }

  subscribe = (reader: () => void): (() => void) => {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  };

  snapshot = (): Live => this.state;

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const flush = () => this.flush();
    const inFrame = () => (document.hidden ? flush() : requestAnimationFrame(flush));
    const wait = document.hidden ? HIDDEN_FLUSH_MS : this.flushedAt + FLUSH_MS_MIN - performance.now();
    if (wait > 0) setTimeout(inFrame, wait);
    else inFrame();
  }

  flush(): void {
    this.scheduled = false;
    this.flushedAt = performance.now();
    const messages = this.pending;
    this.pending = [];
    const known = this.state.known || messages.some(({ type }) => type === "snapshot");
    this.state = { ...this.state, known, board: apply(this.state.board, messages) };
    for (const reader of this.readers) reader();
  }
}

export const live = new LiveStore();

export const connection = new Connection(`/api/live/stream?tab=${TAB}`, live);

/** Opens the stream, and tries again when there is a reason to. */
export function connect(): void {
  connection.open();
  document.addEventListener("visibilitychange", () => {
    // A frame that was asked for would come only when the tab is looked at again.
    if (document.hidden) live.flush();
    else connection.retry();
  });
  window.addEventListener("online", () => connection.retry());
}

export function useLive(): Live {
  return useSyncExternalStore(live.subscribe, live.snapshot);
}

/** One card, and a render only when it changes. */
export function useCard(sessionId: string): Card | undefined {
  return useSyncExternalStore(live.subscribe, () => live.snapshot().board.cards.get(sessionId));
}
