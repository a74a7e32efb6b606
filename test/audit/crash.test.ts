import t from 'tap';
import { openAuditLog, readRecords, verifyAuditLog } from '../../audit/index.js';
import { tempDir } from './fixture.js';
import { killedWriter } from './killed-writer.js';

const CHILD = new URL('./crash-child.js', import.meta.url).pathname;
/** More than some 500 rounds outlast the runner's limit: `OSL_CRASH_ROUNDS=1000 npx tap run --timeout=0 …`. */
const ROUNDS = Number(process.env['OSL_CRASH_ROUNDS'] ?? 8);
/** A fresh directory now and then keeps a long run linear: every opening reads the whole log. */
const ROUNDS_PER_DIRECTORY = 100;

const SYNCS = ['disk', 'kernel'] as const;

/** Runs the writer, kills it some ms after its first acknowledgement (or, every fifth time, while it opens). */
function killedRun(dir: string, round: number, sync: string): Promise<Map<number, string>> {
  return killedWriter(
    [CHILD, dir, String(round), sync],
    round % 5 === 0
      ? { from: 'start', ms: 30 + Math.random() * 120 }
      : { from: 'acknowledgement', ms: Math.random() * 15 },
  );
}

t.setTimeout(0);
for (const sync of SYNCS)
  t.test(
    `kill -9, ${ROUNDS} times, sync ${sync}: every acknowledged record is there and the chain holds`,
    { timeout: 0 },
    async (t) => {
      let dir = '';
      let total = 0;
      let torn = 0;
      for (let round = 1; round <= ROUNDS; round += 1) {
        if (round % ROUNDS_PER_DIRECTORY === 1) dir = tempDir();
        const acknowledged = await killedRun(dir, round, sync);
        total += acknowledged.size;
        if (round % 10 === 0) {
          const killed = await verifyAuditLog(dir).catch(() => null);
          if (killed && killed.records > 0 && killed.problem)
            t.same(killed.problem, null, `round ${round}, before reopening`);
        }
        const log = await openAuditLog({ dir, segmentBytes: 64 * 1024 });
        await log.close();
        const [from = 0] = acknowledged.keys();
        for await (const record of readRecords(dir, { from })) {
          if (record.action === 'audit.recover') torn += 1;
          if (acknowledged.get(record.seq) === record.request_id) acknowledged.delete(record.seq);
        }
        if (acknowledged.size > 0) t.same([...acknowledged], [], `round ${round}: acknowledged, then lost`);
        if (round % 10 === 0) {
          const verdict = await verifyAuditLog(dir);
          t.match(verdict, {
            integrity: 'intact',
            completeness: 'complete',
            openDecisions: 0,
            problem: null,
          });
        }
      }
      t.ok(total > ROUNDS * 10, `${total} records acknowledged, ${torn} torn tails cut`);
    },
  );
