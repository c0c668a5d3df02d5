/**
 * An answer while it comes, out of numbered pieces. Pure.
 *
 * Pieces are put in order; one that is missing is waited for, but not for ever. What is lost here is
 * not lost: the whole answer is in the session's detail when it is complete.
 */

import type { Piece } from "./driven";
import { ANSWER_CHARS_MAX, GAP_MS_MAX, PIECES_HELD_MAX } from "./limits";

export interface LiveCall {
  readonly callId: string;
  readonly name: string;
  readonly text: string;
}

export interface LiveAnswer {
  readonly turn: string;
  readonly startedAt: number;
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly LiveCall[];
  readonly model?: string;
  /** A tool came after the text so far: more of it is a new paragraph. */
  readonly parted: boolean;
  /** Some of it did not come through. */
  readonly lost: boolean;
  /** Nothing more is taken in. */
  readonly ended?: { readonly how: "completed" } | { readonly how: "failed"; readonly why: string };
  /** The number of the next piece. */
  readonly next: number;
  /** Those that came before their turn, by number. */
  readonly held: ReadonlyMap<number, Piece>;
}

function begun({ streamId, timestampMs, seq }: Piece): LiveAnswer {
  return {
    turn: streamId,
    startedAt: timestampMs,
    text: "",
    thinking: "",
    calls: [],
    parted: false,
    // Whoever comes in the middle goes on from there.
    lost: seq > 1,
    next: seq,
    held: new Map(),
  };
}

/** Takes a piece in. One of another turn begins a new answer. */
export function withPiece(answer: LiveAnswer | undefined, piece: Piece): LiveAnswer {
  if (!answer || answer.turn !== piece.streamId) return withPiece(begun(piece), piece);
  if (answer.ended?.how === "completed") return answer;
  // The same turn is asked again after it failed: its pieces are counted on, or anew.
  if (answer.ended) return piece.seq > 1 && piece.seq < answer.next ? answer : withPiece(begun(piece), piece);
  if (piece.seq < answer.next || answer.held.has(piece.seq)) return answer;
  const held = new Map(answer.held).set(piece.seq, piece);
  return inOrder({ ...answer, held }, piece.timestampMs);
}

/** What is next, as long as it is there; over a gap that lasts too long, or holds up too much. */
function inOrder(answer: LiveAnswer, now: number): LiveAnswer {
  const held = new Map(answer.held);
  let current: LiveAnswer = { ...answer, held };
  while (held.size > 0) {
    let seq = current.next;
    if (!held.has(seq)) {
      const first = Math.min(...held.keys());
      const waited = now - held.get(first)!.timestampMs;
      if (waited < GAP_MS_MAX && held.size <= PIECES_HELD_MAX) break;
      seq = first;
      current = { ...current, lost: true };
    }
    const piece = held.get(seq)!;
    held.delete(seq);
    current = { ...taken(current, piece), next: seq + 1 };
    if (current.ended) return { ...current, held: new Map() };
  }
  return { ...current, held };
}

function taken(answer: LiveAnswer, { type, payload }: Piece): LiveAnswer {
  const said = (name: string) => (typeof payload[name] === "string" ? payload[name] : "");
  switch (type) {
    case "text_delta":
      return withText(answer, said("text"));
    case "thinking_delta":
      return { ...answer, thinking: bounded(answer.thinking + said("text")) };
    case "tool_call_delta":
      return {
        ...answer,
        parted: true,
        calls: withCall(answer.calls, said("callId"), said("toolName"), said("argumentsDelta")),
      };
    case "tool_call_completed":
      return { ...answer, parted: true };
    case "metadata":
      return { ...answer, model: said("model") };
    case "completed":
      return { ...answer, ended: { how: "completed" } };
    case "error":
      return { ...answer, ended: { how: "failed", why: said("message") } };
    default:
      return answer;
  }
}

function withText(answer: LiveAnswer, more: string): LiveAnswer {
  const between = answer.parted && answer.text !== "" ? "\n\n" : "";
  return { ...answer, parted: false, text: bounded(answer.text + between + more) };
}

function withCall(calls: readonly LiveCall[], callId: string, name: string, more: string): LiveCall[] {
  const known = calls.find((call) => call.callId === callId);
  if (!known) return [...calls, { callId, name, text: bounded(more) }];
  const next = { callId, name: known.name || name, text: bounded(known.text + more) };
  return calls.map((call) => (call === known ? next : call));
}

/** The end is what is being read. */
const bounded = (text: string) => (text.length > ANSWER_CHARS_MAX ? text.slice(-ANSWER_CHARS_MAX) : text);
