/** A transcript as far as it was read: pages put together. Pure. */

import { TRANSCRIPT_ENTRIES_MAX } from "./limits";
import type { TranscriptEntry, TranscriptPage } from "./wire";

export interface Transcript {
  readonly entries: readonly TranscriptEntry[];
  /** Where older entries are asked for; none when the beginning is there, or enough is. */
  readonly before?: string;
  readonly after?: string;
}

export function opened(page: TranscriptPage): Transcript {
  return withCursors(page.entries, page.more ? page.before : undefined, page.after);
}

export function withOlder(transcript: Transcript, page: TranscriptPage): Transcript {
  const entries = joined(page.entries, transcript.entries);
  const before = page.more && entries.length < TRANSCRIPT_ENTRIES_MAX ? page.before : undefined;
  return withCursors(entries, before, transcript.after);
}

/** An entry that is there already is replaced: a tool's output comes after its input. */
export function withNewer(transcript: Transcript, page: TranscriptPage): Transcript {
  const after = page.after ?? transcript.after;
  if (page.entries.length === 0) return withCursors(transcript.entries, transcript.before, after);
  const entries = joined(transcript.entries, page.entries).slice(-TRANSCRIPT_ENTRIES_MAX);
  return withCursors(entries, transcript.before, after);
}

function withCursors(
  entries: readonly TranscriptEntry[],
  before: string | undefined,
  after: string | undefined,
): Transcript {
  return { entries, ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) };
}

/** Each entry once, where it was first, as it is last. */
function joined(first: readonly TranscriptEntry[], then: readonly TranscriptEntry[]): TranscriptEntry[] {
  const byId = new Map<string, TranscriptEntry>();
  for (const entry of [...first, ...then]) byId.set(entry.id, entry);
  return [...byId.values()];
}
