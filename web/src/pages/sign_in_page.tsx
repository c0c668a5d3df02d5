import { KeyRound } from "lucide-react";
import { type FormEvent, useEffect, useRef, useState } from "react";

import { tell } from "../api";
import { asRefused } from "../asked";
import { canSignIn, keep } from "../browser_key";
import { Blank } from "../parts/blank";
import { renew } from "../push";
import type { SignedIn } from "../wire";

interface Props {
  /** From the link that was opened, if one was. */
  code?: string;
  onSignedIn: () => void;
}

/** Trades a code that works once for this browser's key. */
export function SignInPage({ code, onSignedIn }: Props) {
  const [state, setState] = useState<{ busy: boolean; problem?: string }>({ busy: code !== undefined });
  const tried = useRef<string>(undefined);
  const signIn = async (word: string) => {
    // Before the code is used up.
    if (!canSignIn()) return setState({ busy: false, problem: NOT_SECURE });
    setState({ busy: true });
    try {
      await keep(await tell<SignedIn>("/api/sign-in", { code: word }));
      // Where this browser was told before, it is told by its new sign-in.
      renew().catch(() => undefined);
      onSignedIn();
    } catch (error) {
      setState({ busy: false, problem: asRefused(error).message });
    }
  };
  useEffect(() => {
    if (code === undefined || tried.current === code) return;
    tried.current = code;
    void signIn(code);
  }, [code]);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const typed = new FormData(event.currentTarget).get("code");
    const word = codeIn(typeof typed === "string" ? typed : "");
    if (word !== "") void signIn(word);
  };
  return (
    <Blank icon={KeyRound} title={state.busy ? "Signing in" : "Sign in"}>
      {state.problem !== undefined && (
        <p role="alert" className="problem">
          {state.problem}
        </p>
      )}
      {!state.busy && (
        <>
          <p>Open the link that this command prints. It works once; on a phone, scan its code.</p>
          <pre className="code">qd open</pre>
          <form onSubmit={submit} className="sign-in-form">
            <label htmlFor="code">Or paste the link here</label>
            <div className="field-row">
              <input id="code" name="code" className="field" autoComplete="off" spellCheck={false} required />
              <button type="submit" className="button">
                Sign in
              </button>
            </div>
          </form>
        </>
      )}
    </Blank>
  );
}

const NOT_SECURE =
  "The browser lets a page sign in over https, or on this machine at 127.0.0.1. Open it by such an address.";

/** The code of a link, or the code itself. */
export function codeIn(text: string): string {
  return text.trim().split("#").at(-1)?.trim() ?? "";
}
