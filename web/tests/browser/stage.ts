/** A browser and a daemon for all tests of a file, and the page over a board that a test made. */

import type { Browser, BrowserContextOptions, Locator } from "playwright-core";
import { afterAll, beforeAll, onTestFinished } from "vitest";

import { Between } from "./between";
import { launch, open, PHONE, type Tab } from "./browser";
import { Daemon } from "./daemon";

/** A phone, as a thumb uses it. */
export const HAND = { viewport: PHONE, isMobile: true, hasTouch: true };

export interface Shown extends Tab {
  between: Between;
  at: (id: string) => Locator;
  /** The server's next word. */
  tell: (name: string, data: unknown) => void;
}

export interface Scene {
  /** What the server says, before the page asks. */
  set: (between: Between) => void;
  options?: BrowserContextOptions;
  path?: string;
  /** What stands on the page when it is there. */
  until: string;
}

export function stage(): (scene: Scene) => Promise<Shown> {
  let browser: Browser;
  let daemon: Daemon;
  beforeAll(async () => {
    browser = await launch();
    daemon = await Daemon.serve();
  });
  afterAll(async () => {
    await browser?.close();
    await daemon?.[Symbol.asyncDispose]();
  });
  return async ({ set, options = {}, path = "/", until }) => {
    const between = await Between.open(daemon.url, daemon.token("operate"));
    onTestFinished(() => between[Symbol.asyncDispose]());
    set(between);
    const tab = await open(browser, between.url + path, options);
    onTestFinished(() => tab[Symbol.asyncDispose]());
    await tab.page.waitForSelector(until);
    let id = 1;
    const tell = (name: string, data: unknown) => between.tell(name, (id += 1), data);
    return { ...tab, between, tell, at: (session) => tab.page.locator(`[data-session="${session}"]`) };
  };
}
