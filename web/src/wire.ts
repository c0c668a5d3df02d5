/** What the server says, under the names that the page uses. The shapes are the server's own
 * (wire.gen.ts); only what has no shape there is written here. */

import type {
  Answered,
  Capabilities,
  Conflict,
  Entry,
  Outcome,
  Page,
  ProcessView,
  Reach,
  Removed,
  Run,
  Span,
} from "./wire.gen";

export type {
  About,
  AgentState,
  Answer,
  AnswerState,
  AnswerView,
  Archived,
  By,
  Capabilities,
  Card,
  Decision,
  DeviceView,
  Evidence,
  EvidenceLine,
  FirstAnswer,
  Group,
  HarnessList,
  HarnessOffered,
  HistoryEntry,
  HistoryPage,
  Origin,
  Page,
  PolicyView,
  Preset,
  PushKeyView,
  RequestKind,
  RequestView,
  SessionBegun,
  SessionDetail,
  SessionList,
  SessionWanted,
  SignedIn,
  SubagentView,
  Summary,
  UnreadableAgent,
  ToolUse,
  Trouble,
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

export type Capability = Exclude<keyof Capabilities, "why">;

/** How far an allowance reaches. */
export type AllowScope = Reach;

/** How an answer reaches the agent: `hook`, `codex`, `opencode`, `recording`, or what a newer server knows. */
export type Way = string;

/** Why something was not done, and what was done before it. */
export type Problem = Conflict;

/** What a decision or a command gets. */
export type Done = Partial<Answered>;
