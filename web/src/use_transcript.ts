/** A session's transcript by pages: the newest first, older ones asked for, new ones as they come. */

import { useCallback, useEffect, useRef, useState } from "react";

import { ask } from "./api";
import type { Refused } from "./api";
import { asRefused } from "./asked";
import { TRANSCRIPT_PAGE } from "./limits";
import { opened, type Transcript, withNewer, withOlder } from "./transcript";
import type { TranscriptPage } from "./wire";

interface Reading {
  transcript: Transcript | undefined;
  refused: Refused | undefined;
  older: () => Promise<void>;
  again: () => void;
}

/** `signal` is a number that rises when there may be more. The session is the same for its lifetime. */
export function useTranscript(sessionId: string, signal: number): Reading {
  const [transcript, setTranscript] = useState<Transcript>();
  const [refused, setRefused] = useState<Refused>();
  const [tries, setTries] = useState(0);
  const current = useRef<Transcript>(undefined);
  const busy = useRef({ older: false, newer: false });
  const wanted = useRef(false);
  const path = `/api/live/sessions/${encodeURIComponent(sessionId)}/transcript?limit=${TRANSCRIPT_PAGE}`;
  const keep = (next: Transcript) => {
    current.current = next;
    setTranscript(next);
  };
  useEffect(() => {
    const abort = new AbortController();
    setRefused(undefined);
    ask<TranscriptPage>(path, abort.signal).then(
      (page) => keep(opened(page)),
      (error: unknown) => {
        if (!abort.signal.aborted) setRefused(asRefused(error));
      },
    );
    return () => abort.abort();
  }, [path, tries]);
  const newer = async () => {
    for (let more = true; more && current.current;) {
      const { after } = current.current;
      const cursor = after === undefined ? "" : `&after=${encodeURIComponent(after)}`;
      const page = await ask<TranscriptPage>(path + cursor);
      keep(withNewer(current.current, page));
      more = after !== undefined && page.more && page.after !== after;
    }
  };
  useEffect(() => {
    wanted.current = true;
    // One look at a time; a signal that comes meanwhile wants another.
    if (busy.current.newer) return;
    busy.current.newer = true;
    const look = async () => {
      while (wanted.current) {
        wanted.current = false;
        await newer();
      }
    };
    // A look that fails is no matter: the stream says that the daemon is away, and there is a next.
    void look()
      .catch(() => undefined)
      .finally(() => (busy.current.newer = false));
  }, [signal]);
  const older = useCallback(async () => {
    const before = current.current?.before;
    if (before === undefined || busy.current.older) return;
    busy.current.older = true;
    try {
      const page = await ask<TranscriptPage>(`${path}&before=${encodeURIComponent(before)}`);
      if (current.current) keep(withOlder(current.current, page));
    } catch (error) {
      setRefused(asRefused(error));
    } finally {
      busy.current.older = false;
    }
  }, [path]);
  return { transcript, refused, older, again: () => setTries((count) => count + 1) };
}
