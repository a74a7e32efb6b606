/** A `traceparent` of W3C Trace Context that may be passed on; null for anything else. */
export function traceparentOf(header: string | readonly string[] | undefined): string | null {
  if (typeof header !== 'string') return null;
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(header);
  if (match === null || match[1] === 'ff') return null;
  return /^0+$/.test(match[2] ?? '') || /^0+$/.test(match[3] ?? '') ? null : header;
}
