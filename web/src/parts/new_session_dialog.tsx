import { CircleX, Play } from "lucide-react";
import { type ReactNode, useId, useMemo, useState } from "react";

import { tell } from "../api";
import { asRefused, useAsked } from "../asked";
import { live } from "../live";
import {
  ACP,
  type Choice,
  chosenOf,
  harnessOffers,
  type HarnessOffer,
  keptChoice,
  knownFolders,
  knownModels,
  type Place,
  providerOf,
  readChoice,
  refusedAt,
  type Trouble,
  troubleOf,
  wantedOf,
} from "../new_session";
import { PRESET_NAMES, PRESET_WORDS, PRESETS } from "../policy";
import { navigate, sessionPath } from "../route";
import type { HarnessList, Preset, SessionBegun } from "../wire";
import { ActButton } from "./act_button";
import { AskFirst } from "./ask_first";
import { Modal } from "./modal";
import { YOLO_QUESTION } from "./policy_acts";

const KEPT = "new-session";

/** What was typed and not sent outlives the dialog, and no reload. */
let unsent = "";

/** Which agent, where, with what, and what it is told first. */
export function NewSessionDialog({ onClose }: { onClose: () => void }) {
  const { asked } = useAsked<HarnessList>("/api/harnesses");
  const offers = harnessOffers(asked.state === "there" ? asked.value : undefined);
  const [wished, setChoice] = useState(() => readChoice(kept()));
  const chosen = chosenOf(offers, wished.harness);
  const choice = { ...wished, harness: chosen?.name ?? wished.harness };
  const [prompt, setPrompt] = useState(unsent);
  const [trouble, setTrouble] = useState<Trouble>();
  const [sending, setSending] = useState(false);
  const [cards] = useState(() => [...live.snapshot().board.cards.values()]);
  const folders = useMemo(() => knownFolders(cards, readChoice(kept()).folder), [cards]);
  const id = useId();
  const change = (next: Partial<Choice>) => {
    setTrouble(undefined);
    setChoice({ ...choice, ...next });
  };
  const type = (text: string) => {
    unsent = text;
    setPrompt(text);
  };
  const begin = async () => {
    const early = troubleOf(choice, chosen) ?? impossible(chosen);
    setTrouble(early);
    if (early || sending) return;
    setSending(true);
    try {
      const { sessionId } = await tell<SessionBegun>("/api/sessions", wantedOf(choice, prompt, chosen));
      keep(choice);
      unsent = "";
      onClose();
      navigate(sessionPath(sessionId));
    } catch (error) {
      setTrouble(refusedAt(asRefused(error)));
      setSending(false);
    }
  };
  return (
    <Modal label="New session" className="new-session" onClose={onClose}>
      <h2>New session</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (choice.preset !== "yolo") void begin();
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || choice.preset === "yolo") return;
          event.preventDefault();
          void begin();
        }}
      >
        <Harnesses
          offers={offers}
          chosen={choice.harness}
          trouble={trouble}
          onChoose={(harness) => change({ harness, provider: "" })}
        />
        <Labelled label="Folder" htmlFor={`${id}-folder`} place="folder" trouble={trouble}>
          <input
            id={`${id}-folder`}
            className="field"
            list={`${id}-folders`}
            placeholder="/home/you/project"
            autoComplete="off"
            spellCheck={false}
            autoFocus
            value={choice.folder}
            aria-invalid={trouble?.place === "folder" || undefined}
            onChange={(event) => change({ folder: event.target.value })}
          />
          <datalist id={`${id}-folders`}>
            {folders.map((folder) => (
              <option key={folder} value={folder} />
            ))}
          </datalist>
        </Labelled>
        <div className="field-pair">
          {choice.harness === "native" && (
            <Labelled label="Provider" htmlFor={`${id}-provider`} place="provider" trouble={trouble}>
              <input
                id={`${id}-provider`}
                className="field"
                list={`${id}-providers`}
                placeholder="As configured"
                autoComplete="off"
                spellCheck={false}
                value={choice.provider}
                onChange={(event) => change({ provider: event.target.value })}
              />
              <datalist id={`${id}-providers`}>
                {chosen?.providers.map((provider) => (
                  <option key={provider} value={provider} />
                ))}
              </datalist>
            </Labelled>
          )}
          {choice.harness === ACP && chosen !== undefined && chosen.providers.length > 0 && (
            <Labelled label="Which agent" htmlFor={`${id}-provider`} place="provider" trouble={trouble}>
              <select
                id={`${id}-provider`}
                className="field"
                value={providerOf(choice, chosen)}
                aria-invalid={trouble?.place === "provider" || undefined}
                onChange={(event) => change({ provider: event.target.value })}
              >
                {chosen.providers.length > 1 && <option value="">Choose one</option>}
                {chosen.providers.map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            </Labelled>
          )}
          <Labelled label="Model" htmlFor={`${id}-model`}>
            <input
              id={`${id}-model`}
              className="field"
              list={`${id}-models`}
              placeholder="Its own choice"
              autoComplete="off"
              spellCheck={false}
              value={choice.model}
              onChange={(event) => change({ model: event.target.value })}
            />
            <datalist id={`${id}-models`}>
              {knownModels(cards, choice.harness).map((model) => (
                <option key={model} value={model} />
              ))}
            </datalist>
          </Labelled>
        </div>
        <Labelled label="Prompt" htmlFor={`${id}-prompt`}>
          <textarea
            id={`${id}-prompt`}
            className="text-box"
            rows={4}
            placeholder="What shall it do? It can be told later, too."
            value={prompt}
            onChange={(event) => type(event.target.value)}
          />
        </Labelled>
        <Labelled label="Without asking" htmlFor={`${id}-preset`}>
          <select
            id={`${id}-preset`}
            className="field"
            value={choice.preset}
            onChange={(event) => change({ preset: event.target.value as Preset })}
          >
            {PRESETS.map((preset) => (
              <option key={preset} value={preset}>
                {PRESET_NAMES[preset]}: {PRESET_WORDS[preset]}
              </option>
            ))}
          </select>
        </Labelled>
        <Said place="foot" trouble={trouble} />
        <div className="dialog-acts">
          <ActButton look="quiet" onPress={onClose}>
            Cancel
          </ActButton>
          {choice.preset === "yolo" ? (
            <AskFirst
              question={YOLO_QUESTION}
              yes="Yes, begin with YOLO"
              locked={sending}
              onYes={() => void begin()}
            >
              {(ask) => <BeginButton sending={sending} onPress={ask} />}
            </AskFirst>
          ) : (
            <BeginButton sending={sending} onPress={() => void begin()} />
          )}
        </div>
      </form>
    </Modal>
  );
}

