/** Formats a time in ms since 1970 as RFC 3339, such as `2026-11-30T15:30:00.000Z`. */
export function instant(ms: number): string {
  return new Date(ms).toISOString();
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/;

/**
 * Parses a day or a timestamp, such as `2026-01-31` or `2026-01-31T09:00:00+01:00`, in ms since 1970; null if it is
 * malformed or there is no such day. Without an offset it is in UTC, wherever this runs.
 */
export function parseInstant(text: string): number | null {
  const [, day = '', time = '00:00', zone = 'Z'] = TIME.exec(text.toUpperCase()) ?? [];
  const ms = Date.parse(`${day}T${time}${zone}`);
  // Date.parse takes 30 February for 2 March.
  return Number.isNaN(ms) || !instant(Date.parse(`${day}T00:00Z`)).startsWith(day) ? null : ms;
}
