/**
 * Addresses that this page itself made in this tab. Any other may have been written by somebody else, so it runs no
 * query until the person who opened it confirms.
 */
const own = new Set<string>();

/**
 * Goes to an address that this page made, such as `#/metrics?…`. The browser announces the change in a later task; this
 * announces it at once, so that a box just ticked is drawn ticked and a second click starts from the new address.
 */
export function goTo(hash: string): void {
  own.add(hash);
  location.hash = hash;
  dispatchEvent(new Event('hashchange'));
}

/** Adds an address to the trusted ones: that of a link clicked within the page, or one that the user confirmed. */
export function trust(hash: string): void {
  own.add(hash);
}

export function isOwn(hash: string): boolean {
  return own.has(hash);
}
