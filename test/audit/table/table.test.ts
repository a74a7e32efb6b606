import t from 'tap';
import {
  type AuditLog,
  type AuditLogOptions,
  type AuditRecord,
  checkProof,
  openAuditLog,
  prove,
  verifyAuditLog,
} from '../../../audit/index.js';
import {
  connectTable,
  searchTable,
  type TableSession,
  TableStore,
  tableSource,
  tailTable,
  writersIn,
} from '../../../audit/table/index.js';
import { startAuditTable } from '../../support/audit-table.js';
import { NO_NATIVE } from '../../support/native-postgres.js';
import { eventually } from '../../surfaces/rest/fixture.js';
import { entry, in2020, tempDir, WAYS } from '../fixture.js';

const table = await startAuditTable();
if (table === null) {
  t.plan(0, NO_NATIVE);
  process.exit();
}
const { gatewayUrl, readerUrl, maintenanceUrl } = table;
const session: TableSession = await connectTable(() => readerUrl, 60_000);
t.teardown(async () => {
  await session.end();
  await table.stop();
});

function opened(dir: string, options: Partial<AuditLogOptions> = {}): Promise<AuditLog> {
  const deadlineMs = options.deadlineMs ?? 5_000;
  const store = (segmentBytes: number) =>
    new TableStore({ url: () => gatewayUrl, dir, segmentBytes, deadlineMs });
  return openAuditLog({ dir, tenant: 'acme', segmentBytes: 16 * 1024, reopenMs: 20, ...options, store });
}

async function filled(
  count: number,
  options: Partial<AuditLogOptions> = {},
): Promise<{ dir: string; writer: string }> {
  const dir = tempDir();
  const log = await opened(dir, options);
  for (let n = 0; n < count; n += 4) {
    await Promise.all([0, 1, 2, 3].map((i) => (i % 2 === 0 ? WAYS.entry : WAYS.form)(log, entry(n + i))));
  }
  const { writer } = log.stats();
  await log.close();
  return { dir, writer };
}

async function recordsOf(writer: string): Promise<readonly AuditRecord[]> {
  const records: AuditRecord[] = [];
  for await (const record of searchTable(session, {})) if (record.writer === writer) records.push(record);
  return records.toSorted((a, b) => a.seq - b.seq);
}

t.test('rows are checked by the verifier of files, proved and found', async (t) => {
  const { dir, writer } = await filled(400, { checkpointRecords: 100 });
  const source = tableSource(session, writer);
  t.match(await verifyAuditLog(source), {
    integrity: 'intact',
    completeness: 'complete',
    records: 402,
    unanchored: 0,
    openDecisions: 0,
    problem: null,
  });
  t.ok((await source.segments()).length > 3, 'several segments');
  const again = await opened(dir);
  await again.close();
  t.match(await verifyAuditLog(source), { records: 404, recovered: [], problem: null });
  const proofs = await prove(source, 'req-7');
  t.equal(proofs.length, 2);
  const key = (await source.verifierKey()) ?? '';
  for (const { text } of proofs)
    t.match(checkProof(text, key), { ok: true, record: { request_id: 'req-7' } });
  t.same(proofs, await prove(source, 'req-7', { everything: true }), 'as by reading all of it');
  const ofRequest = [];
  for await (const record of searchTable(session, { requestId: 'req-7', subject: 'svc-bi' }))
    if (record.writer === writer) ofRequest.push(record.seq);
  t.same(
    ofRequest,
    proofs.map(({ seq }) => seq),
  );
  const touched = [];
  for await (const record of searchTable(session, { object: 'order', subject: 'svc-bi' }))
    touched.push(record.seq);
  t.equal(touched.length, 400);
  t.same(
    (await tailTable(session, 1, writer)).map(({ action }) => action),
    ['audit.close'],
  );
  t.ok((await writersIn(session)).includes(writer));
});

t.test('the gateway may add and read, and nothing else; who maintains may not even read', async (t) => {
  await filled(4);
  const refused = async (url: string, sql: string): Promise<void> => {
    await t.rejects(table.as(url, sql), { code: '42501' }, sql);
  };
  for (const name of ['record', 'segment', 'checkpoint', 'writer']) {
    for (const verb of [
      `DELETE FROM osl_audit.${name}`,
      `TRUNCATE osl_audit.${name}`,
      `DROP TABLE osl_audit.${name}`,
    ])
      for (const url of [gatewayUrl, readerUrl, maintenanceUrl]) await refused(url, verb);
  }
  await refused(gatewayUrl, `UPDATE osl_audit.record SET record = '{}'`);
  await refused(gatewayUrl, `UPDATE osl_audit.checkpoint SET size = 0`);
  await refused(gatewayUrl, 'SELECT osl_audit.prune()');
  await refused(gatewayUrl, 'CREATE TABLE osl_audit.mine ()');
  await refused(readerUrl, `INSERT INTO osl_audit.writer (writer, vkey) VALUES ('x', 'y')`);
  await refused(maintenanceUrl, 'SELECT count(*) FROM osl_audit.record');
});

