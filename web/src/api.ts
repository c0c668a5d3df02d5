/** Questions to the server, and its refusals. */

import { signedFetch, StrangerError } from "./browser_key";
import { REQUEST_MS_MAX } from "./limits";
import type { Done, FirstAnswer, Problem } from "./wire";

/** The server, or the way to it, said no. */
export class Refused extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly status: number;
  /** Somebody's answer that came before this one. */
  readonly first: FirstAnswer | undefined;

  constructor(status: number, problem: Problem) {
    super(problem.message);
    this.status = status;
    this.code = problem.code;
    this.retryable = problem.retryable;
    this.first = problem.first;
  }

  /** Whether it was taken cannot be told: the line broke, somebody between failed, or the agent's side is silent. */
  get unheard(): boolean {
    const isOfNobody = this.status >= 500 && this.code === NOT_OURS;
    const isCut = this.status === 0 && this.code !== STRANGER.code;
    return isCut || isOfNobody || this.code === "delivery_unclear";
  }

  get signedOut(): boolean {
    return this.status === 401;
  }
}

/** Asks for something to look at. */
export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await send(path, { headers: { accept: "application/json" } }, signal);
  return (await response.json()) as T;
}

/** Tells the server to do something. */
export async function tell<T = Done>(path: string, body: unknown = {}): Promise<T> {
  const headers = { "content-type": "application/json", "x-quarterdeck": "1" };
  const response = await send(path, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json().catch(() => ({}))) as T;
}

/** Tells the server to forget something. */
export async function remove(path: string): Promise<void> {
  await send(path, {
    method: "DELETE",
    headers: { "content-type": "application/json", "x-quarterdeck": "1" },
  });
}

async function send(path: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
  const deadline = AbortSignal.timeout(REQUEST_MS_MAX);
  const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
  let response: Response;
  try {
    response = await signedFetch(path, { ...init, signal: either });
  } catch (error) {
    if (signal?.aborted) throw error;
    if (error instanceof StrangerError) throw new Refused(0, STRANGER);
    throw new Refused(0, UNREACHABLE);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

/** What a response that is not what was asked for says. */
export async function refusal(response: Response): Promise<Refused> {
  const said = (await response.json().catch(() => ({}))) as Partial<Problem>;
  return new Refused(response.status, {
    code: said.code ?? NOT_OURS,
    message: said.message ?? `the server answered ${response.status}`,
    retryable: said.retryable ?? response.status >= 500,
    ...(said.first === undefined ? {} : { first: said.first }),
  });
}

/** The code of a failure that is told by somebody between the daemon and the page. */
const NOT_OURS = "http";

/** Nothing was said to it. */
const STRANGER: Problem = {
  code: "stranger",
  message: "Another program answers at this address. Start the daemon: `qd`",
  retryable: true,
};

const UNREACHABLE: Problem = {
  code: "unreachable",
  message: "the daemon does not answer",
  retryable: true,
};
