import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { type ServerSettings, serverSettings } from './api/settings.js';
import { ErrorBox } from './parts/ErrorBox.js';
import { Loading } from './parts/load/Loaded.js';
import { Frame } from './shell/Frame.js';
import { SignIn } from './shell/SignIn.js';
import { applyTheme, storedTheme } from './shell/theme.js';
import { useSignedIn } from './shell/useSignedIn.js';
import { refuseMarkup } from './trusted-types.js';
import './shell/base.css';
import './shell/shell.css';

refuseMarkup();
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
        <div className="front-card">
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
        <div className="front-card">
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
