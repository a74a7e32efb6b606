import type { AuditEntry, AuditLog } from '../../audit/index.js';

/**
 * A log that accepts everything and stores nothing: no record, no fingerprint, no disk. It exists only here, to measure
 * the cost of the real one; the product cannot run without its log.
 */
export function noLog(real: AuditLog): AuditLog {
  let seq = 0;
  function append(entry: AuditEntry): Promise<number>;
  function append(entry: AuditEntry, done: Parameters<AuditLog['append']>[1]): void;
  function append(_entry: AuditEntry, done?: Parameters<AuditLog['append']>[1]): Promise<number> | undefined {
    seq += 1;
    if (done === undefined) return Promise.resolve(seq);
    process.nextTick(done, null, seq);
    return undefined;
  }
  return {
    append,
    form: (common) => real.form(common),
    appendForm(_form, _requestId, _statementHmac, _rows, _durationUs, done) {
      seq += 1;
      process.nextTick(done, null, seq);
    },
    fingerprint: () => '',
    fingerprintOf: () => '',
    appendProven: () => Promise.resolve(''),
    close: () => real.close(),
    whenOpen: real.whenOpen,
    stats: () => real.stats(),
  };
}
