// The shell of the page, for when the daemon is away, and notifications, for when nobody looks.
// Knows the page's own files and what a push brought; what the API says is never kept.

/* The build puts the page's files and a name made of them here. */
const FILES = __FILES__;
const CACHE = __CACHE__;

/* And browser_key.ts here: `signedFetch`, and the sign-in that the page keeps. */
__BROWSER_KEY__;

self.addEventListener("install", (event) => {
  const fill = async () => {
    const cache = await caches.open(CACHE);
    await cache.addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
    await self.skipWaiting();
  };
  event.waitUntil(fill());
});

self.addEventListener("activate", (event) => {
  const clean = async () => {
    const names = await caches.keys();
    await Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(clean());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const address = new URL(request.url);
  if (request.method !== "GET" || address.origin !== self.location.origin) return;
  // A page is asked for first, so that a new version shows at once; its hashed files never change.
  if (request.mode === "navigate") {
    event.respondWith(fetch(request).catch(() => kept("/")));
  } else if (FILES.includes(address.pathname)) {
    event.respondWith(kept(address.pathname).then((found) => (found.ok ? found : fetch(request))));
  }
});

async function kept(path) {
  const cache = await caches.open(CACHE);
  return (await cache.match(path)) ?? Response.error();
}

self.addEventListener("push", (event) => event.waitUntil(pushed(event.data)));

self.addEventListener("notificationclick", (event) => {
  const { notification, action } = event;
  const notice = notification.data ?? {};
  const answers = action === "allow" || action === "deny";
  if (answers && notice.requestKey) {
    event.waitUntil(answer(notice, action));
    return;
  }
  notification.close();
  event.waitUntil(open(notice.path));
});

// A browser may give a subscription up and make another one.
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(subscribedAnew(event)));

/** What a push is about. One that cannot be read still says that something is there. */
async function pushed(data) {
  let notice;
  try {
    notice = data?.json();
  } catch {
    notice = undefined;
  }
  if (typeof notice?.tag !== "string") return show({ tag: "unreadable", title: "Something needs you" });
  return notice.closed ? settle(notice) : show(notice);
}

/**
 * Takes a notification back. Browsers want every push to show something, and Safari takes the
 * subscription away after a few that do not: what is settled says so silently, and goes by itself.
 */
async function settle(notice) {
  await show(notice, { silent: true });
  // Not waited for: when the push is done, a browser looks whether something is shown.
  setTimeout(() => void clear(notice), SETTLED_MS);
}

/* Long enough for a browser to see that something is shown, and too short for anybody to come and look. */
const SETTLED_MS = 2_000;

/** Only this notice: another of its tag may have taken its place. */
async function clear({ tag, id }) {
  for (const shown of await self.registration.getNotifications({ tag })) {
    if (shown.data?.id === id) shown.close();
  }
}

const TITLES = { allow: "Allow", deny: "Deny", open: "Open" };

/* Longer ones are cut by the daemon; a phone cuts them again. */
const TITLE_CHARS_MAX = 100;
const BODY_CHARS_MAX = 300;

/** Titles and bodies are plain text to every browser. */
function show(notice, options = {}) {
  const actions = offered(notice);
  return self.registration.showNotification(text(notice.title, TITLE_CHARS_MAX), {
    body: text(notice.text, BODY_CHARS_MAX),
    tag: notice.tag,
    renotify: false,
    icon: "/icon-192.png",
    badge: "/icon-192.png",
    data: notice,
    actions: actions
      .filter((action) => action in TITLES)
      .map((action) => ({ action, title: TITLES[action] })),
    ...options,
  });
}

/** What the daemon offers; and nobody allows what this browser cuts, whoever sent it. */
function offered({ actions = [], title, text: body }) {
  const isCut = String(title ?? "").length > TITLE_CHARS_MAX || String(body ?? "").length > BODY_CHARS_MAX;
  const kept = isCut ? actions.filter((action) => action !== "allow") : actions;
  return kept.length > 0 ? kept : ["open"];
}

const text = (value, max) => String(value ?? "").slice(0, max);

/** Sends the answer, and says what became of it in the notification's place. Two taps are one answer. */
async function answer(notice, action) {
  const said = await decided(notice, action);
  const result = { tag: notice.tag, title: said, text: notice.title, path: notice.path };
  await show(result, { silent: true });
}

async function decided(notice, action) {
  let response;
  // No stream tells a worker when the daemon went.
  doubt();
  try {
    response = await signedFetch(`/api/requests/${encodeURIComponent(notice.requestKey)}/decision`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-quarterdeck": "1" },
      body: JSON.stringify({
        decision: { type: action },
        revision: notice.revision,
        key: `${notice.id}-${action}`,
      }),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
  } catch (error) {
    if (error instanceof StrangerError) return "Not sent: the daemon is not running \u2014 open";
    // The line broke, or nobody answered in time: it may have been taken before.
    return UNCLEAR;
  }
  if (response.ok) return action === "allow" ? "Allowed" : "Denied";
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401) return "Signed out \u2014 open to sign in";
  if (response.status === 404) return "Already answered";
  if (problem.code === "replaced") return "It asks for something else now \u2014 open";
  if (response.status === 409 && problem.code !== "not_possible") return alreadyAnswered(problem.first);
  // A failure without a word of the daemon's is one of somebody between.
  if (problem.code === "delivery_unclear" || (response.status >= 500 && !problem.code)) return UNCLEAR;
  return "Could not be delivered \u2014 open";
}

const UNCLEAR = "It may not have arrived \u2014 open";

/* What has to be carried to an agent takes a while. */
const ANSWER_MS_MAX = 25_000;

function alreadyAnswered(first) {
  if (!first) return "Already answered in the terminal";
  if (first.rule) return `Already answered by the rule ${text(first.rule, 60)}`;
  return `Already answered by ${text(first.by?.who, 40)} on ${text(first.by?.device, 60)}`;
}

/** Brings the page to the front, at what the notification was about. */
async function open(path) {
  const place = typeof path === "string" && /^\/(?!\/)/.test(path) ? path : "/";
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const [first] = windows;
  if (!first) return void (await self.clients.openWindow(place));
  first.postMessage({ type: "open", path: place });
  // A browser that does not count this as a click of the operator leaves the page where it is.
  await first.focus().catch(() => undefined);
}

async function subscribedAnew({ oldSubscription, newSubscription }) {
  const options = oldSubscription?.options;
  const fresh = newSubscription ?? (options && (await self.registration.pushManager.subscribe(options)));
  if (!fresh) return;
  const { endpoint, keys } = fresh.toJSON();
  await signedFetch("/api/push/subscriptions", {
    method: "POST",
    headers: { "content-type": "application/json", "x-quarterdeck": "1" },
    body: JSON.stringify({ endpoint, keys, label: "This browser, subscribed anew" }),
  });
}
