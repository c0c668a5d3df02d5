/** What the stream tells of driven sessions, brought to those who look at one. */

import type { Change, Piece } from "./driven";
import type { StreamEvent } from "./event_stream";
import { RECENT_CHARS_MAX } from "./limits";

export interface AgentWatcher {
  change(change: Change): void;
  piece(piece: Piece): void;
  /** Something in between may be missing. */
  broke(): void;
}

export class AgentFeed {
  private readonly watchers = new Map<string, Set<AgentWatcher>>();
  /** The newest pieces of all answers, unread: whoever opens a session is given those of its last. */
  private recent: string[] = [];
  private recentChars = 0;

  watch(sessionId: string, watcher: AgentWatcher): () => void {
    const all = this.watchers.get(sessionId) ?? new Set();
    this.watchers.set(sessionId, all.add(watcher));
    for (const piece of this.lastAnswer(sessionId)) watcher.piece(piece);
    return () => {
      all.delete(watcher);
      if (all.size === 0 && this.watchers.get(sessionId) === all) this.watchers.delete(sessionId);
    };
  }

  /** The pieces of an answer that is being given, as far as they are known. */
  private lastAnswer(sessionId: string): Piece[] {
    const told = this.recent.filter((data) => data.includes(`"${sessionId}"`));
    const pieces = told.map((data) => JSON.parse(data) as Piece & { sessionId?: string });
    const its = pieces.filter((piece) => piece.sessionId === sessionId);
    const last = its.at(-1);
    if (!last || last.type === "completed" || last.type === "error") return [];
    return its.filter(({ streamId }) => streamId === last.streamId);
  }

  private keep(data: string): void {
    this.recent.push(data);
    this.recentChars += data.length;
    if (this.recentChars <= RECENT_CHARS_MAX) return;
    // Half at once, so that not every piece moves all others.
    const gone = this.recent.splice(0, Math.ceil(this.recent.length / 2));
    this.recentChars -= gone.reduce((chars, { length }) => chars + length, 0);
  }

  /** Events of sessions that nobody looks at are not even read. */
  event({ name, data }: StreamEvent): void {
    if (name === "agent:stream_event") this.keep(data);
    for (const [sessionId, watchers] of this.watchers) {
      if (!data.includes(`"${sessionId}"`)) continue;
      const told: unknown = JSON.parse(data);
      if ((told as { sessionId?: string }).sessionId !== sessionId) continue;
      for (const watcher of watchers) {
        if (name === "agent:state_event") watcher.change(told as Change);
        if (name === "agent:stream_event") watcher.piece(told as Piece);
      }
    }
  }

  broke(): void {
    this.recent = [];
    this.recentChars = 0;
    for (const watchers of this.watchers.values()) for (const watcher of watchers) watcher.broke();
  }
}
