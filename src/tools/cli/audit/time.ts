import { type Failure, usage } from '../exit.js';

const AGO = /^(\d{1,6})(s|m|h|d)$/;
const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `2026-01-31`, `2026-01-31T12:00:00Z`, or `90m`: so long ago. @throws Failure */
export function timeOf(flag: string, text: string): string {
  const [, count, unit] = AGO.exec(text) ?? [];
  const ago =
    unit === 's' || unit === 'm' || unit === 'h' || unit === 'd' ? Number(count) * UNITS[unit] : null;
  const ms = ago === null ? Date.parse(text) : Date.now() - ago;
  if (ago === null && !/^\d{4}-\d\d-\d\d/.test(text)) throw wrongTime(flag, text);
  if (Number.isNaN(ms)) throw wrongTime(flag, text);
  return new Date(ms).toISOString();
}

function wrongTime(flag: string, text: string): Failure {
  return usage(
    `${flag} takes a time such as 2026-01-31T12:00:00Z, a day, or 90m, 12h, 7d ago; not \`${text}\``,
  );
}
