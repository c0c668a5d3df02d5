/** Signs this browser out: the daemon forgets it, and so does the browser. */

import { tell } from "./api";
import { forget } from "./browser_key";

export async function signOut(): Promise<void> {
  try {
    await tell("/api/sign-out");
  } finally {
    // Also where the daemon is away: `qd browsers forget` is left for it.
    await forget();
    const registration = await navigator.serviceWorker?.getRegistration();
    const subscription = await registration?.pushManager?.getSubscription();
    await subscription?.unsubscribe();
  }
}
