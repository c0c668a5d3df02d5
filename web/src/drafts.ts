/**
 * What was typed or chosen and not sent, for each session. It outlives every change of the board,
 * the card that shows it, and a tab that the phone threw away.
 */

import { useSyncExternalStore } from "react";

import type { Filled } from "./actions";
import { DRAFT_CHARS_MAX, DRAFTS_MAX, LEFTOVERS_MAX } from "./limits";
import type { By, Card } from "./wire";

/** The answer to one request, unfinished. */
export interface RequestDraft {
  /** The box that is open beside the buttons. */
  readonly open?: "message" | "edit" | "always" | undefined;
  /** Why it is denied, or what is wrong with the plan. */
  readonly message?: string;
  readonly command?: string;
  readonly mode?: string;
  readonly filled?: readonly (Filled | undefined)[];
}

/** Text whose request was answered before it was sent. */
export interface Leftover {
  readonly text: string;
  /** None: in the terminal, as far as anybody knows. */
  readonly by?: By;
}

export interface Draft {
  readonly prompt?: string;
  readonly requests: Readonly<Record<string, RequestDraft>>;
  readonly left: readonly Leftover[];
}

export const NO_DRAFT: Draft = { requests: {}, left: [] };
export const NO_REQUEST_DRAFT: RequestDraft = {};

/** Newest last. */
export type Drafts = ReadonlyMap<string, Draft>;

export function withDraft(drafts: Drafts, sessionId: string, draft: Draft): Drafts {
  const next = new Map(drafts);
  next.delete(sessionId);
  if (!isBlank(draft)) next.set(sessionId, draft);
  for (const oldest of next.keys()) {
    if (next.size <= DRAFTS_MAX) break;
    next.delete(oldest);
  }
  return next;
}

const isBlank = ({ prompt, requests, left }: Draft) =>
  !prompt && Object.keys(requests).length === 0 && left.length === 0;

export function withRequest(draft: Draft, key: string, request: RequestDraft | undefined): Draft {
  const { [key]: _, ...others } = draft.requests;
  return { ...draft, requests: request === undefined ? others : { ...others, [key]: request } };
}

/** What somebody would have to type again. */
export function typedIn(draft: RequestDraft): string {
  const filled = draft.filled ?? [];
  return [draft.message, draft.command, ...filled.map((each) => each?.text)].filter(Boolean).join("\n");
}

/** Whether anything of it is unfinished, be it a box that is open. */
export const isBegun = (draft: RequestDraft) =>
  draft.open !== undefined ||
  Boolean(draft.mode) ||
  typedIn(draft) !== "" ||
  (draft.filled ?? []).some((each) => each && each.chosen.length > 0);

export interface Gone {
  key: string;
  request: RequestDraft;
}

/** The requests of a draft that the card does not have any more. */
export function goneOf(draft: Draft, card: Card): Gone[] {
  const open = new Set(card.requests.map(({ key }) => key));
  return Object.entries(draft.requests).flatMap(([key, request]) =>
    open.has(key) ? [] : [{ key, request }],
  );
}

/** Closes a request; what was typed for it and not sent stays to be used. */
export function closed(draft: Draft, { key, request }: Gone, sent: boolean, by?: By): Draft {
  const text = sent ? "" : typedIn(request);
  const without = withRequest(draft, key, undefined);
  if (text === "") return without;
  const left = by === undefined ? { text } : { text, by };
  return { ...without, left: [...without.left, left].slice(-LEFTOVERS_MAX) };
}

export class DraftStore {
  private drafts: Drafts;
  private readonly readers = new Set<() => void>();

  constructor(private readonly storage: Pick<Storage, "getItem" | "setItem"> | undefined) {
    this.drafts = read(storage);
  }

  of = (sessionId: string): Draft => this.drafts.get(sessionId) ?? NO_DRAFT;

  ofRequest = (sessionId: string, key: string): RequestDraft =>
    this.of(sessionId).requests[key] ?? NO_REQUEST_DRAFT;

  all = (): Drafts => this.drafts;

  set(sessionId: string, draft: Draft): void {
    this.drafts = withDraft(this.drafts, sessionId, draft);
    try {
      this.storage?.setItem(NAME, JSON.stringify([...this.drafts], withoutSecrets));
    } catch {
      // Kept for as long as the tab lives.
    }
    for (const reader of this.readers) reader();
  }

  prompt(sessionId: string, text: string): void {
    this.set(sessionId, { ...this.of(sessionId), prompt: text.slice(0, DRAFT_CHARS_MAX) });
  }

  change(sessionId: string, key: string, change: RequestDraft): void {
    const draft = this.of(sessionId);
    const next = { ...draft.requests[key], ...bounded(change) };
    this.set(sessionId, withRequest(draft, key, isBegun(next) ? next : undefined));
  }

  subscribe = (reader: () => void): (() => void) => {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  };
}

const NAME = "drafts";

const withoutSecrets = (_: string, value: unknown) =>
  typeof value === "object" && value !== null && "secret" in value ? { ...value, text: "" } : value;

function bounded(change: RequestDraft): RequestDraft {
  const cut = (text: string) => text.slice(0, DRAFT_CHARS_MAX);
  const filled = change.filled?.map((each) => each && { ...each, text: cut(each.text) });
  return {
    ...change,
    ...(change.message === undefined ? {} : { message: cut(change.message) }),
    ...(change.command === undefined ? {} : { command: cut(change.command) }),
    ...(filled === undefined ? {} : { filled }),
  };
}

/** What an older page left there, if it still reads like drafts. */
function read(storage: Pick<Storage, "getItem"> | undefined): Drafts {
  try {
    const kept: unknown = JSON.parse(storage?.getItem(NAME) ?? "[]");
    if (!Array.isArray(kept)) return new Map();
    return new Map(kept.filter(isKept).map(([id, draft]) => [id, { ...NO_DRAFT, ...draft }]));
  } catch {
    return new Map();
  }
}

function isKept(value: unknown): value is [string, Draft] {
  if (!Array.isArray(value) || typeof value[0] !== "string") return false;
  const { requests, left } = (value[1] ?? {}) as Partial<Draft>;
  return typeof requests === "object" && requests !== null && Array.isArray(left);
}

/** A browser may keep nothing. */
function storage(): Storage | undefined {
  try {
    return globalThis.sessionStorage;
  } catch {
    return undefined;
  }
}

export const drafts = new DraftStore(storage());

export const useDraft = (sessionId: string) =>
  useSyncExternalStore(drafts.subscribe, () => drafts.of(sessionId));

export const useDrafts = () => useSyncExternalStore(drafts.subscribe, drafts.all);
