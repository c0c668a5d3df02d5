/** Notifications: from an agent's hook over the daemon's push to the real service worker and back. */

import type { Browser, BrowserContext, Page, Worker } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { accessible, launch, open, PHONE, picture } from "./browser";
import { Daemon } from "./daemon";
import { PushService } from "./push_service";

let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});

afterAll(() => browser?.close());

function kept<T extends AsyncDisposable>(one: T): T {
  onTestFinished(() => one[Symbol.asyncDispose]());
  return one;
}

/** A daemon that tells at once, and takes a push service on the loopback. */
const CONFIG = {
  "../config/quarterdeck/config.toml":
    '[notify]\nkinds = ["permission"]\ndwell_s = 0\ncooldown_s = 0\nallow_private = ["127.0.0.1"]\n',
};

/** A browser that shares its machine loses a push now and then. What passes only then is said. */
const MAY_LOSE = { retry: 2 };

interface Told {
  daemon: Daemon;
  service: PushService;
  page: Page;
  context: BrowserContext;
  worker: Worker;
  /** Brings a push to the service worker, as the browser does. */
  deliver: (payload: string) => Promise<void>;
}

/** A browser that is signed in and looks at nothing of ours, and a device that is told. */
async function told(): Promise<Told> {
  const daemon = kept(await Daemon.serve(CONFIG));
  const service = kept(await PushService.open());
  const { page } = kept(await open(browser, daemon.link()));
  const context = page.context();
  await context.grantPermissions(["notifications"], { origin: daemon.url });
  await page.locator(".blank").waitFor();
  await page.evaluate(async () => void (await navigator.serviceWorker.ready));
  const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));
  const session = await context.newCDPSession(page);
  const registered = new Promise<string>((resolve) =>
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const [first] = registrations;
      if (first) resolve(first.registrationId);
    }),
  );
  await session.send("ServiceWorker.enable");
  const registrationId = await registered;
  await worker.evaluate(() => {
    const scope = globalThis as unknown as { pushes: number; addEventListener: typeof addEventListener };
    scope.pushes = 0;
    scope.addEventListener("push", () => void scope.pushes++);
  });
  const pushes = () => worker.evaluate(() => (globalThis as unknown as { pushes: number }).pushes);
  // A browser now and then loses one that comes while it stops or starts the worker; a push service
  // would send it again.
  const deliver = async (payload: string) => {
    const before = await pushes();
    const arrives = async () => {
      await session.send("ServiceWorker.deliverPushMessage", {
        origin: daemon.url,
        registrationId,
        data: payload,
      });
      await expect.poll(pushes, { timeout: 3_000 }).toBeGreaterThan(before);
    };
    await arrives().catch(arrives).catch(arrives);
  };
  // While the page is looked at nobody is told.
  await page.goto(`${daemon.url}/icon.svg`);
  const device = await daemon.call("POST", "/api/push/subscriptions", {
    ...service.subscription,
    label: "Test phone",
  });
  expect(device).toMatchObject({ label: "Test phone", service: "127.0.0.1" });
  return { daemon, service, page, context, worker, deliver };
}

interface Shown {
  title: string;
  body: string;
  tag: string;
  actions: string[];
}

const shown = (worker: Worker): Promise<Shown[]> =>
  worker.evaluate(async () => {
    const { registration } = globalThis as unknown as { registration: ServiceWorkerRegistration };
    const all = await registration.getNotifications();
    return all.map((each) => ({
      title: each.title,
      body: each.body,
      tag: each.tag,
      actions: (each as unknown as { actions: { action: string }[] }).actions.map(({ action }) => action),
    }));
  });

/** Until the worker shows these titles. */
async function shows(worker: Worker, titles: readonly string[]): Promise<Shown[]> {
  await expect
    .poll(async () => (await shown(worker)).map(({ title }) => title).sort(), { timeout: 30_000 })
    .toEqual([...titles].sort());
  return shown(worker);
}

/** A tap. An event that a script makes may not be waited on, so the test waits in its place. */
const tap = (worker: Worker, tag: string, action: string): Promise<void> =>
  worker.evaluate(
    async ([wanted, pressed]) => {
      const scope = globalThis as unknown as ServiceWorkerGlobal;
      const [notification] = await scope.registration.getNotifications({ tag: wanted! });
      const event = new scope.NotificationEvent("notificationclick", { notification, action: pressed });
      const waits: Promise<unknown>[] = [];
      Object.defineProperty(event, "waitUntil", { value: (one: Promise<unknown>) => waits.push(one) });
      scope.dispatchEvent(event);
      await Promise.all(waits);
    },
    [tag, action],
  );

