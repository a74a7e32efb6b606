import type { AppendDone, AuditEntry, AuditLog, AuditUnavailable } from '../../audit/index.js';

/** `log` itself, with a note of each entry on its way in; while `failure` gives one, nothing is taken or noted. */
export function watchedLog(
  log: AuditLog,
  note: (entry: AuditEntry) => void,
  failure: () => AuditUnavailable | null = () => null,
): AuditLog {
  function append(entry: AuditEntry): Promise<number>;
  function append(entry: AuditEntry, done: AppendDone): void;
  function append(entry: AuditEntry, done?: AppendDone): Promise<number> | undefined {
    const broken = failure();
    if (broken === null) note(entry);
    if (done === undefined) return broken === null ? log.append(entry) : Promise.reject(broken);
    if (broken === null) log.append(entry, done);
    else done(broken, -1);
    return undefined;
  }
  return {
    append,
    form: (common) => log.form(common),
    appendForm(form, requestId, statementHmac, rows, durationUs, done, standby) {
      const broken = failure();
      if (broken !== null) {
        done(broken, -1);
        return;
      }
      note(form.entry(requestId, statementHmac, rows, durationUs, standby));
      log.appendForm(form, requestId, statementHmac, rows, durationUs, done, standby);
    },
    fingerprint: (text) => log.fingerprint(text),
    fingerprintOf: (bytes, start, end) => log.fingerprintOf(bytes, start, end),
    appendProven(entry) {
      const broken = failure();
      if (broken !== null) return Promise.reject(broken);
      note(entry);
      return log.appendProven(entry);
    },
    close: () => log.close(),
    whenOpen: log.whenOpen,
    stats: () => log.stats(),
  };
}
