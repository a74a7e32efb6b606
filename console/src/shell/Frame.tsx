import {
  Component,
  type ComponentType,
  type LazyExoticComponent,
  lazy,
  type ReactNode,
  Suspense,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import type { SignedInCaller } from '../api/caller.js';
import { Dialog } from '../parts/Dialog.js';
import { Empty } from '../parts/Empty.js';
import { ErrorBox, RELOAD } from '../parts/ErrorBox.js';
import { Loading } from '../parts/load/Loaded.js';
import { callAt } from './call-at.js';
import { ADMIN_SCREENS, hashOf, SCREENS, type ScreenName, TITLES, usePlace } from './routes.js';
import { SignIn } from './SignIn.js';
import { type ServerSettings, SessionContext } from './session.js';
import type { SignedInState } from './sign-in.js';
import { applyTheme, nextTheme, storedTheme, type Theme } from './theme.js';

interface FrameProps {
  readonly caller: SignedInCaller;
  readonly settings: ServerSettings;
  readonly signedIn: SignedInState;
}

/** Frame around every screen. When the token expires, the screen stays open, so that typed text is not lost. */
export function Frame({ caller, settings, signedIn }: FrameProps) {
  const { screen } = usePlace();
  const [asksAgain, setAsksAgain] = useState(false);
  const isAdmin = settings.admin && caller.identity.adminRoles.length > 0;
  const screens = screensFor(isAdmin);
  useEffect(() => {
    document.title = `${TITLES[screen]} · OSL Gateway`;
  }, [screen]);
  useEndOf(caller, signedIn.end);
  const { entries, hasEnded } = signedIn;
  const signInAgain = useCallback(() => setAsksAgain(true), []);
  const session = useMemo(
    () => ({ caller, settings, hasEnded, signInAgain }),
    [caller, settings, hasEnded, signInAgain],
  );
  useEffect(() => {
    // The sign-in form, which had the focus, has been removed, so the main content gets the focus.
    if (entries > 0) toMain();
  }, [entries]);
  return (
    <SessionContext.Provider value={session}>
      <button type="button" className="skip" onClick={toMain}>
        Skip to the screen
      </button>
      <Header
        caller={caller}
        version={settings.version}
        screen={screen}
        screens={screens}
        onLeave={signedIn.leave}
        onSwitch={signInAgain}
      />
      {hasEnded && <EndedBar onSignIn={signInAgain} />}
      <main id="main" tabIndex={-1} className="screen">
        <h1 className="hidden">{TITLES[screen]}</h1>
        <Boundary key={`${caller.key} ${screen}`}>
          <Suspense fallback={<Loading what={TITLES[screen]} />}>
            {screens.includes(screen) ? <Shown name={screen} /> : <NotHere name={screen} />}
          </Suspense>
        </Boundary>
      </main>
      <Dialog
        title={hasEnded ? 'Sign in again' : 'Sign in as somebody else'}
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

function Shown({ name }: { readonly name: ScreenName }) {
  const Screen = LOADED.get(name);
  return Screen === undefined ? null : <Screen />;
}

function NotHere({ name }: { readonly name: ScreenName }) {
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

/** Focuses the main content. A link to it would not work, because the address fragment names the screen. */
function toMain(): void {
  document.getElementById('main')?.focus();
}

/** Calls `end` when the caller's token expires, unless tokens are renewed automatically. */
function useEndOf(caller: SignedInCaller, end: () => void): void {
  const told = useRef(end);
  told.current = end;
  useEffect(() => {
    const at = caller.expiresAt();
    if (at === null) return;
    return callAt(at, () => told.current());
  }, [caller]);
}

interface BoundaryProps {
  readonly children: ReactNode;
}

interface BoundaryState {
  readonly error: unknown;
}

/** Keeps an error in one screen from affecting the rest of the page. */
class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { error: null };

  static getDerivedStateFromError(error: unknown): BoundaryState {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Empty title="This page could not be loaded">
        <ErrorBox error={error} fix={RELOAD} />
      </Empty>
    );
  }
}

/** Notice that the token has expired, with a way to sign in again; the screen stays unchanged. */
function EndedBar({ onSignIn }: { readonly onSignIn: () => void }) {
  return (
    <div className="row ended warn" role="alert">
      <span>Your token has expired. What you typed is kept.</span>
      <button type="button" className="primary" onClick={onSignIn}>
        Sign in again
      </button>
    </div>
  );
}

interface HeaderProps {
  readonly caller: SignedInCaller;
  readonly version: string;
  readonly screen: ScreenName;
  readonly screens: readonly ScreenName[];
  readonly onSwitch: () => void;
  readonly onLeave: () => void;
}

function Header({ caller, version, screen, screens, onSwitch, onLeave }: HeaderProps) {
  return (
    <header className="header">
      <a className="header-brand" href="#/ask" title={`OSL Gateway ${version}`}>
        <img src="/console/icon.svg" alt="" width="22" height="22" />
        <span>OSL Gateway</span>
      </a>
      <nav className="header-nav" aria-label="Screens">
        {screens.map((name) => (
          <a key={name} href={hashOf(name)} aria-current={name === screen ? 'page' : undefined}>
            {TITLES[name]}
          </a>
        ))}
      </nav>
      <div className="header-who">
        <button
          type="button"
          className="who"
          onClick={onSwitch}
          title={`Signed in as ${caller.identity.chain.join(' → ')}; choose another`}
        >
          <span className="hidden">Signed in as </span>
          {caller.identity.chain.join(' → ')}
        </button>
        <ThemeButton />
        <button type="button" className="plain" onClick={onLeave}>
          Sign out
        </button>
      </div>
    </header>
  );
}

const SIGNS: Readonly<Record<Theme, string>> = { system: '◐', light: '☀', dark: '☾' };

function ThemeButton() {
  const [theme, setTheme] = useState(storedTheme);
  const change = (): void => {
    const next = nextTheme(theme);
    applyTheme(next);
    setTheme(next);
  };
  return (
    <button type="button" className="plain" onClick={change} title={`Colours: ${theme}`}>
      <span aria-hidden="true">{SIGNS[theme]}</span>
      <span className="hidden">Colours: {theme}</span>
    </button>
  );
}

interface ScreenModule {
  readonly Screen: ComponentType;
}

const modules = import.meta.glob<ScreenModule>('../screens/*/index.tsx');

/** Screens included in the build, each loaded when first shown. */
const LOADED: ReadonlyMap<ScreenName, LazyExoticComponent<ComponentType>> = new Map(
  SCREENS.flatMap((name) => {
    const load = modules[`../screens/${name}/index.tsx`];
    return load === undefined
      ? []
      : [[name, lazy(async () => ({ default: (await load()).Screen }))] as const];
  }),
);

function screensFor(isAdmin: boolean): readonly ScreenName[] {
  return SCREENS.filter((name) => LOADED.has(name) && (isAdmin || !ADMIN_SCREENS.has(name)));
}
