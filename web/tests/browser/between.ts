/**
 * A way between the browser and the daemon: adds the token to what the page asks, and can answer in
 * the daemon's place where no agent brings a session into the state that a test is about.
 */

import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import type { SessionList } from "../../src/wire";

export type Answer = (url: URL, response: ServerResponse, asked: IncomingMessage) => void;

export class Between {
  /** Asked of the browser, by path: the newest last. */
  readonly asked: string[] = [];
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
