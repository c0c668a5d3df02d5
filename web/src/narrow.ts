/** Whether the window is a phone's. The style sheet says the same width. */

import { useSyncExternalStore } from "react";

const query = "(max-width: 719px)";

function subscribe(reader: () => void): () => void {
  const media = matchMedia(query);
  media.addEventListener("change", reader);
  return () => media.removeEventListener("change", reader);
}

export const useNarrow = () => useSyncExternalStore(subscribe, () => matchMedia(query).matches);