interface ServiceWorkerGlobal {
  registration: ServiceWorkerRegistration;
  NotificationEvent: new (name: string, init: object) => Event;
  dispatchEvent(event: Event): boolean;
}

test("a permission is allowed from the notification, once, and it says so", MAY_LOSE, async () => {
  const { daemon, service, worker, deliver } = await told();
  const { key } = (await daemon.call("GET", "/api/push/key")) as { key: string };
  const agent = await daemon.asks("one", "cargo <b>test</b>");
  const push = await service.next();
  expect(push.key).toBe(key);
  expect(push.claims.aud).toBe(service.url);
  expect(push.headers).toMatchObject({ urgency: "high", "content-encoding": "aes128gcm" });
  expect(push.notice).toMatchObject({ kind: "permission", closed: false, actions: ["allow", "deny"] });
  expect(push.notice.tag).toBe(push.notice.requestKey);

  await deliver(push.payload);
  const [notification] = await shows(worker, ["atlas: allow Bash?"]);
  // What an agent wrote is text.
  expect(notification).toMatchObject({ body: "cargo <b>test</b>", actions: ["allow", "deny"] });
  // The same push again shows nothing more.
  await deliver(push.payload);
  await shows(worker, ["atlas: allow Bash?"]);

  await Promise.all([tap(worker, push.notice.tag, "allow"), tap(worker, push.notice.tag, "allow")]);
  await shows(worker, ["Allowed"]);
  const said = JSON.parse(await agent.said) as { hookSpecificOutput: { decision: { behavior: string } } };
  expect(said.hookSpecificOutput.decision.behavior).toBe("allow");
  const given = daemon.decisions();
  expect(given.filter((each) => each === "given")).toHaveLength(1);

  // The agent goes on, and the notification is cleared.
  await daemon.goesOn("one", "cargo <b>test</b>");
  const settled = await service.next();
  expect(settled.notice).toMatchObject({ closed: true, tag: push.notice.tag });
  expect(settled.headers["topic"]).toBe(push.headers["topic"]);
  // Every push shows something, or Safari takes the subscription away; this one goes by itself.
  await worker.evaluate(() => {
    const { registration } = globalThis as unknown as { registration: ServiceWorkerRegistration };
    const show = registration.showNotification.bind(registration);
    const silent: string[] = [];
    Object.assign(globalThis, { silent });
    registration.showNotification = (title, options) => {
      if (options?.silent) silent.push(title);
      return show(title, options);
    };
  });
  await deliver(settled.payload);
  await expect
    .poll(() => worker.evaluate(() => (globalThis as unknown as { silent: string[] }).silent))
    .toEqual(["Settled"]);
  await shows(worker, []);
});

test("a denial lands, and a notification that comes too late says who was first", MAY_LOSE, async () => {
  const { daemon, service, worker, deliver } = await told();
  const denied = await daemon.asks("one", "rm -rf build");
  const first = await service.next();
  await deliver(first.payload);
  await shows(worker, ["atlas: allow Bash?"]);
  await tap(worker, first.notice.tag, "deny");
  await shows(worker, ["Denied"]);
  expect(await denied.said).toContain('"deny"');

  const late = await daemon.asks("two", "make");
  // Delivered answers are as good as taken: the first one is settled.
  let second = await service.next();
  while (second.notice.closed) second = await service.next();
  await deliver(second.payload);
  await shows(worker, ["Denied", "atlas: allow Bash?"]);
  await daemon.call("POST", `/api/requests/${second.notice.requestKey}/decision`, {
    decision: { type: "allow" },
  });
  expect(await late.said).toContain('"allow"');
  await tap(worker, second.notice.tag, "deny");
  await shows(worker, ["Denied", "Already answered by operator on token"]);
});

test("what is not known to have arrived is not told as failed, and what failed is", MAY_LOSE, async () => {
  const { daemon, service, worker, deliver } = await told();
  await daemon.asks("one", "make");
  const { notice, payload } = await service.next();
  const unclear = "It may not have arrived — open";
  const failed = "Could not be delivered — open";
  const answers: readonly (readonly [status: number, body: string, says: string])[] = [
    [0, "", unclear],
    [503, '{"code":"delivery_unclear"}', unclear],
    [502, "<h1>Bad gateway</h1>", unclear],
    [503, '{"code":"delivery_failed"}', failed],
    [409, '{"code":"not_possible"}', failed],
    [401, '{"code":"no_token"}', "Signed out — open to sign in"],
  ];
  for (const [status, body, says] of answers) {
    await deliver(payload);
    await shows(worker, ["atlas: allow Bash?"]);
    await worker.evaluate(
      ([code, text]) => {
        const scope = globalThis as unknown as { real?: typeof fetch };
        const real = (scope.real ??= fetch);
        globalThis.fetch = async (asked, init) => {
          // Who the daemon is, is another question.
          if (String(asked).startsWith("/api/hello")) return real.call(globalThis, asked, init);
          if (code === 0) throw new TypeError("the line broke");
          return new Response(text, { status: code });
        };
      },
      [status, body] as const,
    );
    await tap(worker, notice.tag, "allow");
    await shows(worker, [says]);
  }
});

