import { type ReactNode, useEffect, useRef } from "react";

interface Props {
  label: string;
  className?: string;
  onClose: () => void;
  children: ReactNode;
}

/** A dialog of the browser's own: it holds the focus, and Escape or a click beside it closes it. */
export function Modal({ label, className, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={`modal ${className ?? ""}`}
      aria-label={label}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      {children}
    </dialog>
  );
}
