import t from 'tap';
import { policyText } from '../../support/model-text.js';
import { startRest } from '../../surfaces/rest/fixture.js';

/** Masked columns with names as long as Postgres has them: what stands beside them for joins and samples has a name of its own. */

t.setTimeout(600_000);

/** 63 bytes, two of which differ in the last alone; and one that leaves room for less than a suffix. */
const [ONE, OTHER, SHORTER] = [`${'n'.repeat(62)}1`, `${'n'.repeat(62)}2`, 'm'.repeat(58)];
const columns = [ONE, OTHER, SHORTER];

const MANIFEST = `
version: 1
tenant: long
connectors:
  db:
    kind: pglite
    tables:
      long.left: { columns: { id: { type: int4 }, ${columns.map((c) => `${c}: { type: text, sensitivity: secret }`).join(', ')} } }
entities:
  left: { source: db.long.left, primary_key: [${ONE}], columns: [id, ${columns.join(', ')}] }
`;
const POLICY = policyText(
  'long',
  {
    'user:half': 'masked, clear',
  },
  `roles:
  masked: { grants: [{ on: left, columns: "*" }] }
  clear: { grants: [{ on: left, columns: "*", unmask: [secret], rows: "id < 2" }] }
masks: { secret: hash }
limits: { query: 1000, sample: 1000, schema: 1000, authoring: 1000, catalog: 1000 }
`,
);
const SCRIPT = `
create schema long;
create table long.left (id int4, ${columns.map((c) => `${c} text`).join(', ')});
insert into long.left values (1, 'a', 'b', 'c'), (2, 'd', 'e', 'f');
`;

const rest = await startRest({
  manifest: MANIFEST,
  policy: POLICY,
  script: SCRIPT,
  schema: 'long',
  embedded: true,
});
t.teardown(() => rest.close());

t.test('a join on such a key, and values beside it', async (t) => {
  const osql = `select a.id, b.${OTHER} as o, b.${SHORTER} as s from "left" a join "left" b on a.${ONE} = b.${ONE} order by a.id`;
  const reply = await rest.ask('user:half', { osql });
  t.equal(reply.status, 200, reply.text);
  const { rows } = reply.json() as { rows: readonly { id: number; o: string; s: string }[] };
  t.same(
    rows.map(({ id }) => id),
    [1, 2],
    'a hash equals itself',
  );
  t.match(rows[0], { o: 'b', s: 'c' });
  t.notMatch(reply.text, /"e"|"f"/);
});

t.test('a sample shows what may be read, each cell by itself', async (t) => {
  const reply = await rest.send('/osl/sample', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${await rest.test.token('user:half')}`,
    },
    body: { kind: 'table', name: 'left', limit: 5 },
  });
  t.equal(reply.status, 200, reply.text);
  const { rows } = reply.json() as { rows: readonly Record<string, unknown>[] };
  const byId = new Map(rows.map((row) => [row['id'], columns.map((c) => row[c])]));
  t.same(byId.get(1), ['a', 'b', 'c']);
  t.same(byId.get(2), ['[redacted]', '[redacted]', '[redacted]']);
});
