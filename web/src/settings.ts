/** What this browser remembers: the theme and the shape of the board. */

import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
export type Shape = "cards" | "list";

interface Settings {
  theme: Theme;
  shape: Shape;
}

const readers = new Set<() => void>();

let settings: Settings = {
  theme: oneOf(["system", "light", "dark"], stored("theme")),
  shape: oneOf(["cards", "list"], stored("shape")),
};

function oneOf<T extends string>(known: readonly [T, ...T[]], value: string | null): T {
  return known.find((each) => each === value) ?? known[0];
}

/** A browser that keeps nothing still shows the page. */
function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function set(change: Partial<Settings>): void {
  settings = { ...settings, ...change };
  document.documentElement.dataset["theme"] = settings.theme;
  try {
    for (const [name, value] of Object.entries(change)) localStorage.setItem(name, value);
  } catch {
    // Kept for this tab.
  }
  for (const reader of readers) reader();
}

function subscribe(reader: () => void): () => void {
  readers.add(reader);
  return () => readers.delete(reader);
}

export const useSettings = () => useSyncExternalStore(subscribe, () => settings);

const THEMES: readonly Theme[] = ["system", "light", "dark"];

export const nextTheme = (theme: Theme): Theme => THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
