/** How agent products are called. */

import { words } from "./amount";

const NAMES: Readonly<Record<string, string>> = {
  "claude-code": "Claude Code",
  codex: "Codex",
  "gemini-cli": "Gemini CLI",
  "kilo-code": "Kilo",
  cline: "Cline",
  opencode: "OpenCode",
  acp: "ACP",
  native: "Native",
};

export function harnessName(harness: string): string {
  const name = harness.replace(/_/g, "-");
  return Object.hasOwn(NAMES, name) ? NAMES[name]! : words(harness);
}

/** Products whose clients can be told yes from outside. */
export function takesApproval(harness: string): boolean {
  return !["gemini-cli", "cline", "acp"].includes(harness.replace(/_/g, "-"));
}

/** Modes in which an agent asks nobody before it acts. */
export function asksNobody(mode: string): boolean {
  return /^(bypass-?permissions|yolo|danger|never|full-?auto|full-?access)/i.test(mode);
}
