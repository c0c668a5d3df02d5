import { useEffect, useRef } from "react";

interface Props {
  label: string;
  value: string;
  onChange: (value: string) => void;
  onSubmit: () => void;
  placeholder?: string;
  code?: boolean;
  secret?: boolean;
  locked?: boolean;
  reply?: boolean;
  /** Takes the focus when it appears. */
  focus?: boolean;
  /** Enter sends, Shift and Enter begin a line. */
  enterSends?: boolean;
}

/** A few lines to type in. Ctrl and Enter send, Escape leaves. */
export function TextBox(props: Props) {
  const { label, value, onChange, onSubmit, placeholder, code, secret, locked, reply, focus, enterSends } =
    props;
  const box = useRef<HTMLTextAreaElement & HTMLInputElement>(null);
  useEffect(() => {
    if (focus) box.current?.focus();
  }, []);
  // The Enter that ends a word of an input method is not ours.
  const sends = ({ ctrlKey, metaKey, shiftKey, nativeEvent }: React.KeyboardEvent) =>
    !nativeEvent.isComposing && (secret || ctrlKey || metaKey || (enterSends && !shiftKey));
  const pressed = (event: React.KeyboardEvent<HTMLElement>) => {
    if (event.key === "Escape") {
      const place = event.currentTarget.closest("[data-session]");
      event.currentTarget.blur();
      place?.querySelector<HTMLElement>("a")?.focus({ preventScroll: true });
    } else if (event.key === "Enter" && sends(event)) {
      event.preventDefault();
      if (!locked) onSubmit();
    }
  };
  const all = {
    ref: box,
    className: code ? "text-box is-code" : "text-box",
    "aria-label": label,
    placeholder,
    value,
    readOnly: locked,
    onChange: (event: React.ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onChange(event.target.value),
    onKeyDown: pressed,
  };
  return secret ? (
    <input type="password" autoComplete="off" {...all} />
  ) : (
    <textarea rows={1} spellCheck={!code} data-reply={reply || undefined} {...all} />
  );
}
