/**
 * A push service on the loopback, and the browser behind it: takes what the daemon posts, verifies
 * who sent it (RFC 8292) and decrypts it (RFC 8291) with Node's own cryptography.
 */

import {
  createDecipheriv,
  createECDH,
  createPublicKey,
  type ECDH,
  hkdfSync,
  randomBytes,
  verify,
} from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** What the service worker is given. */
export interface Notice {
  id: string;
  tag: string;
  closed: boolean;
  kind: string;
  title: string;
  text: string;
  actions: string[];
  requestKey?: string;
  path: string;
}

export interface Push {
  notice: Notice;
  /** As it was before it was encrypted. */
  payload: string;
  headers: IncomingHttpHeaders;
  claims: { aud: string; exp: number; sub: string };
  /** The key that signed it. */
  key: string;
}

export class PushService {
  private readonly ecdh: ECDH = createECDH("prime256v1");
  private readonly secret = randomBytes(16);
  private readonly arrived: Push[] = [];
  private wake: (() => void) | undefined;

  private constructor(private readonly server: Server) {
    this.ecdh.generateKeys();
  }

  static async open(): Promise<PushService> {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const service = new PushService(server);
    server.on("request", (asked, response) => {
      const parts: Buffer[] = [];
      asked.on("data", (part: Buffer) => parts.push(part));
      asked.on("end", () => {
        service.arrived.push(service.read(Buffer.concat(parts), asked.headers));
        service.wake?.();
        response.writeHead(201).end();
      });
    });
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** As a browser gives it to the page. */
  get subscription() {
    const keys = {
      p256dh: this.ecdh.getPublicKey().toString("base64url"),
      auth: this.secret.toString("base64url"),
    };
    return { endpoint: `${this.url}/push/one`, keys };
  }

  /** The next push, in their order. */
  async next(): Promise<Push> {
    for (;;) {
      const push = this.arrived.shift();
      if (push) return push;
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }

  private read(body: Buffer, headers: IncomingHttpHeaders): Push {
    const payload = this.decrypted(body).toString("utf8");
    return {
      notice: JSON.parse(payload) as Notice,
      payload,
      headers,
      ...signed(headers.authorization ?? ""),
    };
  }

  private decrypted(body: Buffer): Buffer {
    const salt = body.subarray(0, 16);
    const pointEnd = 21 + body.readUInt8(20);
    const theirs = body.subarray(21, pointEnd);
    const record = body.subarray(pointEnd);
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), this.ecdh.getPublicKey(), theirs]);
    const shared = this.ecdh.computeSecret(theirs);
    const from = Buffer.from(hkdfSync("sha256", shared, this.secret, info, 32));
    const derived = (name: string, length: number) =>
      Buffer.from(hkdfSync("sha256", from, salt, `Content-Encoding: ${name}\0`, length));
    const open = createDecipheriv("aes-128-gcm", derived("aes128gcm", 16), derived("nonce", 12));
    open.setAuthTag(record.subarray(-16));
    const padded = Buffer.concat([open.update(record.subarray(0, -16)), open.final()]);
    // Behind the text a 2 says that this was the last record; zeros may follow.
    return padded.subarray(0, padded.lastIndexOf(2));
  }
}

/** What a VAPID token claims; an error if its key has not signed it. */
function signed(authorization: string): Pick<Push, "claims" | "key"> {
  const [, head, claims, signature, key] =
    /^vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), k=([\w-]+)$/.exec(authorization) ?? [];
  if (!head || !claims || !signature || !key) throw new Error(`no VAPID: ${authorization}`);
  const point = Buffer.from(key, "base64url");
  const jwk = {
    kty: "EC",
    crv: "P-256",
    x: point.subarray(1, 33).toString("base64url"),
    y: point.subarray(33).toString("base64url"),
  };
  const verifier = { key: createPublicKey({ key: jwk, format: "jwk" }), dsaEncoding: "ieee-p1363" as const };
  const good = verify(
    "sha256",
    Buffer.from(`${head}.${claims}`),
    verifier,
    Buffer.from(signature, "base64url"),
  );
  if (!good) throw new Error("the token is not signed by its key");
  return { claims: JSON.parse(Buffer.from(claims, "base64url").toString()) as Push["claims"], key };
}
