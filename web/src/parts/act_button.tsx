import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

interface Props {
  children: ReactNode;
  onPress: () => void;
  /** Does nothing now, and keeps the focus. */
  locked?: boolean;
  look?: "strong" | "plain" | "quiet";
  icon?: LucideIcon;
  /** The key that does the same. */
  hint?: string;
  expanded?: boolean;
  reply?: boolean;
}

/** A button on a card, as large as a thumb on a phone. */
export function ActButton(props: Props) {
  const { children, onPress, locked = false, look = "plain", icon: Icon, hint, expanded, reply } = props;
  return (
    <button
      type="button"
      className="act"
      data-look={look}
      data-reply={reply || undefined}
      aria-disabled={locked || undefined}
      aria-expanded={expanded}
      aria-keyshortcuts={hint}
      onClick={() => {
        if (!locked) onPress();
      }}
    >
      {Icon && <Icon aria-hidden="true" size={14} />}
      {children}
      {hint !== undefined && (
        <kbd aria-hidden="true" className="desk-only">
          {hint}
        </kbd>
      )}
    </button>
  );
}
