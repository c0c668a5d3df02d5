/** What the server says, under the names that the page uses. The shapes are the server's own
 * (wire.gen.ts); only what has no shape there is written here. */

import type { Entry, Outcome, Page, ProcessView, Removed, Run, Span } from "./wire.gen";

export type {
  AgentState,
  Card,
  Evidence,
  EvidenceLine,
  Group,
  HistoryEntry,
  HistoryPage,
  Page,
  Problem,
  RequestKind,
  RequestView,
  SessionDetail,
  SessionList,
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
