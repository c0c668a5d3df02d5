/** The conversation of one driven session: its past from the detail, its present from the stream. */

import { useEffect, useMemo, useSyncExternalStore } from "react";

import type { AgentWatcher } from "./agent_feed";
import {
  type Conversation,
  NOTHING_SAID,
  type Past,
  withChange,
  withoutLive,
  withPast,
  withStreamed,
} from "./conversation";
import { AGENT_EVENTS_MAX, FLUSH_MS_MIN } from "./limits";
import { live } from "./live";

type Heard = (conversation: Conversation) => Conversation;

/** Many pieces of a moment are one change of what is seen. */
class ConversationStore implements AgentWatcher {
  private conversation = NOTHING_SAID;
  private heard: Heard[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly readers = new Set<() => void>();

  change: AgentWatcher["change"] = (change) => this.hear((known) => withChange(known, change));
  piece: AgentWatcher["piece"] = (piece) => this.hear((known) => withStreamed(known, piece));
  broke = () => this.hear(withoutLive);

  past(past: Past): void {
    this.hear((known) => withPast(known, past));
    this.flush();
  }

  snapshot = () => this.conversation;

  subscribe = (reader: () => void): (() => void) => {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  };

  private hear(heard: Heard): void {
    this.heard.push(heard);
    if (this.heard.length >= AGENT_EVENTS_MAX) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), FLUSH_MS_MIN);
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const before = this.conversation;
    this.conversation = this.heard.reduce((known, heard) => heard(known), before);
    this.heard = [];
    if (this.conversation !== before) for (const reader of this.readers) reader();
  }
}

export function useConversation(sessionId: string, past: Past | undefined): Conversation {
  const store = useMemo(() => new ConversationStore(), [sessionId]);
  useEffect(() => live.agents.watch(sessionId, store), [sessionId, store]);
  useEffect(() => {
    if (past) store.past(past);
  }, [store, past]);
  return useSyncExternalStore(store.subscribe, store.snapshot);
}
