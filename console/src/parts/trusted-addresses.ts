/**
 * Addresses that this page itself created in this tab. Any other address may have been written by someone else, so its
 * query does not run until the user confirms it.
 */
const own = new Set<string>();

/**
 * Navigates to an address that this page created, such as `#/metrics?…`. The browser reports the change only later.
 * This reports it immediately, so that a ticked box is shown as ticked and a second click starts from the new address.
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
