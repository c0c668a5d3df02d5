/**
 * What was sent from this tab and what became of it, until the board says it. Nothing here closes
 * a card: only the server's word does.
 */

import { useSyncExternalStore } from "react";

import { ATTEMPTS_MAX } from "./limits";
import type { AnswerView, By, Decision, FirstAnswer } from "./wire";

/** `unheard`: nobody said that it was taken, and it may have arrived all the same. */
export type Attempt = {
  /** The same attempt sent again has the same one, and happens once. */
  readonly key: string;
  readonly body: string;
  /** The answer that the board showed when this was sent. */
  readonly over?: number;
} & (
  | { readonly state: "sending" }
  | { readonly state: "taken"; readonly said: string }
  | { readonly state: "unheard" | "refused"; readonly why: string; readonly first?: FirstAnswer }
);

/** How far the answer to a request is. */
export type Progress =
  | { state: "open" }
  | { state: "sending" | "delivered"; by?: By; rule?: string; decision?: Decision }
  | { state: "failed" | "unclear"; why: string }
  | { state: "answered"; first: FirstAnswer };

/** What is shown of a request: this tab's attempt and the board's answer, whichever is newer. */
export function progressOf(answer: AnswerView | undefined, attempt: Attempt | undefined): Progress {
  if (attempt?.state === "sending") return { state: "sending" };
  const isOld = answer === undefined || (attempt !== undefined && answer.at === attempt.over);
  if (!isOld) return told(answer);
  if (attempt === undefined) return { state: "open" };
  switch (attempt.state) {
    case "taken":
      return attempt.said === "failed"
        ? { state: "failed", why: "the agent's side did not take it" }
        : { state: attempt.said === "sending" ? "sending" : "delivered" };
    case "unheard":
      return { state: "unclear", why: attempt.why };
    case "refused":
      return attempt.first === undefined
        ? { state: "failed", why: attempt.why }
        : { state: "answered", first: attempt.first };
  }
}

function told(answer: AnswerView): Progress {
  const { state, by, rule, decision, why } = answer;
  if (state === "failed") return { state, why: why ?? "the agent's side did not take it" };
  if (state === "unclear") return { state, why: why ?? "the agent's side did not say" };
  return { state, by, decision, ...(rule === undefined ? {} : { rule }) };
}

/** Nothing more may be sent now. */
export const isLocked = ({ state }: Progress) =>
  state === "sending" || state === "delivered" || state === "answered";

export class Attempts {
  private attempts: ReadonlyMap<string, Attempt> = new Map();
  private readonly readers = new Set<() => void>();

  constructor(private readonly newKey: () => string) {}

  of = (name: string): Attempt | undefined => this.attempts.get(name);

  /** Begins one; none while the same thing is on its way. */
  begin(name: string, body: unknown, over?: number): Attempt | undefined {
    const before = this.of(name);
    if (before?.state === "sending") return undefined;
    const text = JSON.stringify(body);
    const key = before?.state === "unheard" && before.body === text ? before.key : this.newKey();
    const attempt: Attempt = { key, body: text, state: "sending", ...(over === undefined ? {} : { over }) };
    this.put(name, attempt);
    return attempt;
  }

  put(name: string, attempt: Attempt | undefined): void {
    const next = new Map(this.attempts);
    next.delete(name);
    if (attempt) next.set(name, attempt);
    for (const [oldest, { state }] of next) {
      if (next.size <= ATTEMPTS_MAX) break;
      if (state !== "sending") next.delete(oldest);
    }
    this.attempts = next;
    for (const reader of this.readers) reader();
  }

  subscribe = (reader: () => void): (() => void) => {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  };
}

/** A page that came over plain HTTP from another machine has no `randomUUID`. */
function randomKey(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const attempts = new Attempts(randomKey);

export const useAttempt = (name: string) => useAttempts(() => attempts.of(name));

/** What `seen` reads off the attempts, again when one changes. */
export const useAttempts = <T>(seen: () => T) => useSyncExternalStore(attempts.subscribe, seen);
