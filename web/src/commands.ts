/** What the operator can ask for from a card or a key. */

import { Refused, tell } from "./api";
import { titleOfCard } from "./card_text";
import { say, sayFailed } from "./notices";
import type { Card } from "./wire";

export async function dismiss(card: Card): Promise<void> {
  await tried("Not dismissed", async () => {
    await tell(`/api/sessions/${encodeURIComponent(card.sessionId)}/dismiss`);
    say(`Dismissed: ${titleOfCard(card)}`);
  });
}

export async function copy(text: string): Promise<void> {
  await tried("Not copied", async () => {
    await navigator.clipboard.writeText(text);
    say("Copied");
  });
}

async function tried(failed: string, what: () => Promise<void>): Promise<void> {
  try {
    await what();
  } catch (error) {
    const why = error instanceof Refused || error instanceof Error ? error.message : String(error);
    sayFailed(`${failed}: ${why}`);
  }
}
