/** How groups and sub-states look: an icon and a few words for each that is known. */

import {
  BellRing,
  CircleCheck,
  CircleEllipsis,
  CirclePause,
  CirclePlay,
  CircleQuestionMark,
  CircleSlash,
  CircleStop,
  ClipboardCheck,
  FlaskConical,
  Gauge,
  GitBranch,
  GitCommitHorizontal,
  GitPullRequest,
  KeyRound,
  type LucideIcon,
  MessageCircleQuestionMark,
  MessageSquare,
  PenLine,
  Power,
  RotateCw,
  ServerCrash,
  ShieldQuestionMark,
  Shrink,
  Split,
  SquareTerminal,
  TriangleAlert,
  Wallet,
  Webhook,
} from "lucide-react";

import { words } from "./amount";
import type { Card, Group } from "./wire";

interface Look {
  icon: LucideIcon;
  /** For counts in a group's header. */
  short: string;
}

const SUB_STATES: Readonly<Record<string, Look>> = {
  needs_permission: { icon: ShieldQuestionMark, short: "permission" },
  awaiting_input: { icon: MessageCircleQuestionMark, short: "question" },
  error: { icon: TriangleAlert, short: "error" },
  usage_limit: { icon: Gauge, short: "usage limit" },
  auth_error: { icon: KeyRound, short: "sign-in" },
  server_error: { icon: ServerCrash, short: "service" },
  awaiting_approval: { icon: ClipboardCheck, short: "plan" },
  budget_exceeded: { icon: Wallet, short: "budget" },
  paused: { icon: CirclePause, short: "paused" },
  interrupted: { icon: CircleStop, short: "interrupted" },
  idle: { icon: MessageSquare, short: "idle" },
  starting: { icon: Power, short: "starting" },
  thinking: { icon: CircleEllipsis, short: "thinking" },
  acting: { icon: SquareTerminal, short: "acting" },
  delegating: { icon: Split, short: "delegating" },
  compacting: { icon: Shrink, short: "compacting" },
  retrying: { icon: RotateCw, short: "retrying" },
  hooks: { icon: Webhook, short: "hooks" },
  stopping: { icon: CircleStop, short: "stopping" },
  unknown: { icon: CircleQuestionMark, short: "unknown" },
  task_complete: { icon: CircleCheck, short: "finished" },
  session_ended: { icon: CircleSlash, short: "ended" },
};

/** What a domain layer may ask for. */
const LAYER_ICONS: Readonly<Record<string, LucideIcon>> = {
  branch: GitBranch,
  commit: GitCommitHorizontal,
  draft: PenLine,
  feedback: MessageSquare,
  pull_request: GitPullRequest,
  revision: PenLine,
  test: FlaskConical,
  tests: FlaskConical,
};

const GROUP_ICONS: Readonly<Record<Group, LucideIcon>> = {
  needs_you: BellRing,
  autonomous: CirclePlay,
  delivered: CircleCheck,
};

const GROUP_NAMES: Readonly<Record<Group, string>> = {
  needs_you: "Needs You",
  autonomous: "Autonomous",
  delivered: "Delivered",
};

export const groupName = (group: Group) => GROUP_NAMES[group];

export const groupIcon = (group: Group) => GROUP_ICONS[group];

/** The layer's, else the sub-state's, else the group's. */
export function iconOf({ icon, agentState }: Card): LucideIcon {
  const name = icon?.replace(/-/g, "_") ?? "";
  const layer = Object.hasOwn(LAYER_ICONS, name) ? LAYER_ICONS[name] : undefined;
  return layer ?? subStateIcon(agentState.group, agentState.state);
}

export function subStateIcon(group: Group, state: string): LucideIcon {
  return (Object.hasOwn(SUB_STATES, state) ? SUB_STATES[state]?.icon : undefined) ?? GROUP_ICONS[group];
}

export function subStateWord(state: string): string {
  return (
    (Object.hasOwn(SUB_STATES, state) ? SUB_STATES[state]?.short : undefined) ?? words(state).toLowerCase()
  );
}
