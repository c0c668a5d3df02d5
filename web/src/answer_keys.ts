/** `y`, `n`, `1` to `9` and `r` on one card. */

import { keyed, offerOf } from "./actions";
import { attempts, isLocked, progressOf } from "./attempts";
import { decide } from "./commands";
import { drafts } from "./drafts";
import type { Keys } from "./keys";
import { KEY_PAUSE_MS } from "./limits";
import { readings } from "./readings";
import type { Card, RequestView } from "./wire";

const ANSWER_KEYS = ["y", "n", ..."123456789"];

let quietUntil = 0;

/** The page moved on by itself: the next press may still be meant for what was there before. */
export function pauseAnswerKeys(): void {
  quietUntil = performance.now() + KEY_PAUSE_MS;
}

export const areAnswerKeysQuiet = () => performance.now() < quietUntil;

/** The request that keys answer: the first that can be and is not being answered. */
export function frontOf(card: Card): RequestView | undefined {
  return card.requests.find(
    (request) =>
      offerOf(card, request).kind !== "none" &&
      !isLocked(progressOf(request.answer, request.key === undefined ? undefined : attempts.of(request.key))),
  );
}

export function answerKeys(card: Card | undefined): Keys {
  if (!card) return {};
  const press = (key: string) => (event: KeyboardEvent) => {
    if (!event.repeat && !areAnswerKeysQuiet() && inSight(card)) act(card, key);
  };
  // Where nothing waits, these keys are free for others.
  const answers = card.requests.length === 0 ? [] : ANSWER_KEYS;
  return {
    ...Object.fromEntries(answers.map((key) => [key, press(key)])),
    r: () => reply(card),
  };
}

/** What a key, or its line in the palette, does. */
export function act(card: Card, key: string): void {
  const request = frontOf(card);
  if (!request?.key) return;
  // It came just now, in the place of what was there: the key was meant for that.
  if (!readings.isSettled(request)) return;
  const draft = drafts.ofRequest(card.sessionId, request.key);
  const meant = keyed(offerOf(card, request), draft, key, questionAtHand(card));
  if (meant?.type === "decide") void decide(request, meant.decision);
  if (meant?.type === "choose") {
    const filled = [...(draft.filled ?? [])];
    filled[meant.question] = meant.filled;
    drafts.change(card.sessionId, request.key, { filled });
  }
}

/** Goes to the box for the next prompt. */
export function reply(card: Card): void {
  const place = placeOf(card)?.querySelector<HTMLElement>("[data-reply]");
  if (place instanceof HTMLTextAreaElement) place.focus();
  else place?.click();
}

const placeOf = (card: Card) => document.querySelector(`[data-session="${CSS.escape(card.sessionId)}"]`);

function questionAtHand(card: Card): number | undefined {
  const place = document.activeElement?.closest<HTMLElement>("[data-question]");
  const index = place?.dataset["question"];
  return index !== undefined && placeOf(card)?.contains(place ?? null) ? Number(index) : undefined;
}

/** Nobody answers what they do not see: out of sight, a key brings the card back and does no more. */
function inSight(card: Card): boolean {
  const place = placeOf(card);
  if (!place) return false;
  const { top, bottom } = place.getBoundingClientRect();
  const seen = Math.min(bottom, innerHeight) - Math.max(top, 0);
  if (seen >= Math.min(bottom - top, innerHeight) / 2) return true;
  place.scrollIntoView({ block: "nearest" });
  return false;
}
