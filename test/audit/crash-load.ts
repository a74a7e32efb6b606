import { writeSync } from 'node:fs';
import {
  type AppendDone,
  type AuditDecision,
  type AuditLogOptions,
  openAuditLog,
} from '../../audit/index.js';
import { entry, parted } from './fixture.js';

/** Appends with 16 callers until killed, and prints `seq request_id` for every record that the log acknowledged. */
export async function appendForEver(
  dir: string,
  round: string,
  { store, sync }: Pick<AuditLogOptions, 'store' | 'sync'> = {},
): Promise<void> {
  const options = { dir, segmentBytes: 64 * 1024, checkpointRecords: 100 };
  const log = await openAuditLog({ ...options, ...(store && { store }), ...(sync && { sync }) });
  const formOf = (decision: AuditDecision) => log.form({ ...parted(entry(0)).common, decision });
  const forms = { allow: formOf('allow'), deny: formOf('deny') };
  let next = 0;
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
