import t from 'tap';
import { type Forms, startForms } from '../../language/forms/fixture.js';
import { grantsText, manifestText, policyText } from '../../support/model-text.js';

/**
 * Two databases whose visible rows are the same, and whose hidden rows differ in number and place: what a caller sees
 * of the order is the engine's, unless the policy asks for an order by key.
 */

t.setTimeout(600_000);

const MANIFEST = manifestText(
  'shop',
  {
    'o.item': 'id int4, kind text not null, owner int4, shown bool',
    'o.owner': 'id int4, name text not null, shown bool',
  },
  `entities:
  item:
    source: db.o.item
    primary_key: [id]
    entity_key_columns: [id, owner]
    columns: [id, kind, owner, shown]
  owner: { source: db.o.owner, primary_key: [id], columns: [id, name, shown] }
features: { joins: any }
`,
);

const policy = (order: string): string =>
  policyText(
    'shop',
    {
      'user:ann': 'reader',
      'user:keyless': 'keyless',
    },
    `roles:
  reader:
    grants:
${grantsText(['item', 'owner'], 'rows: shown')}
  keyless:
    grants:
      - { on: item, columns: [kind, owner], rows: shown }
masks: {}
${order}
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
  );

const TABLES = `
CREATE SCHEMA o;
CREATE TABLE o.item (id int4 PRIMARY KEY, kind text NOT NULL, owner int4, shown bool);
CREATE TABLE o.owner (id int4 PRIMARY KEY, name text NOT NULL, shown bool);
CREATE INDEX ON o.item (owner);
`;
const VISIBLE_ITEMS = "SELECT n, 'kind ' || n % 7, n % 40, true FROM generate_series(1, 300) n";
const VISIBLE_OWNERS = "SELECT n, 'owner ' || n % 9, true FROM generate_series(1, 40) n";

/** Few hidden rows, which came after the visible ones. */
const FEW = `${TABLES}
INSERT INTO o.item ${VISIBLE_ITEMS}; INSERT INTO o.owner ${VISIBLE_OWNERS};
INSERT INTO o.item SELECT n, 'x', n, false FROM generate_series(1000, 1010) n;
ANALYZE o.item; ANALYZE o.owner;`;

/** Many, among which the visible ones came last first. */
const MANY = `${TABLES}
INSERT INTO o.item SELECT n, 'y', n % 40, false FROM generate_series(1000, 30000) n;
INSERT INTO o.owner SELECT n, 'z', false FROM generate_series(1000, 9000) n;
INSERT INTO o.item ${VISIBLE_ITEMS} ORDER BY n DESC; INSERT INTO o.owner ${VISIBLE_OWNERS} ORDER BY n DESC;
ANALYZE o.item; ANALYZE o.owner;`;

const TEXTS: readonly string[] = [
  'select * from item',
  'select kind from item',
  "select id from item where kind = 'kind 3'",
  'select id from item where owner in (3, 4)',
  'select i.id, o.name from item i join owner o on i.owner = o.id',
  'select o.name from owner o left join item i on i.owner = o.id',
  'select kind, count(*) from item group by kind',
  'select distinct owner from item',
  'select distinct on (kind) kind, id from item',
  'select kind from item union all select name from owner',
  'select owner from item intersect select id from owner',
  'select k from (select kind as k, id from item) d',
  'with t as (select owner as x from item) select x from t',
  'select id from item order by kind',
  'select id, (select max(o.name) from owner o where o.id = item.owner) as m from item',
  'select id from item where owner in (select id from owner)',
  'select kind, owner, count(*) from item group by rollup (kind, owner)',
  'select i.kind, g.n from item i, generate_series(1, 2) g(n)',
  'select kind from item where owner = 3 union all select * from unnest(array[1, 2]::text[])',
  'select json_agg(kind), array_agg(owner) from item',
  'with recursive t(id) as (select 1 union select i.id from t join item i on i.owner = t.id where i.id < 90) select id from t',
  'select distinct k from (select kind as k from item order by owner fetch first 3 rows with ties) d',
];

async function answersOf(forms: Forms, who: string, texts: readonly string[]): Promise<readonly string[]> {
  const rows: string[] = [];
  for (const text of texts) {
    const { status, rows: found, message } = await forms.ask(who, text);
    if (status !== 200) throw new Error(`${text}: ${message}`);
    const wire = await forms.wire(who);
    const { outcome } = await wire.extended(text);
    rows.push(JSON.stringify([found, outcome.kind === 'rows' ? outcome.rows : outcome]));
  }
  return rows;
}

async function pair(order: string): Promise<readonly [Forms, Forms]> {
  const open = (script: string): Promise<Forms> =>
    startForms({ manifest: MANIFEST, policy: policy(order), script, schema: 'o' });
  const both = [await open(FEW), await open(MANY)] as const;
  t.teardown(async () => {
    for (const forms of both) await forms.close();
  });
  return both;
}

t.test('where the policy asks for it, hidden rows show in no order', async (t) => {
  const [few, many] = await pair('order: { item: by_key, owner: by_key }');
  const [one, other] = [await answersOf(few, 'user:ann', TEXTS), await answersOf(many, 'user:ann', TEXTS)];
  for (const [i, text] of TEXTS.entries()) t.equal(other[i], one[i], text);
  const ties = 'select id from item order by kind fetch first 1 row with ties';
  t.match(
    await few.ask('user:ann', ties),
    { status: 400, code: 'E0511' },
    'among equals nothing could order',
  );
  const keyless = [
    'select kind from item',
    'select * from item',
    'select kind, owner from item where owner < 9',
  ];
  t.same(await answersOf(many, 'user:keyless', keyless), await answersOf(few, 'user:keyless', keyless));
});

t.test('where it does not, they do: the two are no twins in this', async (t) => {
  const [few, many] = await pair('');
  const [one, other] = [await answersOf(few, 'user:ann', TEXTS), await answersOf(many, 'user:ann', TEXTS)];
  const differing = TEXTS.filter((_, i) => other[i] !== one[i]);
  t.ok(differing.length > 4, `${differing.length} of ${TEXTS.length} tell the two apart`);
});
