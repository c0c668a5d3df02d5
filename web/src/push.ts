/** This browser's subscription to notifications, and the devices that have one. */

import { ask, remove, tell } from "./api";
import type { DeviceView, PushKeyView } from "./wire";

export type Support =
  /** The browser has no notifications, or not for a page like this one. */
  | "missing"
  /** An iPhone shows them only for a page on its home screen. */
  | "needs_home_screen"
  /** The operator said no, and the browser does not ask again. */
  | "denied"
  | "ready";

export function support(): Support {
  const here = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
  if (!here) return /iPhone|iPad/.test(navigator.userAgent) ? "needs_home_screen" : "missing";
  return Notification.permission === "denied" ? "denied" : "ready";
}

export const devices = (signal?: AbortSignal) => ask<DeviceView[]>("/api/push/subscriptions", signal);

/** The id under which the server knows this browser, where it is subscribed. */
export async function ownId(): Promise<string | undefined> {
  if (support() !== "ready") return undefined;
  const registration = await navigator.serviceWorker.getRegistration();
  const subscription = await registration?.pushManager.getSubscription();
  return subscription ? idOf(subscription.endpoint) : undefined;
}

/** Made of the address, as the server makes it. */
export async function idOf(endpoint: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  return Array.from(new Uint8Array(hash, 0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Asks the operator, and subscribes. Only in answer to a click: browsers punish who asks unasked. */
export async function subscribe(): Promise<DeviceView> {
  const answer = await Notification.requestPermission();
  if (answer !== "granted") throw new Error("the browser does not allow notifications for this page");
  const { key } = await ask<PushKeyView>("/api/push/key");
  const { pushManager } = await navigator.serviceWorker.ready;
  const options = { userVisibleOnly: true, applicationServerKey: bytesOf(key) };
  const subscription = await pushManager.subscribe(options).catch(async () => {
    // One with another daemon's key is in the way.
    await (await pushManager.getSubscription())?.unsubscribe();
    return pushManager.subscribe(options);
  });
  const { endpoint, keys } = subscription.toJSON();
  const label = labelOf(navigator.userAgent);
  return tell<DeviceView>("/api/push/subscriptions", { endpoint, keys, label });
}

/** The daemon drops a browser's subscription when it is signed out: one that is still here is told anew. */
export async function renew(): Promise<void> {
  if (support() !== "ready") return;
  const registration = await navigator.serviceWorker.getRegistration();
  const subscription = await registration?.pushManager.getSubscription();
  if (!subscription) return;
  const { endpoint, keys } = subscription.toJSON();
  await tell("/api/push/subscriptions", { endpoint, keys, label: labelOf(navigator.userAgent) });
}

export async function unsubscribe(id: string): Promise<void> {
  if (id === (await ownId())) {
    const registration = await navigator.serviceWorker.getRegistration();
    await (await registration?.pushManager.getSubscription())?.unsubscribe();
  }
  await remove(`/api/push/subscriptions/${encodeURIComponent(id)}`);
}

export const test = (id: string) => tell("/api/push/test", { id });

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/Edg\//, "Edge"],
  [/Firefox\//, "Firefox"],
  [/Chrom(e|ium)\//, "Chrome"],
  [/Safari\//, "Safari"],
];

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/Android/, "Android"],
  [/iPhone/, "iPhone"],
  [/iPad/, "iPad"],
  [/Mac OS X/, "a Mac"],
  [/Windows/, "Windows"],
  [/Linux/, "Linux"],
];

/** "Firefox on Linux". */
export function labelOf(userAgent: string): string {
  const named = (known: typeof BROWSERS, other: string) =>
    known.find(([sign]) => sign.test(userAgent))?.[1] ?? other;
  return `${named(BROWSERS, "A browser")} on ${named(SYSTEMS, "a device")}`;
}
