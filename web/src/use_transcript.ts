/** A session's transcript by pages: the newest first, older ones asked for, new ones as they come. */

import { useCallback, useEffect, useRef, useState } from "react";

import { ask } from "./api";
import type { Refused } from "./api";
import { asRefused } from "./asked";
import { TRANSCRIPT_LOOK_MS, TRANSCRIPT_PAGE } from "./limits";
import { opened, type Transcript, withNewer, withOlder } from "./transcript";
import type { TranscriptPage } from "./wire";

interface Reading {
  transcript: Transcript | undefined;
  refused: Refused | undefined;
  older: () => Promise<void>;
  again: () => void;
}

/** `signal` is a number that rises when the session did something. */
export function useTranscript(sessionId: string, signal: number): Reading {
  const [transcript, setTranscript] = useState<Transcript>();
  const [refused, setRefused] = useState<Refused>();
  const [tries, setTries] = useState(0);
  const current = useRef<Transcript>(undefined);
  const busy = useRef(false);
  const path = useCallback(
    (cursor: string) => `/api/live/sessions/${encodeURIComponent(sessionId)}/transcript?limit=${TRANSCRIPT_PAGE}${cursor}`,
    [sessionId],
  );
  const keep = (next: Transcript) => {
    current.current = next;
    setTranscript(next);
  };
  useEffect(() => {
    const abort = new AbortController();
    setRefused(undefined);
    ask<TranscriptPage>(path(""), abort.signal).then(
      (page) => keep(opened(page)),
      (error: unknown) => {
        if (!abort.signal.aborted) setRefused(asRefused(error));
      },
    );
    return () => abort.abort();
  }, [path, tries]);
  useEffect(() => {
    if (!current.current) return;
    const abort = new AbortController();
    // Many signals in a moment are one look.
    const timer = setTimeout(() => void newer(abort.signal), TRANSCRIPT_LOOK_MS);
    const newer = async (aborted: AbortSignal) => {
      for (let more = true; more && current.current && !aborted.aborted; ) {
        const { after } = current.current;
        const cursor = after === undefined ? "" : `&after=${encodeURIComponent(after)}`;
        const page = await ask<TranscriptPage>(path(cursor), aborted).catch(() => undefined);
        if (!page || aborted.aborted) return;
        keep(withNewer(current.current, page));
        more = after !== undefined && page.more && page.after !== after;
      }
    };
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, signal, transcript === undefined]);
  const older = useCallback(async () => {
    const before = current.current?.before;
    if (before === undefined || busy.current) return;
    busy.current = true;
    try {
      const page = await ask<TranscriptPage>(path(`&before=${encodeURIComponent(before)}`));
      if (current.current) keep(withOlder(current.current, page));
    } catch (error) {
      setRefused(asRefused(error));
    } finally {
      busy.current = false;
    }
  }, [path]);
  return { transcript, refused, older, again: () => setTries((count) => count + 1) };
}
