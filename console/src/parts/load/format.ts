/** Formats a number like `12,345`. */
export function formatCount(value: number): string {
  return value.toLocaleString('en-US');
}

/** Formats a local time with milliseconds: `2026-01-31 14:03:05.120`. */
export function formatTime(ts: string): string {
  const at = new Date(ts);
  if (Number.isNaN(at.getTime())) return ts;
  const two = (n: number): string => String(n).padStart(2, '0');
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const ms = String(at.getMilliseconds()).padStart(3, '0');
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${ms}`;
}

/** Formats the time elapsed until `now`: `3 s`, `12 min`, `5 h`, `9 d`. */
export function formatAge(ts: string, now: number): string {
  return spanOf(now - Date.parse(ts));
}

/** Formats the time remaining from `now`, like `formatAge`. */
export function formatTimeLeft(ts: string, now: number): string {
  return spanOf(Date.parse(ts) - now);
}

function spanOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (Number.isNaN(seconds)) return '';
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** Formats microseconds as a duration: `850 µs`, `2.1 ms`, `1.5 s`. */
export function formatDuration(us: number): string {
  if (us < 1_000) return `${Math.round(us)} µs`;
  if (us < 1_000_000) return `${(us / 1_000).toFixed(us < 10_000 ? 1 : 0)} ms`;
  return `${(us / 1_000_000).toFixed(1)} s`;
}

/** Shortens `osl.entities.person` to `person`; returns any other text unchanged. */
export function shortName(object: string): string {
  return object.replace(/^osl\.(entities|facets|metrics)\./, '');
}

/** Formats a grant as in a policy file, on one line. */
export function grantText(grant: Readonly<Record<string, unknown>>): string {
  return `- ${valueText(grant)}`;
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([name, member]) => `${name}: ${valueText(member)}`);
    return `{ ${members.join(', ')} }`;
  }
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = String(value);
  return /^[A-Za-z_][\w.]*$/.test(text) && !/^(true|false|null|yes|no|on|off)$/i.test(text)
    ? text
    : JSON.stringify(text);
}

interface Caret {
  readonly line: number;
  readonly shown: string;
  /** White space, followed by one mark for each character of the word at the position. */
  readonly marks: string;
}

/** Returns the line at a 1-based position in `text`, with marks under the word there; null if outside the text. */
export function caretOf(
  text: string,
  { line, column }: { readonly line: number; readonly column: number },
): Caret | null {
  const shown = text.split('\n')[line - 1];
  if (shown === undefined || column < 1 || column > shown.length + 1) return null;
  const word = /^[\p{L}\p{N}_.$]+/u.exec(shown.slice(column - 1))?.[0] ?? ' ';
  const before = shown.slice(0, column - 1).replace(/[^\t]/g, ' ');
  return { line, shown, marks: before + '^'.repeat(Math.max(1, word.length)) };
}
