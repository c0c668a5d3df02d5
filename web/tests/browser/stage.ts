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

/** What a card asks for may be allowed: the whole of it was on the screen, and for a moment. */
export const isRead = (place: Locator): Promise<void> =>
  place.locator('.answerable[data-reading="ready"]').first().waitFor();

/** Scrolls through what a card asks for, as a reader does. */
export async function readThrough(place: Locator): Promise<void> {
  await place
    .locator(".answerable")
    .first()
    .evaluate(async (box) => {
      const isThere = () => box.getAttribute("data-reading") !== "unread";
      const scrolls = (each: Element) => each.scrollHeight > each.clientHeight + 1;
      const inner = [...box.querySelectorAll(".request .code, .plan")].filter(scrolls);
      const outer: Element[] = [];
      for (let each = box.parentElement; each; each = each.parentElement) if (scrolls(each)) outer.push(each);
      for (const each of [...inner, ...outer]) {
        each.scrollIntoView({ block: "nearest" });
        each.scrollTop = 0;
        for (let steps = 0; steps < 200 && !isThere(); steps += 1) {
          const before = each.scrollTop;
          each.scrollTop += Math.max(20, each.clientHeight / 3);
          await new Promise((frame) => requestAnimationFrame(() => requestAnimationFrame(frame)));
          if (each.scrollTop === before) break;
        }
      }
    });
  await isRead(place);
}
