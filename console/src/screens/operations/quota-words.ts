import type { QuotaView } from '../../api/admin-types.js';
import { counted } from '../../parts/load/words.js';

const WINDOWS: ReadonlyMap<number, string> = new Map([
  [1, 'second'],
  [60, 'minute'],
  [3_600, 'hour'],
  [86_400, 'day'],
]);

/** What a limit is, in words. */
export function quotaName({ unit, bucket, window_seconds, role, each }: QuotaView): string {
  const what = unit === 'ms' ? 'seconds of the database' : unit;
  const whose =
    role === null ? (each ? 'each subject' : 'everybody') : `role ${role}${each ? ', each subject' : ''}`;
  const of = bucket === 'query' ? '' : ` (${bucket})`;
  return `${what}${of} a ${WINDOWS.get(window_seconds) ?? `${window_seconds} s`}, ${whose}`;
}

/** An amount of a limit's unit. */
export function amountText(unit: QuotaView['unit'], amount: number): string {
  if (unit === 'bytes' && amount >= 1_048_576) return `${counted(Math.round(amount / 1_048_576))} MiB`;
  if (unit === 'ms') return `${counted(Math.round(amount / 1_000))} s`;
  return counted(Math.round(amount));
}
