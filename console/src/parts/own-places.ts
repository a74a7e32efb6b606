/**
 * Addresses that this page itself made in this tab. Any other may have been written by somebody else, so that it asks
 * nothing until the person who opened it says so.
 */
const own = new Set<string>();

/** Goes to a place of this page's own making: `#/metrics?…`. */
export function goTo(hash: string): void {
  own.add(hash);
  location.hash = hash;
}

/** Counts an address as one's own: of a link that is clicked within the page, or of one that somebody agreed to. */
export function trust(hash: string): void {
  own.add(hash);
}

export function isOwn(hash: string): boolean {
  return own.has(hash);
}
