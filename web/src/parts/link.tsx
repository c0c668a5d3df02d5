import type { MouseEvent, ReactNode } from "react";

import { navigate } from "../route";

interface Props {
  to: string;
  className?: string;
  current?: boolean;
  children: ReactNode;
}

/** A link within the page. What a browser does with a modified click stays the browser's. */
export function Link({ to, className, current, children }: Props) {
  const follow = (event: MouseEvent) => {
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!plain) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} className={className} aria-current={current ? "page" : undefined} onClick={follow}>
      {children}
    </a>
  );
}
