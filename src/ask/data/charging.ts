import type { RowSink } from '../../engine/index.js';
import type { Caller } from '../request/caller.js';
import { quotasFor } from '../request/limit.js';
import type { RequestParts } from '../request/parts.js';
import { Sealed } from '../request/sealed.js';

/** `sink`, which counts what leaves by it against the quotas of who asked, where there are any. */
export function chargingSink(sink: RowSink, { means }: Pick<RequestParts, 'means'>, caller: Caller): RowSink {
  const { quotas } = Sealed.open(means).limiter;
  const own = quotasFor(caller, 'query');
  if (own.length === 0) return sink;
  return {
    write: (dataRows, rows) => {
      quotas.charge(own, 'rows', rows);
      quotas.charge(own, 'bytes', dataRows.length);
      return sink.write(dataRows, rows);
    },
  };
}

/** Counts the time of the database against the quotas of who asked; absent where there is none to count against. */
export function timeCharge(
  { means }: Pick<RequestParts, 'means'>,
  caller: Caller,
): { readonly spent?: (ms: number) => void } {
  const { quotas } = Sealed.open(means).limiter;
  const own = quotasFor(caller, 'query');
  return own.length === 0 ? {} : { spent: (ms) => quotas.charge(own, 'ms', Math.ceil(ms)) };
}
