import { Archive } from "lucide-react";

import { oldCards } from "../board";
import { useNow } from "../clock";
import { archive } from "../commands";
import type { Card } from "../wire";
import { ActButton } from "./act_button";

/** Moves what is old, and of which nothing lives any more, to History. */
export function ClearOld({ cards }: { cards: readonly Card[] }) {
  const count = useNow((now) => oldCards(cards, now).length);
  if (count === 0) return null;
  return (
    <p className="clear-old">
      <ActButton look="quiet" icon={Archive} onPress={() => void archive(oldCards(cards, Date.now()))}>
        Move {count} silent for a day to History
      </ActButton>
    </p>
  );
}
