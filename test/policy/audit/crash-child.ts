import { writeSync } from 'node:fs';
import { openAuditLog } from '../../../policy/audit/index.js';
import { entry } from './fixture.js';

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
  const caller = (): void => {
    const request_id = `${round}-${next}`;
    next += 1;
    log.append({ ...entry(0), request_id, decision: next % 3 === 0 ? 'allow' : 'deny' }, (error, seq) => {
      if (error) throw error;
      // Synchronous, so that what is printed was acknowledged, and no more is lost than the print itself.
      print(`${seq} ${request_id}\n`);
      caller();
    });
  };
  for (let i = 0; i < 16; i += 1) caller();
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
