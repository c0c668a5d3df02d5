import { Modal } from "./modal";

const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ["j  k", "Next and previous session"],
  ["Enter", "Open the selected session"],
  ["a", "Next session that needs you"],
  ["y  n", "Allow or deny, approve or reject"],
  ["1 – 9", "Choose an option of the question"],
  ["r", "Reply: the next prompt"],
  ["e", "Dismiss the selected session"],
  ["c", "New session; n, too, where nothing waits for an answer"],
  ["Ctrl Enter", "Send what is typed; in a conversation Enter alone"],
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
