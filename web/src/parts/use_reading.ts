import { type RefObject, useEffect } from "react";

import { Coverage } from "../coverage";
import { readings } from "../readings";
import type { RequestView } from "../wire";

/** Says when the whole of a request has been on the screen, in however many pieces. */
export function useReading(request: RequestView, place: RefObject<HTMLElement | null>): void {
  const name = JSON.stringify([
    request.key,
    request.requestId,
    request.revision,
    request.input,
    request.text,
  ]);
  useEffect(() => {
    readings.shown(request);
    const { current: root } = place;
    const end = root ? watched(root, () => readings.whole(request)) : undefined;
    return () => {
      end?.();
      readings.gone(request);
    };
  }, [name]);
}

/** Looks whenever something moved, until the whole was seen. */
function watched(root: HTMLElement, onWhole: () => void): () => void {
  const coverage = new Coverage();
  let frame: number | undefined;
  const end = () => {
    if (frame !== undefined) cancelAnimationFrame(frame);
    document.removeEventListener("scroll", soon, true);
    document.removeEventListener("visibilitychange", soon);
    removeEventListener("resize", soon);
    sized.disconnect();
    moved.disconnect();
  };
  const look = () => {
    frame = undefined;
    if (!coverage.look(root)) return;
    end();
    onWhole();
  };
  const soon = () => (frame ??= requestAnimationFrame(look));
  const sized = new ResizeObserver(soon);
  const moved = new IntersectionObserver(soon, { threshold: THRESHOLDS });
  sized.observe(root);
  moved.observe(root);
  document.addEventListener("scroll", soon, true);
  document.addEventListener("visibilitychange", soon);
  addEventListener("resize", soon);
  return end;
}

/* A card that is moved by its neighbours, without a scroll, is looked at in steps. */
const THRESHOLDS = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
