import { Suspense, useEffect, useRef, useState } from 'react';
import type { Caller } from '../api/caller.js';
import type { ServerSettings } from '../api/settings.js';
import { Boundary } from '../parts/Boundary.js';
import { Dialog } from '../parts/Dialog.js';
import { Empty } from '../parts/Empty.js';
import { EndedBar } from './EndedBar.js';
import { Header } from './Header.js';
import { ADMIN_SCREENS, TITLES } from './routes.js';
import { SignIn } from './SignIn.js';
import { screenNamed, screensFor } from './screens.js';
import { SessionContext } from './session.js';
import { usePlace } from './usePlace.js';
import type { SignedInState } from './useSignedIn.js';

interface FrameProps {
  readonly caller: Caller;
  readonly settings: ServerSettings;
  readonly signedIn: SignedInState;
}

/** What is around every screen. A token that has ended takes no screen away: what was typed stays. */
export function Frame({ caller, settings, signedIn }: FrameProps) {
  const { screen } = usePlace();
  const [asksAgain, setAsksAgain] = useState(false);
  const isAdmin = settings.admin && caller.identity.adminRoles.length > 0;
  const screens = screensFor(isAdmin);
  useEffect(() => {
    document.title = `${TITLES[screen]} · OSL Gateway`;
  }, [screen]);
  useEndOf(caller, signedIn.end);
  const { entries } = signedIn;
  useEffect(() => {
    // What had the focus is gone with the form; after a reload the page begins at its beginning.
    if (entries > 0) toMain();
  }, [entries]);
  return (
    <SessionContext.Provider value={{ caller, settings }}>
      <button type="button" className="skip" onClick={toMain}>
        Skip to the screen
      </button>
      <Header
        caller={caller}
        version={settings.version}
        screen={screen}
        screens={screens}
        onLeave={signedIn.leave}
        onSwitch={() => setAsksAgain(true)}
      />
      {signedIn.hasEnded && <EndedBar onSignIn={() => setAsksAgain(true)} />}
      <main id="main" tabIndex={-1} className="screen">
        <Boundary key={`${caller.key} ${screen}`}>
          <Suspense fallback={<p className="quiet loading">Loading …</p>}>
            {screens.includes(screen) ? <Shown name={screen} /> : <NotHere name={screen} />}
          </Suspense>
        </Boundary>
      </main>
      <Dialog
        title={signedIn.hasEnded ? 'Sign in again' : 'Sign in as somebody else'}
        open={asksAgain}
        onClose={() => setAsksAgain(false)}
      >
        <SignIn
          settings={settings}
          ended={signedIn.end}
          onCaller={(next) => {
            signedIn.enter(next);
            setAsksAgain(false);
          }}
        />
      </Dialog>
    </SessionContext.Provider>
  );
}

function Shown({ name }: { readonly name: Parameters<typeof screenNamed>[0] }) {
  const Screen = screenNamed(name);
  return Screen === null ? null : <Screen />;
}

function NotHere({ name }: { readonly name: Parameters<typeof screenNamed>[0] }) {
  return (
    <Empty
      title={`${TITLES[name]} is not here`}
      text={
        ADMIN_SCREENS.has(name)
          ? 'It is for callers with an admin role, on a server that serves it (OSL_CONSOLE=admin).'
          : 'This server does not have it.'
      }
    >
      <a href="#/ask">Ask instead</a>
    </Empty>
  );
}

/** No link within the page: the address names the screen. */
function toMain(): void {
  document.getElementById('main')?.focus();
}

/** Calls `end` when the caller's last token does. */
function useEndOf(caller: Caller, end: () => void): void {
  const told = useRef(end);
  told.current = end;
  useEffect(() => {
    const at = caller.expiresAt();
    if (at === null) return;
    const timer = setTimeout(() => told.current(), Math.max(0, at - Date.now()));
    return () => clearTimeout(timer);
  }, [caller]);
}
