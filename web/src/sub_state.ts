/** How groups and sub-states look: an icon and a few words for each that is known. */

import {
  BadgeCheck,
  BellRing,
  BookOpen,
  Bug,
  CircleCheck,
  CircleEllipsis,
  CirclePause,
  CirclePlay,
  CircleQuestionMark,
  CircleSlash,
  CircleStop,
  CircleX,
  ClipboardCheck,
  Clock,
  CloudUpload,
  Database,
  Eye,
  FilePen,
  Flag,
  FlaskConical,
  Gauge,
  GitBranch,
  GitCommitHorizontal,
  GitPullRequest,
  Hammer,
  Hourglass,
  KeyRound,
  type LucideIcon,
  MessageCircleQuestionMark,
  MessageSquare,
  MessageSquareQuote,
  MessagesSquare,
  Palette,
  PenLine,
  Power,
  Repeat,
  Rocket,
  RotateCw,
  ServerCrash,
  ShieldQuestionMark,
  Shrink,
  Split,
  SquareTerminal,
  Star,
  Telescope,
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
  /** Of several, where that is another word. */
  several?: string;
}

const SUB_STATES: Readonly<Record<string, Look>> = {
  needs_permission: { icon: ShieldQuestionMark, short: "permission", several: "permissions" },
  awaiting_input: { icon: MessageCircleQuestionMark, short: "question", several: "questions" },
  error: { icon: TriangleAlert, short: "error", several: "errors" },
  usage_limit: { icon: Gauge, short: "at a usage limit" },
  auth_error: { icon: KeyRound, short: "to be signed in" },
  server_error: { icon: ServerCrash, short: "failed service", several: "failed services" },
  awaiting_approval: { icon: ClipboardCheck, short: "plan", several: "plans" },
  budget_exceeded: { icon: Wallet, short: "over budget" },
  paused: { icon: CirclePause, short: "paused" },
  stopped: { icon: CirclePause, short: "stopped" },
  interrupted: { icon: CircleStop, short: "interrupted" },
  idle: { icon: MessageSquare, short: "idle" },
  starting: { icon: Power, short: "starting" },
  thinking: { icon: CircleEllipsis, short: "thinking" },
  acting: { icon: SquareTerminal, short: "acting" },
  delegating: { icon: Split, short: "delegating" },
  compacting: { icon: Shrink, short: "compacting" },
  retrying: { icon: RotateCw, short: "retrying" },
  hooks: { icon: Webhook, short: "in hooks" },
  stopping: { icon: CircleStop, short: "stopping" },
  stalled: { icon: Hourglass, short: "stalled" },
  looping: { icon: Repeat, short: "looping" },
  unknown: { icon: CircleQuestionMark, short: "unknown" },
  task_complete: { icon: CircleCheck, short: "finished" },
  session_ended: { icon: CircleSlash, short: "ended" },
};

/** What a domain layer may ask for; docs/layers.md has the same list. */
export const LAYER_ICONS: Readonly<Record<string, LucideIcon>> = {
  branch: GitBranch,
  bug: Bug,
  build: Hammer,
  chat: MessagesSquare,
  clock: Clock,
  commit: GitCommitHorizontal,
  data: Database,
  deploy: Rocket,
  design: Palette,
  docs: BookOpen,
  draft: PenLine,
  feedback: MessageSquareQuote,
  flag: Flag,
  pull_request: GitPullRequest,
  push: CloudUpload,
  research: Telescope,
  review: Eye,
  revision: FilePen,
  star: Star,
  tests: FlaskConical,
  tests_failed: CircleX,
  tests_passed: BadgeCheck,
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
  const layer = icon !== undefined && Object.hasOwn(LAYER_ICONS, icon) ? LAYER_ICONS[icon] : undefined;
  return layer ?? subStateIcon(agentState.group, agentState.state);
}

export function subStateIcon(group: Group, state: string): LucideIcon {
  return (Object.hasOwn(SUB_STATES, state) ? SUB_STATES[state]?.icon : undefined) ?? GROUP_ICONS[group];
}

/** "permission", and of two "permissions". */
export function subStateWord(state: string, count: number): string {
  const look = Object.hasOwn(SUB_STATES, state) ? SUB_STATES[state] : undefined;
  return (count > 1 ? look?.several : undefined) ?? look?.short ?? words(state).toLowerCase();
}
