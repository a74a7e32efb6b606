/** Formats a time in ms since 1970 as RFC 3339, such as `2026-11-30T15:30:00.000Z`. */
export function instant(ms: number): string {
  return new Date(ms).toISOString();
}
