import { useCallback, useEffect, useState } from "react";

import { say, sayFailed } from "../notices";
import { devices, ownId, subscribe, type Support, support, test, unsubscribe } from "../push";
import type { DeviceView } from "../wire";
import { Modal } from "./modal";

const SUPPORT_WORDS: Readonly<Record<Exclude<Support, "ready">, string>> = {
  missing: "This browser cannot be told: it has no notifications for this page.",
  needs_home_screen: "To be told here, add this page to the home screen and open it from there.",
  denied: "Notifications are blocked for this page. Allow them in the browser's settings for it.",
};

/** Which devices are told when an agent needs somebody. */
export function BellDialog({ onClose }: { onClose: () => void }) {
  const [known, setKnown] = useState<readonly DeviceView[]>();
  const [own, setOwn] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const look = useCallback(async () => {
    try {
      const [all, id] = await Promise.all([devices(), ownId()]);
      setKnown(all);
      setOwn(id);
      setProblem(undefined);
    } catch (error) {
      setProblem(wordsOf(error));
    }
  }, []);
  useEffect(() => void look(), [look]);

  const act = async (does: () => Promise<unknown>, done: string) => {
    if (busy) return;
    setBusy(true);
    try {
      await does();
      say(done);
    } catch (error) {
      sayFailed(wordsOf(error));
    }
    await look();
    setBusy(false);
  };
  const able = support();
  const isTold = known?.some(({ id }) => id === own) ?? false;
  return (
    <Modal label="Notifications" className="bell-dialog" onClose={onClose}>
      <h2>Notifications</h2>
      <p className="quiet">Told when an agent needs you, unless you look at this page.</p>
      {problem !== undefined && <p className="problem">{problem}</p>}
      {able !== "ready" ? (
        <p>{SUPPORT_WORDS[able]}</p>
      ) : (
        !isTold &&
        known !== undefined && (
          <button
            type="button"
            className="button"
            disabled={busy}
            onClick={() => void act(subscribe, "This device will be told")}
          >
            Tell this device
          </button>
        )
      )}
      {known !== undefined && known.length > 0 && (
        <ul className="device-list" aria-label="Devices that are told">
          {known.map(({ id, label, service }) => (
            <li key={id}>
              <span className="device-name">
                {label}
                {id === own && <span className="quiet"> · this device</span>}
                <span className="quiet device-service">{service}</span>
              </span>
              <button
                type="button"
                className="quiet-button"
                disabled={busy}
                aria-label={`Send a test to ${label}`}
                onClick={() => void act(() => test(id), `A test is on its way to ${label}`)}
              >
                Send a test
              </button>
              <button
                type="button"
                className="quiet-button"
                disabled={busy}
                aria-label={`Remove ${label}`}
                onClick={() => void act(() => unsubscribe(id), `${label} is told no more`)}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      <button type="button" className="button" onClick={onClose}>
        Close
      </button>
    </Modal>
  );
}

const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
