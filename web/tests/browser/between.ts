/**
 * A way between the browser and the daemon: adds the token to what the page asks, and can answer in
 * the daemon's place where no agent brings a session into the state that a test is about.
 */

import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

import type { SessionList } from "../../src/wire";

/** A page that `vite build` wrote, in place of the one within the daemon: no cargo while you draw. */
const PAGE = process.env["QD_PAGE"];

export type Answer = (url: URL, response: ServerResponse, asked: IncomingMessage) => void;

export class Between {
  /** Asked of the browser, by path: the newest last. */
  readonly asked: string[] = [];
  /** What the page told: the newest last. */
  readonly told: { path: string; body: unknown }[] = [];
  /** Where the page says that its stream broke off, each time it asks for it. */
  readonly resumed: (string | undefined)[] = [];
  private readonly answers: { path: RegExp; answer: Answer }[] = [];
  private readonly streams = new Set<ServerResponse>();
  private token: string | undefined;
  private constructor(
    private readonly server: Server,
    private readonly daemon: string,
  ) {}

  static async open(daemon: string, token: string | undefined): Promise<Between> {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const between = new Between(server, daemon);
    between.token = token;
    server.on("request", (asked: IncomingMessage, response: ServerResponse) =>
      between.handle(asked, response),
    );
    return between;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  answer(path: RegExp, answer: Answer): void {
    this.answers.unshift({ path, answer });
  }

  json(path: RegExp, value: (url: URL) => unknown, status = 200): void {
    this.answer(path, (url, response) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value(url)));
    });
  }

  /** Answers what the page tells, and writes it down. */
  take(path: RegExp, answer: (body: unknown) => { status?: number; value: unknown } | "cut"): void {
    this.answer(path, (url, response, asked) => {
      let text = "";
      asked.setEncoding("utf8");
      asked.on("data", (part: string) => (text += part));
      asked.on("end", () => {
        const body: unknown = JSON.parse(text);
        this.told.push({ path: url.pathname, body });
        const said = answer(body);
        if (said === "cut") return void asked.socket.destroy();
        response.writeHead(said.status ?? 200, { "content-type": "application/json" });
        response.end(JSON.stringify(said.value));
      });
    });
  }

  /** A stream that begins with this board and says no more until told. */
  board(list: SessionList): void {
    this.answer(/^\/api\/live\/stream$/, (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event("snapshot", 1, list));
      this.streams.add(response);
    });
  }

  tell(name: string, id: number, data: unknown): void {
    for (const stream of this.streams) stream.write(event(name, id, data));
  }

  /** Every line breaks. */
  cut(): void {
    this.server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }

  private handle(asked: IncomingMessage, response: ServerResponse): void {
    const url = new URL(asked.url ?? "/", this.url);
    this.asked.push(`${asked.method} ${url.pathname}${url.search}`);
    if (url.pathname === "/api/live/stream") {
      this.resumed.push(asked.headers["last-event-id"] as string | undefined);
    }
    const found = this.answers.find(({ path }) => path.test(url.pathname));
    if (found) return found.answer(url, response, asked);
    const { origin: _, ...headers } = asked.headers;
    const token =
      url.pathname.startsWith("/api/") && this.token ? { authorization: `Bearer ${this.token}` } : {};
    const passed = request(new URL(asked.url ?? "/", this.daemon), {
      method: asked.method,
      headers: { ...headers, ...token, host: new URL(this.daemon).host },
    });
    passed.on("response", (answer) => {
      const drawn = PAGE && !url.pathname.startsWith("/api/") && drawnIn(PAGE, url.pathname);
      if (drawn) {
        const { "content-encoding": _, "content-length": __, etag: ___, ...kept } = answer.headers;
        answer.resume();
        return void response.writeHead(200, { ...kept, "content-type": drawn.type }).end(drawn.bytes);
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      // The head alone is news to a page that takes its stream up again.
      response.flushHeaders();
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    });
    // The daemon is away: so are we.
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    asked.pipe(passed);
  }
}

const event = (name: string, id: number, data: unknown) =>
  `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;

/** A file of the built page; every address that is none is the page itself. */
function drawnIn(folder: string, path: string): { bytes: Buffer; type: string } {
  const named = path !== "/" && existsSync(join(folder, path)) ? path : "/index.html";
  return { bytes: readFileSync(join(folder, named)), type: TYPES.get(extname(named)) ?? "image/png" };
}

const TYPES: ReadonlyMap<string, string> = new Map([
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
  [".svg", "image/svg+xml"],
  [".webmanifest", "application/manifest+json"],
]);
