/** What is asked for a new session: choices, what was chosen last, and where a refusal belongs. Pure. */

import type { Refused } from "./api";
import { harnessName } from "./harness";
import { FOLDERS_MAX } from "./limits";
import { PRESETS } from "./policy";
import type { Card, HarnessList, HarnessOffered, Preset, SessionWanted } from "./wire";

/** An agent that a session can be begun with, or why not. */
export interface HarnessOffer {
  /** As the server wants it: `claude-code`. */
  readonly name: string;
  readonly label: string;
  readonly possible: boolean;
  readonly why?: string;
  /** Whom it can be made to ask for answers; of ACP, the agents that are set up. */
  readonly providers: readonly string[];
}

const ALL = ["native", "claude-code", "codex", "gemini-cli", "opencode", "kilo-code", "cline", "acp"];

/** All of them until the server says which: it refuses with a reason what cannot be. */
export function harnessOffers(list: HarnessList | undefined): readonly HarnessOffer[] {
  const told: readonly Partial<HarnessOffered>[] =
    list?.harnesses ?? ALL.map((harness) => ({ harness, possible: true }));
  return told.map(({ harness = "", possible = false, why, providers = [] }) => ({
    name: harness.replace(/_/g, "-"),
    label: harnessName(harness),
    possible,
    providers,
    ...(why === undefined ? {} : { why }),
  }));
}

/** The one that was chosen or, where it is not possible here, the first that is. */
export function chosenOf(offers: readonly HarnessOffer[], name: string): HarnessOffer | undefined {
  const wanted = offers.find((offer) => offer.name === name);
  return wanted?.possible === false ? (offers.find(({ possible }) => possible) ?? wanted) : wanted;
}

/** Models that sessions of that agent have used. */
export function knownModels(cards: Iterable<Card>, harness: string): string[] {
  const own = [...cards].filter((card) => card.harness.replace(/_/g, "-") === harness);
  return [...new Set(own.flatMap(({ usage, drive }) => [drive?.model, usage.model]))].filter(
    (model): model is string => model !== undefined && model !== "",
  );
}

/** Folders that sessions work in, the newest first; each once. */
export function knownFolders(cards: Iterable<Card>, last: string): string[] {
  const newest = [...cards].sort((a, b) => b.lastSignal - a.lastSignal).map(({ cwd }) => cwd ?? "");
  return [...new Set([last, ...newest])].filter((folder) => folder !== "").slice(0, FOLDERS_MAX);
}

export interface Choice {
  readonly harness: string;
  readonly folder: string;
  readonly provider: string;
  readonly model: string;
  readonly preset: Preset;
}

const FIRST: Choice = { harness: "native", folder: "", provider: "", model: "", preset: "careful" };

/** What was chosen last, if it still reads like a choice. */
export function readChoice(kept: string | null): Choice {
  let told: unknown;
  try {
    told = JSON.parse(kept ?? "{}");
  } catch {
    return FIRST;
  }
  if (typeof told !== "object" || told === null) return FIRST;
  const choice = told as Partial<Record<keyof Choice, unknown>>;
  const text = (name: keyof Choice) => (typeof choice[name] === "string" ? choice[name] : FIRST[name]);
  const preset = PRESETS.find((each) => each === choice.preset) ?? FIRST.preset;
  return {
    harness: text("harness"),
    folder: text("folder"),
    provider: text("provider"),
    model: text("model"),
    preset,
  };
}

/** What the next session is offered. YOLO is chosen each time anew. */
export const keptChoice = (choice: Choice): string =>
  JSON.stringify({ ...choice, preset: choice.preset === "yolo" ? FIRST.preset : choice.preset });

/** The place of the form that a word about it belongs to. */
export type Place = "harness" | "folder" | "provider" | "foot";

export interface Trouble {
  readonly place: Place;
  readonly why: string;
}

/** What keeps a choice from being sent. */
export function troubleOf(choice: Choice, offer?: HarnessOffer): Trouble | undefined {
  const path = choice.folder.trim();
  if (path === "") return { place: "folder", why: "Which folder shall it work in?" };
  if (!path.startsWith("/")) return { place: "folder", why: "From the root, please: /home/…" };
  const isOpen = offer?.name === ACP && offer.providers.length > 1 && providerOf(choice, offer) === "";
  return isOpen ? { place: "provider", why: "Which of them?" } : undefined;
}

/** Any agent that speaks ACP: config.toml names them. */
export const ACP = "acp";

/** Whom our own agent asks, which ACP agent is meant, and nothing to others. */
export function providerOf({ harness, provider }: Choice, offer?: HarnessOffer): string {
  if (harness === "native") return provider.trim();
  if (harness !== ACP) return "";
  const known = offer?.providers ?? [];
  // One that was taken out of the configuration is none any more.
  return known.find((each) => each === provider) ?? (known.length === 1 ? known[0]! : "");
}

export function wantedOf(choice: Choice, prompt: string, offer?: HarnessOffer): SessionWanted {
  const [model, provider, said] = [choice.model.trim(), providerOf(choice, offer), prompt.trim()];
  return {
    harness: choice.harness,
    workspace: choice.folder.trim(),
    preset: choice.preset,
    ...(model === "" ? {} : { model }),
    ...(provider === "" ? {} : { provider }),
    ...(said === "" ? {} : { prompt: said }),
  };
}

/** Where a refusal is shown, and in which words. */
export function refusedAt({ code, message, unheard }: Refused): Trouble {
  if (unheard)
    return { place: "foot", why: `${message}. It may have begun all the same: look at the board first` };
  switch (code) {
    case "no_workspace":
      return { place: "folder", why: message };
    case "not_possible":
    case "unknown_harness":
      return { place: "harness", why: message };
    default:
      return { place: "foot", why: message };
  }
}