function BeginButton({ sending, onPress }: { sending: boolean; onPress: () => void }) {
  return (
    <ActButton look="strong" icon={Play} locked={sending} onPress={onPress}>
      {sending ? "Beginning" : "Begin"}
    </ActButton>
  );
}

const impossible = (offer: HarnessOffer | undefined): Trouble | undefined =>
  offer?.possible === false ? { place: "harness", why: offer.why ?? "It is not possible here" } : undefined;

interface HarnessesProps {
  offers: readonly HarnessOffer[];
  chosen: string;
  trouble: Trouble | undefined;
  onChoose: (harness: string) => void;
}

/** All that are known: one that is not possible here says why. */
function Harnesses({ offers, chosen, trouble, onChoose }: HarnessesProps) {
  const name = useId();
  return (
    <fieldset className="harness-choice">
      <legend>Agent</legend>
      <div className="harness-offers">
        {offers.map((offer) => (
          <label key={offer.name} className="harness-offer" data-possible={offer.possible}>
            <input
              type="radio"
              name={name}
              value={offer.name}
              checked={offer.name === chosen}
              disabled={!offer.possible}
              onChange={() => onChoose(offer.name)}
            />
            <span className="harness-label">{offer.label}</span>
            {!offer.possible && <span className="harness-why">{offer.why ?? "not possible here"}</span>}
          </label>
        ))}
      </div>
      <Said place="harness" trouble={trouble} />
    </fieldset>
  );
}

interface LabelledProps {
  label: string;
  htmlFor: string;
  place?: Place;
  trouble?: Trouble | undefined;
  children: ReactNode;
}

function Labelled({ label, htmlFor, place, trouble, children }: LabelledProps) {
  return (
    <div className="labelled">
      <label htmlFor={htmlFor}>{label}</label>
      {children}
      {place !== undefined && <Said place={place} trouble={trouble} />}
    </div>
  );
}

/** What is wrong, at its place. */
function Said({ place, trouble }: { place: Place; trouble: Trouble | undefined }) {
  return (
    <div role="alert">
      {trouble?.place === place && (
        <p className="field-trouble">
          <CircleX aria-hidden="true" size={14} />
          {trouble.why}
        </p>
      )}
    </div>
  );
}

function kept(): string | null {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

function keep(choice: Choice): void {
  try {
    localStorage.setItem(KEPT, keptChoice(choice));
  } catch {
    // A browser that keeps nothing begins with the first choice again.
  }
}
