/**
 * Programs that listen on this machine beside the daemon: on another port, where a browser sends
 * them whatever is not bound to a port, and on the daemon's own port while it is down.
 */

import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { pathToFileURL } from "node:url";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { launch, open, picture } from "./browser";
import { Daemon } from "./daemon";

let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});

afterAll(() => browser?.close());

function kept<T extends AsyncDisposable>(one: T): T {
  onTestFinished(() => one[Symbol.asyncDispose]());
  return one;
}

/** What a browser sent. */
interface Taken {
  url: string;
  headers: Record<string, string>;
}

/** A server of an agent's: takes down all that it is sent, and answers with a page of its own. */
class Hostile {
  readonly taken: Taken[] = [];
  private constructor(
    readonly url: string,
    private readonly server: ReturnType<typeof createServer>,
  ) {}

  static async listen(port = 0, redirect?: string): Promise<Hostile> {
    const server = createServer();
    await new Promise<void>((listening, failed) => {
      server.once("error", failed);
      server.listen(port, "127.0.0.1", listening);
    });
    const bound = (server.address() as AddressInfo).port;
    const hostile = new Hostile(`http://127.0.0.1:${bound}`, server);
    server.on("request", (asked: IncomingMessage, response) => {
      const headers = Object.entries(asked.headers).map(([name, value]) => [name, String(value)] as const);
      hostile.taken.push({ url: asked.url ?? "/", headers: Object.fromEntries(headers) });
      if (redirect && asked.headers.host?.startsWith("localhost")) {
        return void response.writeHead(302, { location: redirect }).end();
      }
      response.writeHead(200, { "content-type": "text/html" }).end("<h1>My app</h1>");
    });
    return hostile;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}

/** Sends any headers, as a program may: `fetch` would keep some of them back. */
function replay(
  url: string,
  method: string,
  headers: Record<string, string>,
  body?: string,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (answer) => {
      answer.destroy();
      resolve(answer.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Every route of the API, by what the daemon itself says. */
async function routes(daemon: Daemon): Promise<{ method: string; path: string }[]> {
  const document = (await daemon.call("GET", "/api/openapi.json")) as {
    paths: Record<string, Record<string, { security: unknown[] }>>;
  };
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { security }]) => security.length > 0)
      .map(([method]) => ({ method: method.toUpperCase(), path })),
  );
}

/** Whether any of what was taken opens any route. */
async function opened(daemon: Daemon, taken: readonly Taken[]): Promise<string[]> {
  const { host } = new URL(daemon.url);
  const found: string[] = [];
  for (const { headers } of taken) {
    // As our own page would be seen to ask, with all that was taken beside it.
    const forged = {
      ...headers,
      host,
      origin: daemon.url,
      "sec-fetch-site": "same-origin",
      "content-type": "application/json",
      "x-quarterdeck": "1",
    };
    delete (forged as Record<string, string | undefined>)["content-length"];
    for (const { method, path } of await routes(daemon)) {
      const status = await replay(
        daemon.url + path.replaceAll(/\{\w+\}/g, "one"),
        method,
        forged,
        method === "GET" ? undefined : "{}",
      );
      if (status !== 401) found.push(`${method} ${path}: ${status}`);
    }
  }
  return found;
}

const card = (page: Page) => page.locator("article");

test("a page on another port gets nothing that opens anything", async () => {
  const daemon = kept(await Daemon.serve());
  await daemon.asks("one", "rm -rf build");
  const { page, troubles } = kept(await open(browser, daemon.link()));
  await card(page).waitFor();
  const cookies = await page.context().cookies();
  // One of an earlier version may still be there.
  await page
    .context()
    .addCookies([
      { name: "quarterdeck", value: "ab".repeat(32), url: daemon.url, sameSite: "Strict", httpOnly: true },
    ]);

  const hostile = kept(await Hostile.listen());
  const port = new URL(hostile.url).port;
  const leading = kept(await Hostile.listen(0, hostile.url));
  const visit = await page.context().newPage();
  await visit.goto(hostile.url);
  await visit.goto(`http://localhost:${new URL(leading.url).port}`);
  expect(new URL(visit.url()).port).toBe(port);
  // Its script asks the daemon for the board, and reads the storage of its own origin.
  const stolen = await visit.evaluate(async (url) => {
    const ask = (path: string, init: RequestInit) =>
      fetch(url + path, init)
        .then((answer) => answer.text())
        .catch(() => "refused");
    const all: RequestInit = { credentials: "include" };
    return {
      board: await ask("/api/live/sessions", all),
      blind: await ask("/api/sessions/one/yolo", {
        ...all,
        method: "POST",
        mode: "no-cors",
        body: '{"on":true}',
      }),
      stores: (await indexedDB.databases()).length + localStorage.length,
      cookie: document.cookie,
    };
  }, daemon.url);
  expect(stolen).toMatchObject({ board: "refused", stores: 0, cookie: "" });
  // A real visit came with the cookie of old: that a cookie is sent here is what the attack rests on.
  expect(hostile.taken.some(({ headers }) => headers["cookie"]?.includes("quarterdeck="))).toBe(true);
  expect(await opened(daemon, [...hostile.taken, ...leading.taken])).toEqual([]);
  expect(cookies).toEqual([]);

  // Nothing was decided or changed, and the operator's own page works.
  expect(daemon.decisions()).toEqual([]);
  await card(page).getByRole("button", { name: "Allow", exact: true }).click();
  await expect.poll(() => daemon.decisions()).toContain("given");
  expect(troubles).toEqual([]);
});

