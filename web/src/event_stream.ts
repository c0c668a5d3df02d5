/** Server-sent events out of text that comes in pieces. Pure. */

import { EVENT_CHARS_MAX } from "./limits";

export interface StreamEvent {
  name: string;
  data: string;
  id?: string;
}

/** Takes what was read; gives the events that are whole now. A comment counts as a sign of life only. */
export class EventReader {
  private rest = "";
  private data: string[] = [];
  private chars = 0;
  private name = "";
  private id: string | undefined;

  read(piece: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = this.take(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event) events.push(event);
    }
    if (this.rest.length + this.chars > EVENT_CHARS_MAX) {
      throw new Error("an event is longer than any of ours");
    }
    return events;
  }

  private take(line: string): StreamEvent | undefined {
    if (line === "") return this.finish();
    const colon = line.indexOf(":");
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "event") this.name = value;
    if (field === "id") this.id = value;
    if (field === "data") {
      this.data.push(value);
      this.chars += value.length;
    }
    return undefined;
  }

  private finish(): StreamEvent | undefined {
    const { data, name, id } = this;
    this.data = [];
    this.chars = 0;
    this.name = "";
    this.id = undefined;
    if (data.length === 0) return undefined;
    const event = { name: name || "message", data: data.join("\n") };
    return id === undefined ? event : { ...event, id };
  }
}
