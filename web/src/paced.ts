/** A value that changes all the time, seen at a pace. */

import { useEffect, useRef, useState } from "react";

/** The value as it was at most `ms` ago; its last change is never left out. */
export function usePaced<T>(value: T, ms: number): T {
  const [seen, setSeen] = useState(value);
  const last = useRef(0);
  useEffect(() => {
    const wait = Math.max(0, last.current + ms - Date.now());
    const timer = setTimeout(() => {
      last.current = Date.now();
      setSeen(value);
    }, wait);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return seen;
}
