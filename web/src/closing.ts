/** What happens to unfinished answers when the board says that their requests are closed. */

import { attempts } from "./attempts";
import { type Board } from "./board";
import { titleOfCard } from "./card_text";
import { closed, drafts, goneOf, isBegun } from "./drafts";
import { live } from "./live";
import { say } from "./notices";
import type { By } from "./wire";

/** Looks at every change of the board. */
export function watchClosing(): void {
  let before = live.snapshot().board;
  live.subscribe(() => {
    const { board } = live.snapshot();
    if (board.cards !== before.cards) settle(before, board);
    before = board;
  });
}

function settle(before: Board, board: Board): void {
  for (const [sessionId, draft] of drafts.all()) {
    const card = board.cards.get(sessionId);
    if (!card) continue;
    let next = draft;
    for (const gone of goneOf(draft, card)) {
      const sent = attempts.of(gone.key)?.state === "taken";
      const by = answeredBy(before, sessionId, gone.key);
      next = closed(next, gone, sent, by);
      if (!sent && isBegun(gone.request)) say(`${elsewhere(by)}: ${titleOfCard(card)}`);
    }
    if (next !== draft) drafts.set(sessionId, next);
  }
}

function answeredBy(before: Board, sessionId: string, key: string): By | undefined {
  return before.cards.get(sessionId)?.requests.find((request) => request.key === key)?.answer?.by;
}

/** The terminal is where an answer comes from that nobody here gave. */
export const elsewhere = (by: By | undefined) =>
  by === undefined ? "Answered in the terminal" : `Answered by ${by.who} on ${by.device}`;
