import { Modal } from "./modal";

const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ["j  k", "Next and previous session"],
  ["Enter", "Open the selected session"],
  ["a", "Next session that needs you"],
  ["e", "Dismiss the selected session"],
  ["/", "Filter, or search in History"],
  ["Esc", "Leave a field or a dialog"],
  ["Ctrl K", "Commands and all sessions"],
  ["?", "This list"],
];

export function KeyHelp({ onClose }: { onClose: () => void }) {
  return (
    <Modal label="Keyboard shortcuts" className="key-help" onClose={onClose}>
      <h2>Keyboard shortcuts</h2>
      <dl>
        {KEYS.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              {keys.split("  ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <button type="button" className="button" onClick={onClose}>
        Close
      </button>
    </Modal>
  );
}
