import t from 'tap';
import { AuditLocked, type AuditLog, openAuditLog, verifyAuditLog } from '../../../audit/index.js';
import { connectTable, recordsAfter, TableStore, tableSource } from '../../../audit/table/index.js';
import { startAuditTable } from '../../support/audit-table.js';
import { NO_NATIVE } from '../../support/native-postgres.js';
import { tempDir } from '../fixture.js';
import { killedWriter } from '../killed-writer.js';

const CHILD = new URL('./crash-child.js', import.meta.url).pathname;
const ROUNDS = Number(process.env['OSL_TABLE_CRASH_ROUNDS'] ?? 6);
/** A fresh writer now and then keeps a long run linear. */
const ROUNDS_PER_WRITER = 50;

const table = await startAuditTable();
if (table === null) {
  t.plan(0, NO_NATIVE);
  process.exit();
}
const { gatewayUrl, readerUrl } = table;
const session = await connectTable(() => readerUrl, 60_000);
t.teardown(async () => {
  await session.end();
  await table.stop();
});

/** Runs the writer, and kills it some ms after its first acknowledgement (or, every fifth time, while it opens). */
function killedRun(dir: string, round: number): Promise<Map<number, string>> {
  return killedWriter(
    [CHILD, dir, String(round), gatewayUrl],
    round % 5 === 0
      ? { from: 'start', ms: 100 + (round % 7) * 60 }
      : { from: 'acknowledgement', ms: (round % 11) * 6 },
  );
}

/** The database may take a moment to see that the killed one is gone. */
async function reopened(dir: string): Promise<AuditLog> {
  const store = (segmentBytes: number) =>
    new TableStore({ url: () => gatewayUrl, dir, segmentBytes, deadlineMs: 60_000 });
  for (;;) {
    try {
      return await openAuditLog({ dir, segmentBytes: 64 * 1024, store });
    } catch (error) {
      if (!(error instanceof AuditLocked)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

t.setTimeout(0);
t.test(
  `kill -9, ${ROUNDS} times: every acknowledged row is there and the chain holds`,
  { timeout: 0 },
  async (t) => {
    let dir = '';
    let total = 0;
    for (let round = 1; round <= ROUNDS; round += 1) {
      if (round % ROUNDS_PER_WRITER === 1) dir = tempDir();
      const acknowledged = await killedRun(dir, round);
      total += acknowledged.size;
      const log = await reopened(dir);
      const { writer } = log.stats();
      await log.close();
      let last = Math.min(...acknowledged.keys()) - 1;
      for (;;) {
        const records = acknowledged.size === 0 ? [] : await recordsAfter(session, writer, last);
        if (records.length === 0) break;
        for (const { seq, request_id } of records) {
          if (acknowledged.get(seq) === request_id) acknowledged.delete(seq);
          last = seq;
        }
      }
      if (acknowledged.size > 0) t.same([...acknowledged], [], `round ${round}: acknowledged, then lost`);
      if (round % 10 !== 0 && round !== ROUNDS) continue;
      const verdict = await verifyAuditLog(tableSource(session, writer));
      t.match(verdict, { integrity: 'intact', completeness: 'complete', openDecisions: 0, problem: null });
    }
    t.ok(total > ROUNDS * 10, `${total} records acknowledged`);
  },
);
