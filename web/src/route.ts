/** The pages and their addresses. The server knows the same ones (crates/server/src/page.rs). */

import { useSyncExternalStore } from "react";

export type Route =
  | { page: "board" }
  | { page: "session"; sessionId: string }
  | { page: "usage" }
  | { page: "history" }
  | { page: "sign_in" }
  | { page: "nowhere" };

export function routeOf(path: string): Route {
  switch (path) {
    case "/":
      return { page: "board" };
    case "/usage":
      return { page: "usage" };
    case "/history":
      return { page: "history" };
    case "/sign-in":
      return { page: "sign_in" };
  }
  const id = /^\/sessions\/([^/]+)$/.exec(path)?.[1];
  try {
    return id === undefined ? { page: "nowhere" } : { page: "session", sessionId: decodeURIComponent(id) };
  } catch {
    return { page: "nowhere" };
  }
}

export const sessionPath = (sessionId: string) => `/sessions/${encodeURIComponent(sessionId)}`;

const readers = new Set<() => void>();

export function navigate(path: string): void {
  if (path !== location.pathname) history.pushState(null, "", path);
  for (const reader of readers) reader();
}

/** Tells when another page is shown. */
export const onNavigation = (reader: () => void) => subscribe(reader);

function subscribe(reader: () => void): () => void {
  readers.add(reader);
  window.addEventListener("popstate", reader);
  return () => {
    readers.delete(reader);
    window.removeEventListener("popstate", reader);
  };
}

export const usePath = () => useSyncExternalStore(subscribe, () => location.pathname);
