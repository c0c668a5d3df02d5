import { FileText } from "lucide-react";
import { useLayoutEffect, useRef } from "react";

import { useTranscript } from "../use_transcript";
import { Blank } from "./blank";
import { RefusedBlank } from "./refused_blank";
import { TranscriptLines } from "./transcript_lines";

const NEAR_PX = 80;

/** The transcript, kept at its end while the reader is there. */
export function TranscriptPane({ sessionId, signal }: { sessionId: string; signal: number }) {
  const { transcript, refused, older, again } = useTranscript(sessionId, signal);
  const pane = useRef<HTMLDivElement>(null);
  const place = useRef({ atEnd: true, height: 0, first: "" });
  const first = transcript?.entries[0]?.id ?? "";
  useLayoutEffect(() => {
    const { current: box } = pane;
    if (!box) return;
    const was = place.current;
    if (was.atEnd) box.scrollTop = box.scrollHeight;
    // Older entries came in above: what is read stays where it is.
    else if (was.first !== first) box.scrollTop += box.scrollHeight - was.height;
    place.current = { ...was, height: box.scrollHeight, first };
  }, [transcript, first]);
  const scrolled = () => {
    const { current: box } = pane;
    if (box) place.current.atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
  };
  if (!transcript && refused) return <RefusedBlank refused={refused} again={again} />;
  if (!transcript) return <p className="quiet loading-line">Reading the transcript</p>;
  if (transcript.entries.length === 0) {
    return (
      <Blank icon={FileText} title="Nothing is written yet">
        <p>What is said and done shows here as it happens.</p>
      </Blank>
    );
  }
  return (
    <div
      className="transcript"
      ref={pane}
      onScroll={scrolled}
      tabIndex={0}
      role="region"
      aria-label="Transcript"
    >
      {transcript.before !== undefined && (
        <button type="button" className="quiet-button older" onClick={() => void older()}>
          Show older
        </button>
      )}
      <TranscriptLines entries={transcript.entries} />
    </div>
  );
}