test("who takes the daemon's port gets nothing of use, and is told nothing", async () => {
  const daemon = kept(await Daemon.serve());
  const { page } = kept(await open(browser, daemon.link()));
  await page.locator('.link-sign[data-state="live"]').waitFor();
  await page.evaluate(async () => void (await navigator.serviceWorker.ready));
  const { port } = new URL(daemon.url);
  await daemon.kill();
  const hostile = await Hostile.listen(Number(port));
  try {
    await expect.poll(() => hostile.taken.length, { timeout: 60_000 }).toBeGreaterThan(1);
    await page.locator('.link-sign[data-state="away"]').waitFor();
    // All that it heard is who asks, and no proof.
    expect([...new Set(hostile.taken.map(({ url }) => new URL(url, hostile.url).pathname))]).toEqual([
      "/api/hello",
    ]);
    expect(
      hostile.taken
        .flatMap(({ headers }) => Object.keys(headers))
        .filter((name) => /quarterdeck|cookie|authorization/.test(name)),
    ).toEqual([]);
  } finally {
    await hostile[Symbol.asyncDispose]();
  }
  await daemon.again();
  await page.locator('.link-sign[data-state="live"]').waitFor({ timeout: 60_000 });
  expect(await opened(daemon, hostile.taken.slice(0, 2))).toEqual([]);
});

test("who is signed out hears nothing more, and the browser keeps nothing", async () => {
  const daemon = kept(await Daemon.serve());
  const stores = (page: Page) =>
    page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          const opening = indexedDB.open("quarterdeck", 1);
          opening.onsuccess = () => {
            const asked = opening.result.transaction("sign-in").objectStore("sign-in").count();
            asked.onsuccess = () => (opening.result.close(), resolve(asked.result));
          };
        }),
    );
  const { page } = kept(await open(browser, daemon.link()));
  await page.locator('.link-sign[data-state="live"]').waitFor();
  expect(await stores(page)).toBe(1);
  // It cannot be read, also not by a script of our own page.
  const exported = page.evaluate(
    () =>
      new Promise<string>((resolve) => {
        const opening = indexedDB.open("quarterdeck", 1);
        opening.onsuccess = () => {
          const asked = opening.result.transaction("sign-in").objectStore("sign-in").get("own");
          asked.onsuccess = () => {
            opening.result.close();
            const { key } = asked.result as { key: CryptoKey };
            crypto.subtle.exportKey("raw", key).then(
              () => resolve("read"),
              () => resolve("refused"),
            );
          };
        };
      }),
  );
  expect(await exported).toBe("refused");
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox").fill("Sign out");
  await page.keyboard.press("Enter");
  await page.getByText("qd open").waitFor();
  expect(await stores(page)).toBe(0);
  expect(JSON.parse(daemon.ask(["browsers", "--json"]))).toEqual([]);
  await picture(page, "sign-out");

  // Forgotten from the command line: the open page is out by itself.
  const other = kept(await open(browser, daemon.link()));
  await other.page.locator('.link-sign[data-state="live"]').waitFor();
  const [{ id }] = JSON.parse(daemon.ask(["browsers", "--json"])) as [{ id: string }];
  daemon.ask(["browsers", "forget", id]);
  await other.page.getByText("qd open").waitFor();
  await picture(other.page, "forgotten");
  // It signs in again in the same tab.
  await other.page.goto(daemon.link());
  await other.page.locator('.link-sign[data-state="live"]').waitFor();
});

test("a file leads the browser to its link, and the page may be loaded again", async () => {
  const daemon = kept(await Daemon.serve());
  const file = await daemon.signInFile();
  const { page, troubles } = kept(await open(browser, pathToFileURL(file).href));
  await page.locator('.link-sign[data-state="live"]').waitFor();
  expect(new URL(page.url()).pathname).toBe("/");
  await page.reload();
  await page.locator('.link-sign[data-state="live"]').waitFor();
  // It works once, and is gone.
  await expect(page.goto(pathToFileURL(file).href)).rejects.toThrow(/ERR_FILE_NOT_FOUND/);
  // No site gets more than the page: not into a frame, and not its data.
  const hostile = kept(await Hostile.listen());
  const visit = await page.context().newPage();
  await visit.goto(hostile.url);
  const framed = await visit.evaluate(async (url) => {
    const frame = document.createElement("iframe");
    frame.src = `${url}/`;
    document.body.append(frame);
    await new Promise((loaded) => (frame.onload = loaded));
    try {
      return frame.contentDocument === null ? "kept out" : "read";
    } catch {
      return "kept out";
    }
  }, daemon.url);
  expect(framed).toBe("kept out");
  expect(troubles).toEqual([]);
});

test("localhost leads to 127.0.0.1, where nobody else can listen", async () => {
  const daemon = kept(await Daemon.serve());
  const link = daemon.link().replace("127.0.0.1", "localhost");
  const { page } = kept(await open(browser, link));
  await page.locator('.link-sign[data-state="live"]').waitFor();
  expect(new URL(page.url()).origin).toBe(daemon.url);
});
