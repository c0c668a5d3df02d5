/** A daemon of its own for a test: `qd serve` or `qd demo` on a temporary folder and a free port. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";

const PROGRAM = process.env["QD_PROGRAM"] ?? resolve(import.meta.dirname, "../../../target/debug/qd");

const FORWARDER = join(dirname(PROGRAM), "qd-hook");

/** The daemon says where it listens within this, also on a busy machine. */
const START_MS_MAX = 60_000;

/** A hook that waits, and what it prints when it is answered. */
export interface Waiting {
  said: Promise<string>;
}

export class Daemon {
  private readonly folder = mkdtempSync(join(tmpdir(), "qd-page-"));
  private child: ChildProcess | undefined;
  private readonly forwarders = new Set<ChildProcess>();
  private environment: NodeJS.ProcessEnv;
  private readonly tokens = new Map<string, string>();
  url = "";

  private constructor() {
    // Nothing of the machine's own agents: a home and a configuration of their own.
    const at = (name: string) => {
      const path = join(this.folder, name);
      mkdirSync(path, { mode: 0o700 });
      return path;
    };
    this.environment = {
      PATH: process.env["PATH"],
      HOME: at("home"),
      XDG_STATE_HOME: at("state"),
      XDG_RUNTIME_DIR: at("run"),
      XDG_CONFIG_HOME: at("config"),
      QD_LOG: "error",
    };
  }

  /** With files in its home, as agents left them there. */
  static async serve(files: Readonly<Record<string, string>> = {}): Promise<Daemon> {
    const daemon = new Daemon();
    for (const [path, text] of Object.entries(files)) daemon.write(path, text);
    await daemon.run(["serve", "--port", "0"]);
    return daemon;
  }

  /** Recorded sessions of real clients, played. */
  static async demo(speed: number): Promise<Daemon> {
    const daemon = new Daemon();
    const said = await daemon.run(["demo", "--no-watch", "--speed", String(speed)]);
    // It has folders of its own, and says where.
    for (const [, name, value] of said.matchAll(/(XDG_\w+)=(\S+)/g)) daemon.environment[name!] = value;
    return daemon;
  }