test("a daemon that is away is told as such, and an unreadable push still shows", MAY_LOSE, async () => {
  const { daemon, service, worker, deliver } = await told();
  await daemon.asks("one", "make");
  const { notice, payload } = await service.next();
  await deliver(payload);
  await shows(worker, ["atlas: allow Bash?"]);
  await daemon.kill();
  await tap(worker, notice.tag, "allow");
  await shows(worker, ["It may not have arrived — open"]);
  await deliver("no JSON");
  await shows(worker, ["It may not have arrived — open", "Something needs you"]);
});

test("a click opens the session", MAY_LOSE, async () => {
  const { daemon, service, page, worker, deliver } = await told();
  await daemon.asks("one", "make");
  const { notice, payload } = await service.next();
  await page.goto(daemon.url);
  await page.locator("[data-session]").first().waitFor();
  await deliver(payload);
  await shows(worker, ["atlas: allow Bash?"]);
  await tap(worker, notice.tag, "");
  await page.waitForURL(`${daemon.url}${notice.path}`);
  await shows(worker, []);
});

test("nobody is told while the page is looked at, and the tab that ends looks no more", async () => {
  const { daemon, service, page } = await told();
  const presence = page.waitForResponse((answer) => answer.url().endsWith("/api/presence"));
  await page.goto(daemon.url);
  expect((await presence).status()).toBe(200);
  await daemon.asks("one", "make one");
  await page.getByText("make one").first().waitFor();
  await daemon.goesOn("one", "make one");
  await page.goto(`${daemon.url}/icon.svg`);
  await daemon.asks("two", "make two");
  expect((await service.next()).notice.text).toBe("make two");
});

/** The network of a push service is the one thing that is not here. */
const SUBSCRIBES = (subscription: { endpoint: string }) => {
  let subscribed: unknown = null;
  const made = { endpoint: subscription.endpoint, toJSON: () => subscription, unsubscribe: async () => true };
  const asked: string[] = [];
  Object.assign(globalThis, { asked });
  const ask = Notification.requestPermission.bind(Notification);
  Notification.requestPermission = () => {
    asked.push("permission");
    return ask();
  };
  PushManager.prototype.subscribe = async () => (subscribed = made) as unknown as PushSubscription;
  PushManager.prototype.getSubscription = async () => subscribed as PushSubscription | null;
};

for (const [name, viewport] of [
  ["desk", { width: 1440, height: 900 }],
  ["phone", PHONE],
] as const) {
  test(`the bell subscribes this device, tries it and removes it, on a ${name}`, async () => {
    const daemon = kept(await Daemon.serve(CONFIG));
    const service = kept(await PushService.open());
    const { page, troubles } = kept(await open(browser, "about:blank", { viewport }));
    await page.context().grantPermissions(["notifications"], { origin: daemon.url });
    await page.addInitScript(SUBSCRIBES, service.subscription);
    await page.goto(daemon.link());
    await page.locator(".blank").waitFor();
    const bell = page.getByRole("button", { name: "Notifications" });
    await picture(page, `bell-header-${name}`);
    const box = await bell.boundingBox();
    expect(box && box.x + box.width <= viewport.width).toBe(true);
    await bell.click();
    const dialog = page.getByRole("dialog", { name: "Notifications" });
    const subscribe = dialog.getByRole("button", { name: "Tell this device" });
    await subscribe.waitFor();
    const asked = () => page.evaluate(() => (globalThis as unknown as { asked: string[] }).asked.length);
    expect(await asked()).toBe(0);
    await subscribe.click();
    await dialog.getByText("· this device").waitFor();
    expect(await asked()).toBe(1);
    expect(await subscribe.count()).toBe(0);
    await picture(page, `bell-${name}`);
    await accessible(page);
    await dialog.getByRole("button", { name: /^Send a test to / }).click();
    expect((await service.next()).notice).toMatchObject({ kind: "test", actions: [] });
    await dialog.getByRole("button", { name: /^Remove / }).click();
    await subscribe.waitFor();
    expect(await daemon.call("GET", "/api/push/subscriptions")).toEqual([]);
    expect(troubles).toEqual([]);
  });
}
