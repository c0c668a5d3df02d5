import { useAttempt } from "../attempts";
import { choosePreset, command, commandName } from "../commands";
import { PRESET_NAMES, PRESET_WORDS, type PresetOffer, PRESETS, type YoloOffer } from "../policy";
import { useMayBeReleased } from "../readings";
import type { Card, Preset } from "../wire";
import { AskFirst } from "./ask_first";

export const YOLO_QUESTION = "Answer everything yes?";

const READ_FIRST = "This allows what is asked for now, too. Read all of that first.";

const useIsSending = (card: Card) => {
  const yolo = useAttempt(commandName(card, "yolo"))?.state;
  const preset = useAttempt(commandName(card, "policy"))?.state;
  return yolo === "sending" || preset === "sending";
};

/** Shows what is in force; a press asks for the other. Nobody switches it on by a slip. */
export function YoloSwitch({ card, offer }: { card: Card; offer: YoloOffer }) {
  const sending = useIsSending(card);
  const { on } = offer;
  const mayRelease = useMayBeReleased(card);
  const unread = !on && !mayRelease ? READ_FIRST : undefined;
  const locked = sending || offer.locked !== undefined || unread !== undefined;
  const title = offer.locked ?? unread ?? (on ? "It asks nobody" : "It asks before it acts");
  return (
    <AskFirst
      question={YOLO_QUESTION}
      yes="Yes, YOLO"
      locked={locked}
      onYes={() => void command(card, "yolo", { on: true })}
    >
      {(ask) => (
        <button
          type="button"
          className="act yolo"
          data-look="quiet"
          role="switch"
          aria-checked={on}
          aria-disabled={locked || undefined}
          title={title}
          onClick={() => {
            if (locked) return;
            if (on) void command(card, "yolo", { on: false });
            else ask();
          }}
        >
          <span className="switch" aria-hidden="true" />
          YOLO {on ? "on" : "off"}
        </button>
      )}
    </AskFirst>
  );
}

/** What the session may do without asking. The board's word is what is chosen. */
export function PresetChoice({ card, offer }: { card: Card; offer: PresetOffer }) {
  const locked = useIsSending(card);
  const mayRelease = useMayBeReleased(card);
  return (
    <AskFirst
      question={YOLO_QUESTION}
      yes="Yes, YOLO"
      locked={locked}
      onYes={() => void choosePreset(card, "yolo")}
    >
      {(ask) => (
        <select
          className="field preset-choice"
          aria-label="Without asking"
          title={mayRelease ? "What it may do without asking you" : READ_FIRST}
          value={offer.chosen ?? ""}
          disabled={locked}
          onChange={(event) => {
            const preset = event.target.value === "" ? undefined : (event.target.value as Preset);
            if (preset === "yolo") ask();
            else void choosePreset(card, preset);
          }}
        >
          <option value="" disabled={!mayRelease && offer.chosen !== undefined}>
            As the project has it
          </option>
          {PRESETS.map((preset) => {
            const unread = mayRelease || preset === "manual" ? undefined : "read what is asked for first";
            const why = (preset === "yolo" ? offer.noYolo : undefined) ?? unread;
            return (
              <option key={preset} value={preset} disabled={why !== undefined}>
                {PRESET_NAMES[preset]}: {why ?? PRESET_WORDS[preset]}
              </option>
            );
          })}
        </select>
      )}
    </AskFirst>
  );
}
