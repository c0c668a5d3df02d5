/** The service worker: the shell of the page when the daemon is away, and notifications. */

import { navigate } from "./route";

interface TrustedScripts {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): {
    createScriptURL(url: string): unknown;
  };
}

export function registerWorker(): void {
  if (!("serviceWorker" in navigator) || import.meta.env.DEV) return;
  const registered = navigator.serviceWorker.register(trusted("/worker.js") as string);
  registered.catch((error: unknown) =>
    console.warn("the page will not open while the daemon is away:", error),
  );
  // A notification was clicked, and this window is brought to what it was about.
  navigator.serviceWorker.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    const { type, path } = (data ?? {}) as { type?: string; path?: unknown };
    if (type === "open" && typeof path === "string" && /^\/(?!\/)/.test(path)) navigate(path);
  });
}

/** The policy of the page lets no script address through but this one. */
function trusted(address: string): unknown {
  const scripts = (globalThis as { trustedTypes?: TrustedScripts }).trustedTypes;
  const policy = scripts?.createPolicy("quarterdeck", { createScriptURL: (url) => url });
  return policy ? policy.createScriptURL(address) : address;
}
