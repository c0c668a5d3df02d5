/** What happens to unfinished answers when the board says that their requests are closed. */

import { attempts } from "./attempts";
import { type Board } from "./board";
import { titleOfCard } from "./card_text";
import { closed, drafts, goneOf, isBegun } from "./drafts";
import { live } from "./live";
import { say } from "./notices";
import type { By, Card } from "./wire";

/** Looks at every change of the board, and at what becomes of answers that are on their way. */
export function watchClosing(): void {
  let before = live.snapshot().board;
  live.subscribe(() => {
    const { board } = live.snapshot();
    if (board.cards !== before.cards) settle(before, board);
    before = board;
  });
  attempts.subscribe(() => settle(before, before));
}

function settle(before: Board, board: Board): void {
  for (const [sessionId, draft] of drafts.all()) {
    const card = board.cards.get(sessionId);
    if (!card) continue;
    let next = draft;
    for (const gone of goneOf(draft, card)) {
      const attempt = attempts.of(gone.key);
      // The board may be faster than the word that our own answer was taken.
      if (attempt?.state === "sending") continue;
      const sent = attempt?.state === "taken";
      const first = attempt && "first" in attempt ? attempt.first : undefined;
      const by = answeredBy(before, sessionId, gone.key) ?? first?.by;
      next = closed(next, gone, sent, by);
      if (!sent && isBegun(gone.request)) say(`${elsewhere(card, by)}: ${titleOfCard(card)}`);
    }
    if (next !== draft) drafts.set(sessionId, next);
  }
}

function answeredBy(before: Board, sessionId: string, key: string): By | undefined {
  return before.cards.get(sessionId)?.requests.find((request) => request.key === key)?.answer?.by;
}

/** The terminal is where an answer comes from that nobody here gave; a session of our own has none. */
export function elsewhere(card: Card, by: By | undefined): string {
  if (by !== undefined) return `Answered by ${by.who} on ${by.device}`;
  return card.driven ? "It waits for it no more" : "Answered in the terminal";
}
