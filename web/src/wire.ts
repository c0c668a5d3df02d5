/** What the server says, under the names that the page uses. The shapes are the server's own
 * (wire.gen.ts); only what has no shape there is written here. */

import type * as gen from "./wire.gen";
import type { Entry, Outcome, Page, ProcessView, Removed, Run, Span, Timestamp } from "./wire.gen";

export type {
  AgentState,
  Evidence,
  EvidenceLine,
  Group,
  HistoryEntry,
  HistoryPage,
  Page,
  RequestKind,
  SubagentView,
  Summary,
  ToolUse,
  UsageReport,
  UsageRow,
  UsageView,
} from "./wire.gen";

export type TranscriptEntry = Entry;
export type TranscriptPage = Page;
export type RunView = Run;
export type RunOutcome = Outcome;
export type GroupSpan = Span;
export type Where = ProcessView;
export type SessionRemoved = Removed;

/** The stream's last event. */
export interface Goodbye {
  reason: "slow" | "stopping";
}

/** How a usage report is grouped. */
export type UsageBy = "day" | "week" | "month" | "model" | "project" | "session" | "harness";

/* Acting. To be deleted when wire.gen.ts has these shapes. */

/** What can be done with a session, and a sentence for each thing that cannot. */
export interface Capabilities {
  canApprove: boolean;
  canAnswer: boolean;
  canPrompt: boolean;
  canInterrupt: boolean;
  canStop: boolean;
  canResume: boolean;
  canYolo: boolean;
  canFocus: boolean;
  why: Readonly<Record<string, string>>;
}

export type Capability = Exclude<keyof Capabilities, "why">;

export type AllowScope = "once" | "session" | "always";

export interface Answer {
  /** The question's id or, where it has none, its text. */
  question: string;
  values: string[];
}

export type Decision =
  | { type: "allow"; input?: unknown; scope?: AllowScope }
  | { type: "deny"; message?: string; interrupt?: boolean }
  | { type: "answer"; answers: Answer[] }
  | { type: "approve_plan"; mode?: string }
  | { type: "reject_plan"; feedback?: string };

/** Whoever gave an answer. */
export interface By {
  who: string;
  device: string;
}

/** `sending`: written down, not taken yet. `delivered`: the agent's side has it. `failed`: it did
 * not arrive and the request is open again. `unclear`: nobody knows whether it arrived. */
export type AnswerState = "sending" | "delivered" | "failed" | "unclear";

export interface AnswerView {
  decision: Decision;
  state: AnswerState;
  by: By;
  rule?: string;
  at: Timestamp;
  why?: string;
}

export type Way = "hook" | "codex" | "opencode";

export type RequestView = gen.RequestView & {
  /** Names the request in addresses; `requestId` is the agent's. */
  key?: string;
  /** How an answer reaches the agent. Without one it cannot be answered from here. */
  way?: Way;
  whyNot?: string;
  /** What "Always" would keep, in words. */
  suggestions?: string[];
  /** Permission modes that may follow a plan. */
  modes?: string[];
  answer?: AnswerView;
};

export type Card = Omit<gen.Card, "requests"> & {
  requests: RequestView[];
  capabilities?: Capabilities;
  /** `manual`, `careful`, `auto-edit` or `yolo`; none: nothing is answered by rule. */
  policy?: string;
};

export type SessionList = Omit<gen.SessionList, "sessions"> & { sessions: Card[] };
export type SessionDetail = Omit<gen.SessionDetail, "card"> & { card: Card };

/** The answer that was first. */
export interface FirstAnswer {
  decision: Decision;
  by: By;
  at: Timestamp;
  state: string;
}

export type Problem = gen.Problem & { first?: FirstAnswer };

/** What a decision or a command gets. */
export interface Done {
  decisionId?: string;
  state?: string;
}
