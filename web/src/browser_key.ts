/**
 * This browser's sign-in: its key, and every request that has to show it. The page and its service
 * worker share it, so it imports nothing; the build puts it into the worker as well.
 *
 * The key is in IndexedDB, which is bound to our port as cookies are not, in a form that no script
 * can read. It is never sent: the daemon proves first that it has the key, too, and the page then
 * proves the same, for this host and this run of the daemon. Another program that takes the port
 * while the daemon is down gets nothing it could use later.
 */

/** What a browser is given when it signs in. */
interface Given {
  browser: string;
  key: string;
}

interface SignIn {
  browser: string;
  key: CryptoKey;
}

/** Another program answers in the daemon's place. */
export class StrangerError extends Error {
  constructor() {
    super("another program answers at this address");
  }
}

const HEADER = "x-quarterdeck-browser";

/** The daemon answers within milliseconds; a phone on a bad line takes a while. */
const HELLO_MS_MAX = 10_000;

/** Where the browser keeps nothing, the sign-in lasts as long as the tab. */
let held: SignIn | undefined;

/** What is shown with each request until the daemon starts again. */
let proven: Promise<string | undefined> | undefined;

/** A page that is neither of this machine nor https has no cryptography. */
export const canSignIn = (): boolean => globalThis.crypto?.subtle !== undefined;

export async function keep({ browser, key }: Given): Promise<void> {
  held = { browser, key: await imported(key) };
  proven = undefined;
  await inStore("readwrite", (store) => store.put(held, "own")).catch((error: unknown) =>
    console.warn("the sign-in lasts as long as this tab:", error),
  );
}

export async function forget(): Promise<void> {
  held = undefined;
  proven = undefined;
  await inStore("readwrite", (store) => store.delete("own")).catch(() => undefined);
}

/** The line broke: whoever answers next has to prove first that it is the daemon. */
export function doubt(): void {
  proven = undefined;
}

/** As `fetch`, signed by this browser. Says nothing to whoever is not the daemon. */
export async function signedFetch(path: string, init: RequestInit = {}): Promise<Response> {
  const shown = await proof();
  const response = await fetch(path, withProof(init, shown)).catch((error: unknown) => {
    doubt();
    throw error;
  });
  if (response.status !== 401) return response;
  // The daemon started again, or another tab signed in: a refused request did nothing.
  doubt();
  const again = await proof();
  return again === undefined || again === shown ? response : fetch(path, withProof(init, again));
}

/** That a page of `host` has the key. */
export const browserProof = (key: CryptoKey, host: string, challenge: string): Promise<string> =>
  signed(key, `quarterdeck browser\n${host}\n${challenge}`);

/** That the daemon, reached as `host`, has the key. */
export const daemonProof = (
  key: CryptoKey,
  host: string,
  challenge: string,
  nonce: string,
): Promise<string> => signed(key, `quarterdeck daemon\n${host}\n${challenge}\n${nonce}`);

/** For signing only: what it is made of cannot be had back. */
export const imported = (key: string): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", new TextEncoder().encode(key), { name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]);

function proof(): Promise<string | undefined> {
  const asked = (proven ??= prove());
  const isCurrent = () => proven === asked;
  asked.then(
    // Another tab may sign in, and the daemon may come back.
    (shown) => void (shown === undefined && isCurrent() && (proven = undefined)),
    () => void (isCurrent() && (proven = undefined)),
  );
  return asked;
}

/** What to show; nothing for a browser that is not signed in. */
async function prove(): Promise<string | undefined> {
  const kept = inStore<SignIn | undefined>("readonly", (store) => store.get("own"));
  const own = (await kept.catch(() => undefined)) ?? held;
  if (!own) return undefined;
  const { host } = location;
  const nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
  const query = new URLSearchParams({ browser: own.browser, host, nonce });
  const response = await fetch(`/api/hello?${query}`, {
    cache: "no-store",
    signal: AbortSignal.timeout(HELLO_MS_MAX),
  });
  // Whether that is true shows when the request is refused, too.
  if (response.status === 401) return undefined;
  // The daemon has too much to do, or somebody between it and us cannot reach it.
  if (response.status === 429 || response.status >= 500) throw new Error("the daemon does not answer");
  const said = (await response.json().catch(() => ({}))) as { challenge?: unknown; proof?: unknown };
  const challenge = String(said.challenge);
  if (said.proof !== (await daemonProof(own.key, host, challenge, nonce))) throw new StrangerError();
  return `${own.browser}.${await browserProof(own.key, host, challenge)}`;
}

function withProof(init: RequestInit, shown: string | undefined): RequestInit {
  if (shown === undefined) return init;
  const headers = new Headers(init.headers);
  headers.set(HEADER, shown);
  return { ...init, headers };
}

async function signed(key: CryptoKey, text: string): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text))));
}

const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

async function inStore<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest): Promise<T> {
  const database = await new Promise<IDBDatabase>((resolve, reject) => {
    const opened = indexedDB.open("quarterdeck", 1);
    opened.onupgradeneeded = () => void opened.result.createObjectStore("sign-in");
    opened.onsuccess = () => resolve(opened.result);
    opened.onerror = () => reject(opened.error);
  });
  try {
    return await new Promise<T>((resolve, reject) => {
      const transaction = database.transaction("sign-in", mode);
      const asked = act(transaction.objectStore("sign-in"));
      transaction.oncomplete = () => resolve(asked.result as T);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}
