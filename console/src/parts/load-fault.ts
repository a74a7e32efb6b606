/**
 * Errors of loading a part of the console, as reported by Vite: its files have other names after an upgrade, and the
 * server may be unreachable. Only reloading the page helps.
 */
const faults = new WeakSet<object>();

addEventListener('vite:preloadError', (event) => {
  const { payload } = event as Event & { readonly payload?: unknown }; // as Vite makes it
  if (typeof payload === 'object' && payload !== null) faults.add(payload);
});

export const RELOAD_TITLE = 'The console has to be loaded again';
export const RELOAD_WORDS =
  'A part of it could not be loaded: the gateway was replaced by another version, or cannot be reached.';

export function isLoadFault(error: unknown): boolean {
  return typeof error === 'object' && error !== null && faults.has(error);
}