  private write(path: string, text: string): void {
    const file = join(this.environment["HOME"] ?? "", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  token(scope: "ingest" | "operate" | "admin"): string {
    const known = this.tokens.get(scope);
    if (known !== undefined) return known;
    const token = execFileSync(PROGRAM, ["token", "--scope", scope], {
      env: this.environment,
      encoding: "utf8",
    }).trim();
    this.tokens.set(scope, token);
    return token;
  }

  /** Signs one browser in, once. */
  link(): string {
    const words = ["open", "--no-browser"];
    return execFileSync(PROGRAM, words, { env: this.environment, encoding: "utf8" }).trim();
  }

  /** The file that `qd open` gives the browser, which leads to such a link. */
  async signInFile(): Promise<string> {
    const answer = await fetch(`${this.url}/api/links`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.token("admin")}`,
        "content-type": "application/json",
        "x-quarterdeck": "1",
      },
      body: JSON.stringify({ file: true }),
    });
    return ((await answer.json()) as { file: string }).file;
  }

  /** What a command of the operator's prints. */
  ask(words: readonly string[]): string {
    return execFileSync(PROGRAM, [...words], { env: this.environment, encoding: "utf8" });
  }

  /** What an agent's hook says. */
  async hook(payload: Record<string, unknown>): Promise<void> {
    const headers = { authorization: `Bearer ${this.token("ingest")}` };
    const answer = await fetch(`${this.url}/api/live/hook`, {
      method: "POST",
      headers,
      body: JSON.stringify(payload),
    });
    if (!answer.ok) throw new Error(`the hook was refused: ${await answer.text()}`);
  }

  /** Asks the daemon as a program does, with a token. */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const headers = {
      authorization: `Bearer ${this.token("operate")}`,
      "content-type": "application/json",
      "x-quarterdeck": "1",
    };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(this.url + path, { method, headers, ...sent });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** A Claude Code in a terminal wants to run a command; its hook waits for the answer. */
  asks(session: string, command: string): Promise<Waiting> {
    return this.asksFor(session, "Bash", { command });
  }

  /** It wants to use any of its tools. `more` is what its hook says besides. */
  async asksFor(session: string, tool: string, input: object, more: object = {}): Promise<Waiting> {
    const about = { session_id: session, cwd: "/w/atlas", permission_mode: "default" };
    const call = { tool_name: tool, tool_use_id: `${session}-call`, tool_input: input };
    await this.forward({ ...about, hook_event_name: "UserPromptSubmit", prompt: `Work on ${session}` });
    await this.forward({ ...about, ...call, hook_event_name: "PreToolUse" });
    const child = this.forwarder("wait", session);
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
    const said = once(child, "close").then(() => text);
    child.stdin.end(JSON.stringify({ ...about, ...call, ...more, hook_event_name: "PermissionRequest" }));
    return { said };
  }

  /** Says it as an agent's hook does. Of a session that a process holds no other is heard. */
  private async forward(payload: Record<string, unknown>): Promise<void> {
    const child = this.forwarder("send", String(payload["session_id"]));
    const closed = once(child, "close");
    child.stdin.end(JSON.stringify(payload));
    await closed;
  }

  /** As Claude Code runs it in that session. */
  private forwarder(mode: "send" | "wait", session: string) {
    const child = spawn(FORWARDER, [mode, "--harness", "claude-code"], {
      env: { ...this.environment, CLAUDE_CODE_ENTRYPOINT: "cli", CLAUDE_CODE_SESSION_ID: session },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.forwarders.add(child);
    return child;
  }

  /** The command has run. */
  goesOn(session: string, command: string): Promise<void> {
    return this.hasUsed(session, "Bash", { command });
  }

  async hasUsed(session: string, tool: string, input: object): Promise<void> {
    await this.forward({
      session_id: session,
      hook_event_name: "PostToolUse",
      tool_name: tool,
      tool_use_id: `${session}-call`,
      tool_input: input,
      tool_response: { stdout: "" },
    });
  }

  /** What the audit has on record, in order: `given`, `delivered`, … */
  decisions(): string[] {
    const words = ["audit", "--json"];
    const text = execFileSync(PROGRAM, words, { env: this.environment, encoding: "utf8" });
    return [...text.matchAll(/"record":\s*"(given|delivered|confirmed|failed)"/g)].map(([, word]) => word!);
  }

  /** As with kill -9: nothing is said, nothing is tidied. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.end("SIGTERM");
  }

  /** While it is down: as a bad disk does. */
  damageJournal(): void {
    const state = this.environment["XDG_STATE_HOME"] ?? "";
    writeFileSync(join(state, "quarterdeck/journal.db"), "no database ".repeat(1_000));
  }

  /** On the same folder and the same port. */
  async again(): Promise<void> {
    await this.run(["serve", "--port", new URL(this.url).port]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGTERM");
    for (const forwarder of this.forwarders) forwarder.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  private async run(words: readonly string[]): Promise<string> {
    const child = spawn(PROGRAM, words, { env: this.environment, stdio: ["ignore", "pipe", "inherit"] });
    this.child = child;
    const lines = createInterface({ input: child.stdout });
    const late = setTimeout(() => child.kill("SIGKILL"), START_MS_MAX);
    let said = "";
    for await (const line of lines) {
      said += `${line}\n`;
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (url) this.url = url;
      // The demo says more; the line with the folders is its last.
      if (this.url && (words[0] === "serve" || line.includes("XDG_"))) break;
    }
    clearTimeout(late);
    child.stdout.resume();
    if (!this.url) throw new Error(`qd ${words.join(" ")} did not start: ${said}`);
    return said;
  }
}
