import { useState } from 'react';
import type { Caller } from '../api/caller.js';
import { hashOf, type ScreenName, TITLES } from './routes.js';
import { applyTheme, nextTheme, storedTheme, type Theme } from './theme.js';

interface HeaderProps {
  readonly caller: Caller;
  readonly version: string;
  readonly screen: ScreenName;
  readonly screens: readonly ScreenName[];
  readonly onSwitch: () => void;
  readonly onLeave: () => void;
}

/** Where one may go, and as whom one asks. */
export function Header({ caller, version, screen, screens, onSwitch, onLeave }: HeaderProps) {
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
