// The shell of the page, for when the daemon is away. Knows the page's own files and nothing else:
// what the API says is never kept.

/* The build puts the page's files and a name made of them here. */
const FILES = __FILES__;
const CACHE = __CACHE__;

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
