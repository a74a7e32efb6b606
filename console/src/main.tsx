import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { ErrorBox } from './parts/ErrorBox.js';
import { Loading } from './parts/load/Loaded.js';
import { Frame } from './shell/Frame.js';
import { SignIn } from './shell/SignIn.js';
import { type ServerSettings, serverSettings } from './shell/session.js';
import { useSignedIn } from './shell/sign-in.js';
import { replaceBlockedStorage } from './shell/storage.js';
import { applyTheme, storedTheme } from './shell/theme.js';
import './shell/base.css';
import './shell/shell.css';

refuseMarkup();
replaceBlockedStorage(window);
applyTheme(storedTheme());
const root = document.getElementById('console');
if (root !== null) createRoot(root).render(<Shell />);

function Shell() {
  const [settings, setSettings] = useState<ServerSettings | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const [tries, setTries] = useState(0);
  const signedIn = useSignedIn(settings);
  useEffect(() => {
    void tries;
    setFault(null);
    serverSettings().then(setSettings, setFault);
  }, [tries]);
  if (fault !== null)
    return (
      <main className="front">
        <div className="box front-card">
          <Brand />
          <ErrorBox error={fault} again={() => setTries(tries + 1)} />
        </div>
      </main>
    );
  if (settings === null || signedIn.isReturning)
    return (
      <main className="front" aria-busy="true">
        <Loading what="the console" />
      </main>
    );
  if (signedIn.caller === null)
    return (
      <main className="front">
        <div className="box front-card">
          <Brand />
          <p className="quiet">Query governed data. You see what the policy allows you to see, and why.</p>
          {signedIn.fault !== null && <ErrorBox error={signedIn.fault} />}
          <SignIn settings={settings} onCaller={signedIn.enter} ended={signedIn.end} />
        </div>
      </main>
    );
  return <Frame caller={signedIn.caller} settings={settings} signedIn={signedIn} />;
}

function Brand() {
  return (
    <h1 className="brand">
      <img src="/console/icon.svg" alt="" width="26" height="26" />
      OSL Gateway
    </h1>
  );
}

/**
 * Creates the Trusted Types policy required by the server's Content-Security-Policy. Libraries may clear an element
 * with `innerHTML = ''`. Any other HTML throws, so values in answers are always shown as text. Workers can be started
 * only from the console's own files.
 */
function refuseMarkup(): void {
  window.trustedTypes?.createPolicy('default', {
    createHTML: (text) => {
      if (text === '') return text;
      throw new TypeError('nothing is shown as markup here');
    },
    createScriptURL: (url) => {
      const { origin, pathname } = new URL(url, location.href);
      if (origin === location.origin && pathname.startsWith('/console/assets/')) return url;
      throw new TypeError('scripts come from the console alone');
    },
  });
}
