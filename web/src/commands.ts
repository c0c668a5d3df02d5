/** What the operator can ask for from a card or a key. */

import { Refused, tell } from "./api";
import { type Attempt, attempts, isLocked, progressOf } from "./attempts";
import { dismissName } from "./board";
import { titleOfCard } from "./card_text";
import { drafts } from "./drafts";
import { say, sayFailed, sayUndoable } from "./notices";
import { mayBeReleased, readings } from "./readings";
import type { Archived, Card, Decision, Done, Preset, RequestView } from "./wire";

/** Answers a request. While an answer is on its way this does nothing, and what was not read is not allowed. */
export async function decide(request: RequestView, decision: Decision): Promise<void> {
  const { key, revision } = request;
  if (key === undefined || isLocked(progressOf(request.answer, attempts.of(key)))) return;
  const lets = decision.type === "allow" || decision.type === "approve_plan";
  if (lets && readings.of(request) !== "ready") return;
  const attempt = attempts.begin(key, decision, request.answer?.at);
  if (attempt) {
    await carriedOut(key, attempt, `/api/requests/${encodeURIComponent(key)}/decision`, {
      decision,
      ...(revision === undefined ? {} : { revision }),
      key: attempt.key,
    });
  }
}

/** The next prompt. What was typed stays until the server has it. */
export async function prompt(card: Card, text: string): Promise<void> {
  const body = { text: text.trim() };
  if (body.text === "") return;
  const attempt = attempts.begin(commandName(card, "input"), body);
  if (!attempt) return;
  const path = commandPath(card, "input");
  const done = await carriedOut(commandName(card, "input"), attempt, path, { ...body, key: attempt.key });
  if (!done) return;
  drafts.prompt(card.sessionId, "");
  // A conversation shows it itself.
  if (!card.driven) say(`Sent to ${titleOfCard(card)}`);
}

export type Command = "interrupt" | "stop" | "focus" | "yolo" | "policy" | "pause" | "resume" | "retry";

/** `{}` where there is nothing to say. */
export async function command(card: Card, verb: Command, body: object = {}): Promise<void> {
  if (releases(verb, body) && !mayBeReleased(card)) return;
  const name = commandName(card, verb);
  const attempt = attempts.begin(name, body);
  if (!attempt) return;
  const done = await carriedOut(name, attempt, commandPath(card, verb), body);
  if (done) say(`${DONE[verb]}: ${titleOfCard(card)}`);
}

/** Whether it may allow what the session asks for now. */
function releases(verb: Command, body: object): boolean {
  if (verb === "yolo") return "on" in body && body.on === true;
  return verb === "policy" && "preset" in body && body.preset !== "manual";
}

const DONE: Readonly<Record<Command, string>> = {
  interrupt: "Interrupt sent",
  stop: "Stop sent",
  focus: "Brought to the front",
  yolo: "YOLO switched",
  policy: "Policy chosen",
  pause: "Pause asked for",
  resume: "Goes on",
  retry: "Tried again",
};

/** Tries one failed run of a driven session again. */
export async function retryRun(card: Card, kind: "tools" | "hooks", run: string): Promise<void> {
  const name = retryName(card, run);
  const attempt = attempts.begin(name, {});
  if (!attempt) return;
  await carriedOut(name, attempt, commandPath(card, `${kind}/${encodeURIComponent(run)}/retry`), {});
}

export const retryName = (card: Card, run: string) => `${card.sessionId}/retry ${run}`;

/** What a session may do without asking; none: as its project has it. */
export const choosePreset = (card: Card, preset: Preset | undefined): Promise<void> =>
  command(card, "policy", { preset: preset ?? null });

export const commandName = (card: Card, verb: Command | "input") => `${card.sessionId}/${verb}`;

const commandPath = (card: Card, verb: string) =>
  `/api/sessions/${encodeURIComponent(card.sessionId)}/${verb}`;

/** Sends an attempt and writes down what became of it. */
async function carriedOut(
  name: string,
  attempt: Attempt,
  path: string,
  body: object,
): Promise<Done | undefined> {
  const { key, body: text, over } = attempt;
  const same = { key, body: text, ...(over === undefined ? {} : { over }) };
  try {
    const done = await tell(path, body);
    attempts.put(name, { ...same, state: "taken", said: done.state ?? "delivered" });
    return done;
  } catch (error) {
    const refused = error instanceof Refused ? error : undefined;
    attempts.put(name, {
      ...same,
      state: refused?.unheard ? "unheard" : "refused",
      why: error instanceof Error ? error.message : String(error),
      ...(refused?.first === undefined ? {} : { first: refused.first }),
    });
    return undefined;
  }
}

export async function dismiss(card: Card): Promise<void> {
  await tried("Not dismissed", async () => {
    await tell(commandPath(card, "dismiss"));
    const said = dismissName(card) === "Dismiss" ? "Dismissed" : "Goes on";
    say(`${said}: ${titleOfCard(card)}`);
  });
}

/** Puts sessions into History; the server keeps those of which anything lives. */
export async function archive(cards: readonly Card[]): Promise<void> {
  await tried("Not moved to History", async () => {
    const sessions = cards.map((card) => card.sessionId);
    const moved = await tell<Archived>("/api/sessions/archive", { sessions });
    sayUndoable(
      `Moved to History: ${sessionCount(moved.sessions.length)}`,
      () => void unarchive(moved.sessions),
    );
  });
}

export async function unarchive(sessions: readonly string[]): Promise<void> {
  await tried("Not moved back", async () => {
    const moved = await tell<Archived>("/api/sessions/unarchive", { sessions });
    say(`Moved back to the board: ${sessionCount(moved.sessions.length)}`);
  });
}

const sessionCount = (count: number) => (count === 1 ? "1 session" : `${count} sessions`);

export async function copy(text: string): Promise<void> {
  await tried("Not copied", async () => {
    await navigator.clipboard.writeText(text);
    say("Copied");
  });
}

async function tried(failed: string, what: () => Promise<void>): Promise<void> {
  try {
    await what();
  } catch (error) {
    sayFailed(`${failed}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
