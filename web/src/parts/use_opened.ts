import { useRef } from "react";

/** Whether a box is there because of a press: then it takes the focus, and not when it merely comes back. */
export function useOpened(): { now: () => void; isNow: boolean } {
  const pressed = useRef(false);
  return {
    now: () => {
      pressed.current = true;
    },
    isNow: pressed.current,
  };
}
