/**
 * The board: every card, and how a message changes it. Pure; knows neither network nor document.
 */

import { OLD_MS } from "./limits";
import type { Card, Group, SessionList, SessionRemoved, Summary } from "./wire";

export interface Board {
  readonly cards: ReadonlyMap<string, Card>;
  readonly summary: Summary;
}

export type Message =
  | { type: "snapshot"; list: SessionList }
  | { type: "session_changed"; card: Card }
  | { type: "session_removed"; removed: SessionRemoved }
  | { type: "summary"; summary: Summary };

export const GROUPS: readonly Group[] = ["needs_you", "autonomous", "delivered"];

export const EMPTY: Board = {
  cards: new Map(),
  summary: { needsYouCount: 0, autonomousCount: 0, deliveredCount: 0 },
};

/** How messages change the board, oldest first. Many at once cost one copy of it. */
export function apply(board: Board, messages: readonly Message[]): Board {
  let cards: Map<string, Card> | undefined;
  let summary = board.summary;
  const own = () => (cards ??= new Map(board.cards));
  for (const message of messages) {
    switch (message.type) {
      case "snapshot":
        cards = new Map(message.list.sessions.map((card) => [card.sessionId, card]));
        summary = message.list.summary;
        break;
      case "session_changed":
        own().set(message.card.sessionId, message.card);
        break;
      case "session_removed":
        own().delete(message.removed.sessionId);
        break;
      case "summary":
        summary = message.summary;
        break;
    }
  }
  return { cards: cards ?? board.cards, summary };
}

export type Grouped = Readonly<Record<Group, readonly Card[]>>;

/** The cards of each group, in the order in which an operator wants them. */
export function grouped(cards: Iterable<Card>): Grouped {
  const groups: Record<Group, Card[]> = { needs_you: [], autonomous: [], delivered: [] };
  for (const card of cards) {
    groups[card.agentState.group]?.push(card);
  }
  groups.needs_you.sort((a, b) => byWish(a, b) || rank(a) - rank(b) || since(a) - since(b) || byId(a, b));
  groups.autonomous.sort((a, b) => byWish(a, b) || since(b) - since(a) || byId(a, b));
  groups.delivered.sort((a, b) => byWish(a, b) || since(b) - since(a) || byId(a, b));
  return groups;
}

/** A card that is being typed in: it stays where it was until that is done. */
export interface Held {
  sessionId: string;
  group: Group;
  index: number;
}

/** The groups with the held card in its place. What the card says of itself is not touched. */
export function withHeld(groups: Grouped, held: Held | undefined): Grouped {
  if (!held) return groups;
  const isHeld = (card: Card) => card.sessionId === held.sessionId;
  const card = GROUPS.flatMap((group) => groups[group]).find(isHeld);
  if (!card) return groups;
  const without = (group: Group) => groups[group].filter((each) => !isHeld(each));
  const rest = {
    needs_you: without("needs_you"),
    autonomous: without("autonomous"),
    delivered: without("delivered"),
  };
  rest[held.group].splice(held.index, 0, card);
  return rest;
}

const since = (card: Card) => card.agentState.since;

/** A domain layer's wish for the place in the group. */
const byWish = (a: Card, b: Card) => (b.agentState.urgency ?? 0) - (a.agentState.urgency ?? 0);

const byId = (a: Card, b: Card) => (a.sessionId < b.sessionId ? -1 : 1);

/** Sub-states of Needs You, the most urgent first. Errors of every kind share a place. */
const BY_URGENCY: readonly (readonly string[])[] = [
  ["needs_permission"],
  ["awaiting_input"],
  ["error", "usage_limit", "auth_error", "server_error"],
  ["awaiting_approval"],
  ["budget_exceeded"],
  ["paused"],
  ["stopped"],
  ["interrupted"],
];

const RANKS = new Map(BY_URGENCY.flatMap((states, rank) => states.map((state) => [state, rank])));

/** `idle` comes last, after sub-states nobody knows here: somebody added those because they matter. */
function rank(card: Card): number {
  const { state } = card.agentState;
  return state === "idle" ? BY_URGENCY.length + 1 : (RANKS.get(state) ?? BY_URGENCY.length);
}

export interface SubStateCount {
  state: string;
  count: number;
}

/** How many cards are in each sub-state, most first. */
export function subStateCounts(cards: readonly Card[]): SubStateCount[] {
  const counts = new Map<string, number>();
  for (const { agentState } of cards) {
    counts.set(agentState.state, (counts.get(agentState.state) ?? 0) + 1);
  }
  return [...counts]
    .map(([state, count]) => ({ state, count }))
    .sort((a, b) => b.count - a.count || (a.state < b.state ? -1 : 1));
}

/** The cards that have every word of the filter somewhere in what they show. */
export function filtered(cards: Iterable<Card>, filter: string): Card[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...cards];
  return words.length === 0 ? all : all.filter((card) => has(card, words));
}

function has(card: Card, words: readonly string[]): boolean {
  const { title, cwd, branch, harness, mode, agentState, usage, vendorId, sessionId } = card;
  const parts = [title, cwd, branch, harness, mode, agentState.state, agentState.label];
  const text = [...parts, usage.model, vendorId, sessionId].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Whether a card is worth a second look: it waits, and was not dismissed. */
export const canBeDismissed = (card: Card) =>
  card.agentState.group === "needs_you" || card.agentState.state === "session_ended";

/** What it means for a card to be dismissed. */
export const dismissName = (card: Card) =>
  card.agentState.state === "budget_exceeded" ? "Let it go on" : "Dismiss";

/** The cards that were silent for a day, and of which nothing is known to live. */
export const oldCards = (cards: readonly Card[], now: number) =>
  cards.filter((card) => card.capabilities.canArchive && now - card.lastSignal >= OLD_MS);

/** "(3) Quarterdeck": what a tab says of itself. */
export function titleOf(summary: Summary): string {
  return summary.needsYouCount > 0 ? `(${summary.needsYouCount}) Quarterdeck` : "Quarterdeck";
}
