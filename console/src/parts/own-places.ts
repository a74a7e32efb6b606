/**
 * Addresses that this page itself made in this tab. Any other may have been written by somebody else, so it runs no
 * query until the person who opened it confirms.
 */
const own = new Set<string>();

/**
 * Goes to an address that this page made, such as `#/metrics?…`. The browser announces the change in a later task; it is
 * announced here at once, so that a box that was just ticked is drawn ticked and a second click starts from the new address.
 */
export function goTo(hash: string): void {
  own.add(hash);
  location.hash = hash;
  dispatchEvent(new Event('hashchange'));
}

/** Counts an address as one's own: of a link that is clicked within the page, or of one that somebody agreed to. */
export function trust(hash: string): void {
  own.add(hash);
}

export function isOwn(hash: string): boolean {
  return own.has(hash);
}
