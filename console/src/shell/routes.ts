import { useSyncExternalStore } from 'react';

/** Titles of the console's screens, by the word after `#/`. */
export const TITLES = {
  ask: 'Ask',
  map: 'Map',
  metrics: 'Metrics',
  receipts: 'Receipts',
  requests: 'Requests',
  policy: 'Policy',
  audit: 'Audit',
  operations: 'Operations',
} as const;
export type ScreenName = keyof typeof TITLES;
export const SCREENS = Object.keys(TITLES) as readonly ScreenName[]; // the object has no other keys

/** Page address: `#/ask?q=…`. */
interface PageAddress {
  readonly screen: ScreenName;
  readonly parameters: URLSearchParams;
}

/** Screens that require an admin role. */
export const ADMIN_SCREENS: ReadonlySet<ScreenName> = new Set(['policy', 'audit', 'operations']);

/** Parses the fragment of an address; an unknown screen becomes `ask`. */
export function placeOf(hash: string): PageAddress {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const screen = SCREENS.find((name) => name === path) ?? 'ask';
  return { screen, parameters: new URLSearchParams(query) };
}

export function hashOf(screen: ScreenName, parameters: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(parameters).toString();
  return `#/${screen}${query === '' ? '' : `?${query}`}`;
}

function subscribe(changed: () => void): () => void {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
}

export function usePlace(): PageAddress {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return placeOf(hash);
}

/**
 * Addresses that this page itself created in this tab. Any other address may have been written by someone else, so its
 * query does not run until the user confirms it.
 */
const own = new Set<string>();

/**
 * Navigates to an address that this page created, such as `#/metrics?…`. Browsers report the change only later, so the
 * event reports it at once: a ticked box is shown as ticked, and a second click starts from the new address.
 */
export function goTo(hash: string): void {
  own.add(hash);
  location.hash = hash;
  dispatchEvent(new Event('hashchange'));
}

/** Adds an address to the trusted ones, because a link to it was clicked within the page or the user confirmed it. */
export function trust(hash: string): void {
  own.add(hash);
}

export function isOwn(hash: string): boolean {
  return own.has(hash);
}
