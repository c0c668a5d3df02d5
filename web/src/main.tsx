import "./style/index.css";

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app";
import { watchClosing } from "./closing";
import { connect } from "./live";
import { codeIn } from "./pages/sign_in_page";
import { watchPresence } from "./presence";
import { registerWorker } from "./worker_registration";

/** Taken out of the address at once: it is a secret, and works once. */
function takeSignInCode(): string | undefined {
  if (location.pathname !== "/sign-in" || location.hash === "") return undefined;
  const code = codeIn(location.hash);
  history.replaceState(null, "", "/sign-in");
  return code;
}

const signInCode = takeSignInCode();
const place = document.getElementById("page");
if (!place) throw new Error("index.html has a place for the page");
createRoot(place).render(
  <StrictMode>
    <App signInCode={signInCode} />
  </StrictMode>,
);
watchClosing();
connect();
watchPresence();
registerWorker();