t.test('a second writer of the same id is refused, by the lock and by the rows', async (t) => {
  const { dir, writer } = await filled(8);
  const log = await opened(dir);
  const other = tempDir();
  const { cpSync, rmSync } = await import('node:fs');
  cpSync(dir, other, { recursive: true, filter: (path) => !path.includes('lock.') });
  await t.rejects(opened(other), { name: 'AuditLocked', message: /in use by another gateway/ });
  rmSync(other, { recursive: true });
  const [last] = await table.owner(
    'SELECT * FROM osl_audit.record WHERE writer = $1 ORDER BY seq DESC LIMIT 1',
    [writer],
  );
  const forked = (seq: unknown, previous: unknown): Promise<unknown> =>
    table.as(
      gatewayUrl,
      `INSERT INTO osl_audit.record (day, writer, segment, seq, first_of_group, previous, chain, record)
       SELECT day, writer, segment, $3, $3, $4, sha256('x'), record FROM osl_audit.record WHERE writer = $1 AND seq = $2`,
      [writer, last?.['seq'], seq, previous],
    );
  await t.rejects(forked(last?.['seq'], Buffer.alloc(32)), { code: '23505' }, 'two records of one seq');
  await t.rejects(forked(9_999, last?.['previous']), { code: '23505' }, 'two records after one');
  await log.close();
  t.match(await verifyAuditLog(tableSource(session, writer)), { problem: null });
});

t.test('a row that stands in no segment is found, wherever it was put', async (t) => {
  const { writer } = await filled(8);
  const source = tableSource(session, writer);
  // Unique keys go by the day too, so the role that may only add can add a second record of one seq on another day.
  const forge = (day: string, seq: number) =>
    table.as(
      gatewayUrl,
      `INSERT INTO osl_audit.record (day, writer, segment, seq, first_of_group, previous, chain, record)
       SELECT ${day}, writer, segment, $3, 0, sha256('x'), sha256('x'), replace(record, 'analyst-eu', 'mallory')
         FROM osl_audit.record WHERE writer = $1 AND seq = $2`,
      [writer, 2, seq],
    );
  await forge('day + 1', 2);
  const found = [];
  for await (const record of searchTable(session, { subject: 'mallory' })) found.push(record.writer);
  t.same(found, [writer], 'a search finds it');
  t.match(await verifyAuditLog(source), {
    integrity: 'damaged',
    problem: { kind: 'sequence', seq: 2, message: /in no segment/ },
  });
  await table.owner("DELETE FROM osl_audit.record WHERE record LIKE '%mallory%'");
  t.match(await verifyAuditLog(source), { integrity: 'intact', problem: null });
});

t.test('a database that goes away fails the log, and the log goes on with a record of the gap', async (t) => {
  const dir = tempDir();
  const gaps: unknown[] = [];
  const observer = {
    failed: () => undefined,
    reopened: (gap: object) => gaps.push(gap),
    lost: () => undefined,
  };
  const log = await opened(dir, { observer });
  const { writer } = log.stats();
  await log.append(entry(0));
  await cutConnections();
  await t.rejects(log.append(entry(2)), { name: 'AuditUnavailable', reason: 'disk' });
  await eventually(() => log.stats().failure === null);
  await log.append(entry(4));
  await log.append(entry(5));
  await log.append(entry(1));
  await log.close();
  t.equal(gaps.length, 1);
  t.match(await verifyAuditLog(tableSource(session, writer)), { problem: null, openDecisions: 0 });
  const kinds = (await recordsOf(writer)).map(({ action, request_id }) =>
    action === 'query' ? request_id : action,
  );
  t.same(kinds, ['audit.open', 'req-0', 'audit.gap', 'req-2', 'req-2', 'req-0', 'audit.close']);
});

t.test('what was open before a gap has an outcome after a stop, from however far back', async (t) => {
  const dir = tempDir();
  const log = await opened(dir);
  const { writer } = log.stats();
  const fill = async (from: number): Promise<void> => {
    for (let n = from; n < from + 200; n += 1) await log.append(entry(n));
  };
  await log.append({ ...entry(0), request_id: 'never closed' });
  await fill(2);
  await cutConnections();
  await t.rejects(log.append({ ...entry(1), request_id: 'req-none', kind: 'event' }));
  await eventually(() => log.stats().failure === null);
  await fill(202);
  await log.close();
  await (await opened(dir)).close();
  const unknown = (await recordsOf(writer)).filter(({ outcome }) => outcome === 'unknown');
  t.same(
    unknown.map(({ request_id }) => request_id),
    ['never closed'],
  );
  t.match(await verifyAuditLog(tableSource(session, writer)), { problem: null, openDecisions: 0 });
});

