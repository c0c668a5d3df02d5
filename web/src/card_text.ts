/** The words of a card that need a decision. Pure. */

import { projectOf } from "./amount";
import { visibleText } from "./visible";
import type { Card, Where } from "./wire";

export function titleOfCard(card: Card): string {
  const title = card.title?.trim();
  if (title) return visibleText(title, "prose");
  return card.cwd === undefined
    ? `Session ${card.vendorId.slice(0, 8)}`
    : `Session in ${visibleText(projectOf(card.cwd), "code")}`;
}

/** The narrowest place that is known. */
export function placeOf(where: Where | undefined): string | undefined {
  if (!where) return undefined;
  const { tmux, tty, program, pid } = where;
  if (tmux !== undefined) return `tmux ${tmux}`;
  return tty?.replace(/^\/dev\//, "") ?? program ?? (pid === undefined ? undefined : `pid ${pid}`);
}

/** All that is known of the place. */
export function fullPlaceOf(where: Where): string {
  const { program, tmux, tty, pid } = where;
  const parts = [program, tmux && `tmux ${tmux}`, tty, pid === undefined ? undefined : `pid ${pid}`];
  return parts.filter(Boolean).join(", ");
}

/** What the agent said or does, where no request says it better. */
export function contextOf(card: Card): { text: string; isCode: boolean } | undefined {
  const { context, group } = card.agentState;
  if (!context || card.requests.length > 0) return undefined;
  const about = context["about"];
  if (typeof about === "string" && about !== "") return { text: about, isCode: true };
  if (group === "delivered") return undefined;
  for (const name of ["message", "text", "error"]) {
    const text = context[name];
    if (typeof text === "string" && text !== "") return { text, isCode: false };
  }
  return undefined;
}

/** How full the model's memory is, 0 to 1. */
export function contextShare(card: Card): number | undefined {
  const { contextTokens, contextWindow } = card.usage;
  if (contextTokens === undefined || !contextWindow) return undefined;
  return Math.min(1, contextTokens / contextWindow);
}
