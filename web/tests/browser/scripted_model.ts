/** A model on loopback that says what a test wants: Anthropic's Messages, streamed. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What it says next: words, then calls of tools. */
export interface Scripted {
  text: string;
  calls?: readonly { name: string; input: object }[];
  /** The rest comes after its first words when this is settled. */
  holds?: Promise<void>;
}

interface Asked {
  messages: { role: string; content: unknown }[];
}

export class ScriptedModel {
  /** What it was asked, the newest last. */
  readonly asked: Asked[] = [];
  private calls = 0;

  private constructor(
    private readonly server: Server,
    private readonly script: (asked: Asked) => Scripted,
  ) {}

  static async listen(script: (asked: Asked) => Scripted): Promise<ScriptedModel> {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const model = new ScriptedModel(server, script);
    server.on(
      "request",
      (asked: IncomingMessage, response: ServerResponse) => void model.answer(asked, response),
    );
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** All that it was told in the last request, as text. */
  get lastTold(): string {
    return JSON.stringify(this.asked.at(-1)?.messages.at(-1)?.content ?? "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part as string;
    const asked = JSON.parse(body) as Asked;
    this.asked.push(asked);
    let scripted: Scripted;
    try {
      scripted = this.script(asked);
    } catch (away) {
      const error = { type: "api_error", message: String(away) };
      return void response
        .writeHead(500, { "content-type": "application/json" })
        .end(JSON.stringify({ type: "error", error }));
    }
    const { text, calls = [], holds } = scripted;
    const say = (type: string, more: object) =>
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const usage = { input_tokens: 100, output_tokens: 1 };
    const message = {
      id: `msg_${this.asked.length}`,
      type: "message",
      role: "assistant",
      model: "scripted",
      content: [],
      usage,
    };
    say("message_start", { message });
    say("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
    for (const word of text.split(/(?<= )/)) {
      say("content_block_delta", { index: 0, delta: { type: "text_delta", text: word } });
    }
    await holds;
    say("content_block_stop", { index: 0 });
    for (const [nth, { name, input }] of calls.entries()) {
      const index = nth + 1;
      const block = { type: "tool_use", id: `toolu_${(this.calls += 1)}`, name, input: {} };
      say("content_block_start", { index, content_block: block });
      const delta = { type: "input_json_delta", partial_json: JSON.stringify(input) };
      say("content_block_delta", { index, delta });
      say("content_block_stop", { index });
    }
    const stop_reason = calls.length > 0 ? "tool_use" : "end_turn";
    say("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 20 } });
    say("message_stop", {});
    response.end();
  }
}