t.test(
  'a database that is silent has failed at the deadline, and nothing it does later counts',
  async (t) => {
    const dir = tempDir();
    const log = await opened(dir, { deadlineMs: 1_500 });
    const { writer } = log.stats();
    await log.append(entry(0));
    await table.owner(
      'BEGIN; LOCK TABLE osl_audit.record IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4); COMMIT',
    );
    // The lock stood for four seconds; whoever asked meanwhile was refused.
    const holding = table.owner(
      'BEGIN; LOCK TABLE osl_audit.record IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4); COMMIT',
    );
    await eventually(async () => {
      const [row] = await table.owner(
        `SELECT count(*) AS held FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'osl_audit.record'::regclass`,
      );
      return row?.['held'] === '1';
    });
    await t.rejects(log.append(entry(2)), { name: 'AuditUnavailable' });
    await holding;
    await eventually(() => log.stats().failure === null);
    await log.append(entry(4));
    await log.close();
    t.match(await verifyAuditLog(tableSource(session, writer)), { integrity: 'intact', problem: null });
  },
);

t.test('what was open at a stop out of order has an outcome, from however far back', async (t) => {
  const dir = tempDir();
  const log = await opened(dir, { afterFailure: 'stay' });
  const { writer } = log.stats();
  await log.append({ ...entry(0), request_id: 'never "closed" \u00e9\n' });
  for (let n = 2; n < 202; n += 1) await log.append(entry(n));
  while (log.stats().anchored < log.stats().records) await new Promise((resolve) => setTimeout(resolve, 20));
  await cutConnections();
  await t.rejects(log.append(entry(4)));
  await t.rejects(log.close());
  const next = await opened(dir);
  await next.close();
  const unknown = (await recordsOf(writer)).filter(({ outcome }) => outcome === 'unknown');
  t.same(
    unknown.map(({ request_id }) => request_id),
    ['never "closed" \u00e9\n'],
  );
  t.match(await verifyAuditLog(tableSource(session, writer)), { problem: null, openDecisions: 0 });
});

/** As a restart of the server would, of this database's gateways alone. */
async function cutConnections(): Promise<void> {
  await table?.owner(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename LIKE 'osl_gw_%'`,
  );
}

t.test('what is kept no more is signed by the gateway and dropped by another role, not before', async (t) => {
  const dir = tempDir();
  await in2020(async () => {
    const log = await opened(dir, { checkpointRecords: 40 });
    for (let n = 0; n < 200; n += 1) await log.append(entry(n));
    await log.close();
  });
  const log = await opened(dir, { checkpointRecords: 40 });
  const { writer } = log.stats();
  for (let n = 0; n < 60; n += 1) await log.append({ ...entry(n), request_id: `new-${n >> 1}` });
  await log.close();
  // As it would be had these segments been written on a day that is past.
  const old = await table.owner(
    `UPDATE osl_audit.segment SET day = '2020-01-01' WHERE writer = $1 AND segment <= 3 RETURNING segment`,
    [writer],
  );
  t.equal(old.length, 3);
  await table.owner(
    `CREATE TABLE osl_audit.record_20200101 PARTITION OF osl_audit.record FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')`,
  );
  await table.owner(`UPDATE osl_audit.record SET day = '2020-01-01' WHERE writer = $1 AND segment <= 3`, [
    writer,
  ]);
  const pruned = async () =>
    (await table.as(maintenanceUrl, 'SELECT osl_audit.prune() AS name')).map(({ name }) => name);
  t.same(await pruned(), [], 'nothing that was not signed for');
  const source = tableSource(session, writer);
  t.match(await verifyAuditLog(source), { integrity: 'intact', kept: null, problem: null });
  const next = await opened(dir, { retention: { ms: 86_400_000, archive: null } });
  await eventually(async () => (await source.retained()).length > 0);
  await next.close();
  await table.as(
    gatewayUrl,
    `INSERT INTO osl_audit.record (day, writer, segment, seq, first_of_group, previous, chain, record)
     SELECT day, writer, segment, 9999, 0, sha256('x'), sha256('x'), record
       FROM osl_audit.record WHERE writer = $1 AND seq = 2`,
    [writer],
  );
  const late = { integrity: 'damaged', problem: { kind: 'sequence', seq: 9_999 } };
  t.match(await verifyAuditLog(source), late, 'added to what was signed away, and is still there');
  t.same(await pruned(), ['record_20200101']);
  const verdict = await verifyAuditLog(source);
  t.match(verdict, { integrity: 'intact', completeness: 'complete', problem: null });
  t.ok((verdict.kept?.from ?? 0) > 50, `from record ${verdict.kept?.from}`);
  const key = (await source.verifierKey()) ?? '';
  const proofs = await prove(source, 'new-20');
  t.equal(proofs.length, 2);
  for (const { text } of proofs) t.match(checkProof(text, key), { ok: true });
  await (await opened(dir)).close();
  t.match(await verifyAuditLog(source), { integrity: 'intact', completeness: 'complete', problem: null });
});
