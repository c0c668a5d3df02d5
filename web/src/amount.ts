/** Times, tokens and money as short as they can be read. Pure. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** "12s", "4m", "1h 05m", "3d 4h". Seconds only where they matter. */
export function duration(ms: number): string {
  const left = Math.max(0, ms);
  if (left < MINUTE) return `${Math.floor(left / SECOND)}s`;
  if (left < HOUR) return `${Math.floor(left / MINUTE)}m`;
  if (left < DAY) {
    const minutes = Math.floor((left % HOUR) / MINUTE);
    return `${Math.floor(left / HOUR)}h ${String(minutes).padStart(2, "0")}m`;
  }
  return `${Math.floor(left / DAY)}d ${Math.floor((left % DAY) / HOUR)}h`;
}

/** For runs, where fractions of a second tell something. */
export function shortDuration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)}s`;
  if (ms < MINUTE) return `${Math.round(ms / SECOND)}s`;
  if (ms < HOUR) {
    return `${Math.floor(ms / MINUTE)}m ${String(Math.floor((ms % MINUTE) / SECOND)).padStart(2, "0")}s`;
  }
  return duration(ms);
}

/** "860", "12.4k", "3.1M". */
export function tokens(count: number): string {
  if (count < 1_000) return String(Math.round(count));
  if (count < 999_500) return `${short(count / 1_000)}k`;
  if (count < 999_500_000) return `${short(count / 1_000_000)}M`;
  return `${short(count / 1_000_000_000)}B`;
}

const short = (number: number) => (number < 99.95 ? number.toFixed(1) : number.toFixed(0));

/** "$0.04", "$12.30", "$1,204". An estimate says so. */
export function money(usd: number, estimated = false): string {
  const format = usd >= 1_000 ? DOLLARS : usd > 0 && usd < 0.01 ? FRACTIONS : CENTS;
  return `${estimated ? "~" : ""}$${format.format(usd)}`;
}

const withDigits = (digits: number) =>
  new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

// Made once: making one costs more than a card.
const [DOLLARS, CENTS, FRACTIONS] = [withDigits(0), withDigits(2), withDigits(4)];

/** "14:02:11", the operator's time. */
export function clock(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, { hour12: false });
}

/** "14:02" today, "12 Nov 14:02" before. */
export function moment(at: number, now: number): string {
  const date = new Date(at);
  const time = date.toLocaleTimeString(undefined, { hour12: false, hour: "2-digit", minute: "2-digit" });
  if (date.toDateString() === new Date(now).toDateString()) return time;
  return `${date.toLocaleDateString(undefined, { day: "numeric", month: "short" })} ${time}`;
}

/** The folder's own name: what people call a project. */
export function projectOf(cwd: string): string {
  const parts = cwd.split("/").filter(Boolean);
  return parts.at(-1) ?? cwd;
}

/** "needs_permission" as words. */
export function words(state: string): string {
  const text = state.replace(/[_-]+/g, " ").trim();
  return text === "" ? state : text[0]!.toUpperCase() + text.slice(1);
}
