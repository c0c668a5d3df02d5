/** Tells the server while somebody has this tab before them, and what it shows: then nobody is told
 * elsewhere, and an agent's own dialog may wait for an answer from here. */

import { Refused, tell } from "./api";
import { ATTENTION_MS, PRESENCE_BEAT_MS } from "./limits";
import { live } from "./live";
import { onNavigation, type Route, routeOf } from "./route";
import { TAB } from "./tab";

/** What counts as somebody's being there. */
export interface Attention {
  visible: boolean;
  focused: boolean;
  /** Since the last key or movement. */
  idleMs: number;
}

/** A page in front of an empty chair is not looked at. */
export const isLookedAt = ({ visible, focused, idleMs }: Attention) =>
  visible && focused && idleMs < ATTENTION_MS;

/** What of the sessions a page shows. */
export function viewOf(route: Route): { board: boolean; session?: string } {
  if (route.page === "session") return { board: false, session: route.sessionId };
  return { board: route.page === "board" };
}

export function watchPresence(): void {
  let touched = performance.now();
  let told: string | undefined;
  let beat: ReturnType<typeof setTimeout> | undefined;
  // Who may only look is not asked.
  let refused = false;

  const look = (again: boolean) => {
    if (refused || live.snapshot().link.state !== "live") {
      told = undefined;
      return;
    }
    const focused = isLookedAt({
      visible: !document.hidden,
      focused: document.hasFocus(),
      idleMs: performance.now() - touched,
    });
    const word = { tab: TAB, focused, ...viewOf(routeOf(location.pathname)) };
    if (JSON.stringify(word) === told && !again) return;
    told = JSON.stringify(word);
    clearTimeout(beat);
    if (focused) beat = setTimeout(() => look(true), PRESENCE_BEAT_MS);
    tell("/api/presence", word).catch((error: unknown) => {
      // What did not arrive is said again with the next change, or the next beat.
      told = undefined;
      refused = error instanceof Refused && error.status === 403;
    });
  };
  const touch = () => {
    touched = performance.now();
    look(false);
  };
  for (const name of ["keydown", "pointerdown", "pointermove", "wheel", "focus"]) {
    window.addEventListener(name, touch, { passive: true });
  }
  window.addEventListener("blur", () => look(false));
  document.addEventListener("visibilitychange", () => look(false));
  live.subscribe(() => look(false));
  onNavigation(() => look(false));
}
