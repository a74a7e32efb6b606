import { writeSync } from 'node:fs';
import {
  type AppendDone,
  type AuditDecision,
  openAuditLog,
  type RecordForm,
} from '../../../policy/audit/index.js';
import { entry, parted } from './fixture.js';

/**
 * Run by crash.test.ts: appends with 16 callers until killed and prints `seq request_id` for every record that the
 * log acknowledged. With `idle` it opens the log, says so, and does nothing (lock.test.ts).
 */
const [dir = '', round = ''] = process.argv.slice(2);
const log = await openAuditLog({ dir, segmentBytes: 64 * 1024, checkpointRecords: 100 });
if (round === 'idle') {
  process.send?.('open');
  setInterval(() => undefined, 1_000);
} else {
  let next = 0;
  const forms = { allow: formOf('allow'), deny: formOf('deny') };
  const caller = (): void => {
    const request_id = `${round}-${next}`;
    next += 1;
    const decision = next % 3 === 0 ? 'allow' : 'deny';
    const acknowledged: AppendDone = (error, seq) => {
      if (error) throw error;
      // Synchronous, so that what is printed was acknowledged, and no more is lost than the print itself.
      print(`${seq} ${request_id}\n`);
      caller();
    };
    if (next % 2 === 0) log.append({ ...entry(0), request_id, decision }, acknowledged);
    else log.appendForm(forms[decision], request_id, null, null, null, acknowledged);
  };
  for (let i = 0; i < 16; i += 1) caller();
}

function formOf(decision: AuditDecision): RecordForm {
  return log.form({ ...parted(entry(0)).common, decision });
}

/** Writes all of `line` to standard output, however full the pipe is. */
function print(line: string): void {
  const bytes = Buffer.from(line);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if (!(error instanceof Error) || !('code' in error) || error.code !== 'EAGAIN') throw error;
    }
  }
}
