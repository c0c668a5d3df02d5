/** Keys of the whole page. What is typed into a field, or held with Ctrl, is not ours. */

import { useEffect, useRef } from "react";

export type Keys = Readonly<Record<string, (event: KeyboardEvent) => void>>;

export function useKeys(keys: Keys): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const name = nameOf(event);
      const act = Object.hasOwn(current.current, name) ? current.current[name] : undefined;
      if (!act || event.defaultPrevented) return;
      const typing = name.length === 1 && isTyped(event.target);
      if (typing || (document.querySelector("dialog[open]") && name !== "Mod+k")) return;
      event.preventDefault();
      act(event);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

/** "j", "?", "Mod+k". */
function nameOf(event: KeyboardEvent): string {
  const held = event.metaKey || event.ctrlKey;
  if (event.altKey) return "";
  return held ? `Mod+${event.key.toLowerCase()}` : event.key;
}

export function isTyped(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]") !== null
  );
}
