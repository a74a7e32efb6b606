import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test, test } from 'tap';
import { generatedSql, sql, sqlName } from '../../../src/base/sql.js';
import { type OpenedEngine, openEngine } from '../../../src/engine/index.js';
import { check } from '../../../src/model/authoring/index.js';
import {
  type AdoptionCandidate,
  candidateFor,
  candidatesIn,
  candidatesInAll,
  draftOf,
  labelsNote,
  readUpstream,
} from '../../../src/model/discovery/index.js';
import { discoveredIn } from '../../../src/model/graph/index.js';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { startNativePostgres } from '../../support/native-postgres.js';
import { processorMs } from '../../support/processor.js';
import { LIBRARY, LIBRARY_MANIFEST, LONG_NAME, libraryManifest, ODD } from './databases.js';

t.setTimeout(600_000);

/** Five hundred tables are read and judged in so much, on a machine that has other things to do. */
const BOUND_MS = 10_000;

const manifest = await libraryManifest();
const model = { manifest, snapshot: null };

test('what an embedded database holds', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'osl-discovery-'));
  const engine = await openEngine({ kind: 'pglite', dataDir: join(dir, 'pg') });
  t.teardown(async () => {
    await engine.close();
    rmSync(dir, { recursive: true, force: true });
  });
  await discovers(t, engine);
  await t.test('constraints of Postgres 18 that do not hold for every row, or are no equality', async (t) => {
    await engine.system.script(sql`
      create schema v18;
      create table v18.stay (room int4range, at daterange, primary key (room, at without overlaps), note text);
      alter table v18.stay add constraint noted not null note not valid;
      create table v18.meal (room int4range not null, at daterange,
        foreign key (room, period at) references v18.stay (room, period at))`);
    const [meal, stay] = (await readUpstream(engine.system, ['v18'])).relations;
    t.strictSame(meal?.foreignKeys, []);
    t.strictSame(
      [...(meal?.columns ?? []), ...(stay?.columns ?? [])].map(({ name, nullable }) => [name, nullable]),
      [
        ['room', false],
        ['at', true],
        ['room', false],
        ['at', false],
        ['note', true],
      ],
    );
  });
});

const native = await startNativePostgres();
const skip = native === null && 'no native Postgres is installed here';

test('what a native database holds', { skip }, async (t) => {
  if (native === null) throw new Error('it is skipped then');
  const engine = await openEngine({
    kind: 'postgres',
    url: native.readerUrl,
    systemUrl: native.url,
    poolSize: 2,
  });
  t.teardown(async () => {
    await engine.close();
    await native.stop();
  });
  await discovers(t, engine);
});

async function discovers(t: Test, engine: OpenedEngine): Promise<void> {
  const { system } = engine;
  await t.test('an empty database has nothing', async (t) => {
    for (const schema of ['osl_content', 'osl_rollups', 'osl_control', 'osl_row_security']) {
      await system.script(sql`create schema ${sqlName(schema)}`);
      await system.script(sql`create table ${sqlName(schema)}.own (id int primary key)`);
    }
    t.strictSame(await readUpstream(system), { relations: [], truncated: false });
  });

  await system.script(generatedSql(LIBRARY));
  const upstream = await readUpstream(system);
  const candidates = new Map(candidatesIn(upstream, 'db', manifest).map((c) => [c.id, c]));
  const of = (id: string): AdoptionCandidate => {
    const found = candidates.get(id);
    if (found === undefined) throw new Error(`${id} is not a candidate`);
    return found;
  };

  await t.test('in the domain map a candidate is a node, and a bridge an edge of it', async (t) => {
    const { nodes, edges, bridges } = discoveredIn([...candidates.values()], manifest);
    t.match(
      nodes.find((n) => n.name === 'loan'),
      {
        id: 'entity:loan',
        kind: 'candidate',
        state: 'discovered',
        description: 'Who has which book',
        attributes: [
          { name: 'reader_id', role: 'pk', type: 'int8' },
          { name: 'isbn', role: 'pk' },
          { name: 'due', role: 'column', description: 'Back by then' },
          {},
        ],
        meta: {
          pk: 'reader_id,isbn',
          source: 'db.lib.loan',
          proposal: 'association',
          confidence: of('db.lib.loan').confidence,
        },
      },
    );
    t.same([...bridges].sort(), ['favourite', 'friend', 'holding', 'wish']);
    for (const name of bridges)
      t.notOk(
        nodes.some((n) => n.name === name),
        `${name} is no node`,
      );
    t.match(
      edges.find((e) => e.label === 'friend'),
      {
        id: 'friend~person:person',
        kind: 'nn',
        declared: false,
        source_attr: 'number',
        target_attr: 'number',
      },
    );
    const wish = edges.filter((e) => e.label === 'wish').map((e) => e.id);
    t.same(wish, ['wish~person:book'], 'a foreign key outside the key is none of its ends');
    const loan = edges
      .filter((e) => e.source === 'entity:loan')
      .map((e) => `${e.kind} ${e.source_attr} ${e.target}`);
    t.same(loan.sort(), ['n1 isbn entity:book', 'n1 reader_id entity:person']);
    const known = new Set([
      ...nodes.map((n) => n.id),
      ...[...manifest.entities.keys()].map((n) => `entity:${n}`),
    ]);
    t.ok(
      edges.every((e) => known.has(e.source) && known.has(e.target)),
      'every end is in the map',
    );
    t.equal(new Set(edges.map((e) => e.id)).size, edges.length);
    const again = discoveredIn(candidatesIn(await readUpstream(system), 'db', manifest), manifest);
    t.equal(JSON.stringify(again), JSON.stringify({ nodes, edges, bridges }), 'the same bytes');
  });

  await t.test('tables of one name in two databases are two nodes', async (t) => {
    const all = candidatesInAll(
      [
        ['db', upstream],
        ['other', upstream],
      ],
      manifest,
    );
    const ids = discoveredIn(all, manifest).nodes.map((n) => n.id);
    t.equal(new Set(ids).size, ids.length);
    t.strictSame(all.slice(0, candidates.size), [...candidates.values()], 'the first keeps its names');
  });

  await t.test('what is adopted, temporary or a partition is not a candidate', async (t) => {
    t.strictSame(
      [...candidates.keys()],
      [
        'db.Odd names.Order "items"',
        'db.Odd names.__proto__',
        ...['code', 'event', 'favourite', 'friend', 'holding', 'lent', 'loan', 'log', 'visit', 'wish'].map(
          (name) => `db.lib.${name}`,
        ),
      ],
    );
  });

  await t.test('two foreign keys that are the key make a bridge, whatever their columns', async (t) => {
    const holding = of('db.lib.holding');
    t.match(holding, { proposal: 'bridge', key: ['isbn', 'country', 'city'], confidence: 0.95 });
    t.match(draftOf(holding, manifest).fragment.bridges, {
      holding: {
        left: { entity: 'book', columns: ['isbn'] },
        right: { entity: 'branch', columns: ['country', 'city'] },
      },
    });
    const [first, ...others] = holding.foreign_keys;
    const twice = { ...holding, foreign_keys: [first ?? [], first ?? [], others].flat() };
    t.strictSame(
      draftOf(twice, manifest),
      draftOf(holding, manifest),
      'a foreign key that is declared twice',
    );
    t.match(of('db.lib.friend'), {
      proposal: 'bridge',
      foreign_keys: [{ columns: ['a'] }, { columns: ['b'] }],
    });
    const favourite = of('db.lib.favourite');
    t.match(
      favourite,
      { proposal: 'bridge', key: ['reader_id', 'isbn'], confidence: 0.85 },
      'by its unique key',
    );
    t.match(favourite.evidence, [
      '2 foreign keys make up its key: reader_id and isbn',
      'all else in it the database fills in: id, noted',
    ]);
  });

  await t.test(
    'a bridge holds primary keys: with another unique key at an end, an entity is drafted',
    async (t) => {
      const wish = of('db.lib.wish');
      t.ok(draftOf(wish, manifest).fragment.bridges?.['wish']);
      const foreign_keys = wish.foreign_keys.map((link) => {
        const { references } = link;
        return references.entity === 'person'
          ? { ...link, references: { ...references, columns: ['email'] } }
          : link;
      });
      const { fragment } = draftOf({ ...wish, foreign_keys }, manifest);
      t.equal(fragment.bridges, undefined);
      t.match(fragment.entities, { wish: { primary_key: ['reader_id', 'isbn'] } });
      t.strictSame(Object.keys(fragment.relationships ?? {}), ['wish_book', 'wish_isbn_fkey_wish_book']);
    },
  );

  await t.test('with a payload, or more than two ends, it is an association', async (t) => {
    const loan = of('db.lib.loan');
    t.match(loan, { proposal: 'association', comment: 'Who has which book' });
    t.ok(loan.evidence.includes('it says more of each link: due, fine'));
    t.match(of('db.lib.visit'), { proposal: 'association', key: ['reader_id', 'country', 'city', 'isbn'] });
  });

  await t.test('confidence rests on the keys that are declared', async (t) => {
    t.match(of('db.lib.code'), { key: ['code'], confidence: 0.7, row_estimate: 1000 });
    t.match(of('db.lib.log'), { key: [], unique_keys: [], confidence: 0.25, row_estimate: null });
    t.match(of('db.lib.lent'), { kind: 'view', key: [], confidence: 0.15, row_estimate: null });
    t.match(of('db.lib.event'), { kind: 'table', key: ['id', 'at'], confidence: 0.85 });
  });

  await t.test('types are those of the model, below domains, or none', async (t) => {
    const book = upstream.relations.find((r) => r.name === 'book');
    if (book === undefined) throw new Error('no book');
    const types = candidateFor(book, upstream, 'db', manifest).columns.map((c) => [
      c.upstream_type,
      c.type,
      c.stored,
    ]);
    t.strictSame(types, [
      ['lib.short_isbn', 'text', null],
      ['text', 'text', null],
      ['lib.state', 'text', 'lib.state'],
      ['character varying(10)[]', 'text[]', null],
    ]);
  });

  await t.test('drafts compile, or say what a person must add; no label is made up or lost', async (t) => {
    for (const candidate of candidates.values()) {
      const { fragment, notes } = draftOf(candidate, manifest);
      const text = JSON.stringify(fragment);
      const checked = check({ kind: 'fragment', text, placed: true }, model);
      const codes = checked.ok ? [] : checked.findings.map((f) => f.code);
      t.strictSame([candidate.id, codes], [candidate.id, []]);
      t.equal(notes.includes(labelsNote([])), candidate.id !== 'db.lib.loan', candidate.id);
      t.ok(candidate.id !== 'db.lib.loan' || /^sensitivity labels are those/.test(String(notes[0])));
      const labels = [...text.matchAll(/"(?:pii|sensitivity)":/g)].length;
      t.equal(labels, candidate.id === 'db.lib.loan' ? 1 : 0, candidate.id);
      if (candidate.id !== 'db.lib.loan' || !checked.ok) continue;
      const { entities, relationships, connectors } = checked.manifest;
      t.strictSame(entities.get('loan')?.composition, 'structured');
      t.match(relationships.get('loan_book'), {
        from: { entity: 'loan', columns: ['isbn'] },
        kind: 'many_to_one',
      });
      t.match(relationships.get('loan_person'), { to: { entity: 'person', columns: ['number'] } });
      t.equal(connectors.get('db')?.tables.get('lib.loan')?.columns.get('due')?.sensitivity, 'person');
    }
  });

  await t.test('one that refers to itself', async (t) => {
    const reader = upstream.relations.find((r) => r.name === 'reader');
    if (reader === undefined) throw new Error('no reader');
    const { fragment } = draftOf(candidateFor(reader, upstream, 'db', manifest), manifest);
    t.match(fragment.relationships, {
      reader_reader: { from: 'reader.recruited_by', to: 'reader.id', kind: 'many_to_one' },
    });
    const checked = check({ kind: 'fragment', text: JSON.stringify(fragment), placed: true }, model);
    t.ok(checked.ok, 'beside the entity that the table has already');
    t.match(fragment.connectors?.['db']?.tables?.['lib.reader']?.columns['email'], { pii: true });
  });

  await t.test('odd names, odd types, and relations that are no plain tables', async (t) => {
    await system.script(generatedSql(ODD));
    const odd = await readUpstream(system, ['odd', 'UPPER case']);
    const found = new Map(candidatesIn(odd, 'db', manifest).map((c) => [`${c.schema}.${c.table}`, c]));
    const of = (table: string): AdoptionCandidate => {
      const one = found.get(table);
      if (one === undefined) throw new Error(`${table} is not a candidate`);
      return one;
    };
    t.notOk(found.has('odd.measured_2020'), 'a partition is part of its parent');
    t.match(of('odd.measured'), { kind: 'table', key: ['id', 'at'] });
    t.match(of('odd.parent'), { key: [], unique_keys: [], confidence: 0.25 });
    t.ok(of('odd.parent').evidence.includes('tables inherit from it, and their rows are outside its keys'));
    t.match(of('odd.child'), { kind: 'table', key: [] });
    t.match(of('odd.parents'), { kind: 'view', key: [] });
    t.match(of('odd.counted'), { kind: 'materialized_view', key: [] }, 'a unique index there may hold nulls');
    t.match(of('odd.far'), { kind: 'foreign_table', key: [], row_estimate: null });
    t.strictSame(
      of('odd.made').columns.map((c) => c.name),
      ['id', 'a', 'twice'],
      'dropped columns are gone',
    );
    t.strictSame(of('odd.made').unique_keys, []);
    t.strictSame(of('odd.no_columns').columns, []);
    t.strictSame(Object.fromEntries(of('odd.typed').columns.map((c) => [c.name, c.stored ?? c.type])), TYPES);
    t.match(Object.fromEntries(of('odd.typed').columns.map((c) => [c.name, c.declared])), {
      paid: 'numeric(10,2)',
      v: 'varchar(3)[]',
      y: 'bytea',
      r: 'int4range',
      b: 'bit(3)',
    });
    t.strictSame(
      of('odd.partly').columns.map((c) => [c.name, c.readable]),
      [
        ['id', true],
        ['open', true],
        ['closed', false],
      ],
    );
    t.ok(
      of('odd.secret').columns.every((c) => !c.readable),
      'what the governed role may not read is told',
    );
    t.match(of('odd.line').foreign_keys, [
      { columns: ['of_doc', 'of_no'], references: { columns: ['doc', 'no'] } },
    ]);
    t.equal(of(`UPPER case.${LONG_NAME}`).key[0], LONG_NAME);
    for (const [table, candidate] of found) {
      const { fragment, notes } = draftOf(candidate, manifest);
      const checked = check({ kind: 'fragment', text: JSON.stringify(fragment), placed: true }, model);
      const codes = checked.ok ? [] : checked.findings.map((f) => f.code);
      t.strictSame([table, codes], [table, []]);
      t.equal(
        notes.some((n) => /^no key is declared/.test(n)),
        candidate.key.length === 0,
        table,
      );
    }
    t.match(Object.keys(draftOf(of('odd.Select'), manifest).fragment.entities?.['Select']?.columns ?? {}), [
      ...['id', 'from', 'User', 'column_user', 'column_evidence', 'a_b'],
    ]);
    t.match(draftOf(of('odd.remark'), manifest).fragment.entities?.['remark'], {
      entity_key_columns: ['id', 'line_no', 'line_doc'],
    });
  });

  await t.test("Postgres' own catalogs, which nobody may publish", async (t) => {
    const own = await readUpstream(system, ['pg_catalog', 'information_schema']);
    const found = candidatesIn(own, 'db', manifest);
    t.ok(found.length > 150, `${found.length} relations`);
    t.equal(new Set(found.map((c) => c.name.toLowerCase())).size, found.length, 'each has a name of its own');
    const klass = found.find((c) => c.id === 'db.pg_catalog.pg_class');
    t.match(klass, { key: ['oid'], kind: 'table', proposal: 'entity' });
    t.equal(klass?.columns.find((c) => c.name === 'relname')?.type, 'text', 'of type `name`');
    for (const candidate of found) {
      const text = JSON.stringify(draftOf(candidate, manifest).fragment);
      const checked = check({ kind: 'fragment', text, placed: true }, model);
      const codes = checked.ok ? [] : checked.findings.map((f) => f.code);
      t.ok(codes.includes('M2010'), candidate.id);
    }
  });

  await t.test('five hundred tables, in bounded time', async (t) => {
    await system.script(
      sql`CREATE SCHEMA wide; DO $$ BEGIN FOR i IN 1..500 LOOP
         EXECUTE format('CREATE TABLE wide.t%s (id int PRIMARY KEY, up int REFERENCES wide.t%s, a text, b numeric, c date)',
                        i, greatest(i - 1, 1));
       END LOOP; END $$`,
    );
    const started = processorMs();
    const wide = await readUpstream(system, ['wide']);
    const found = candidatesIn(wide, 'db', manifest);
    const took = processorMs() - started;
    t.equal(found.length, 500);
    t.ok(took < BOUND_MS, `${Math.round(took)} ms`);
    t.match(found[0], { foreign_keys: [{ references: { table: 't1' } }], confidence: 0.95 });
    const some = await readUpstream(system, ['wide'], 20);
    t.match([some.relations.length, some.truncated], [20, true]);
  });

  await t.test('reading leaves nothing behind, and could not', async (t) => {
    const [left] = await system.query(
      sql`select pg_catalog.current_setting('transaction_read_only') as ro, pg_catalog.current_setting('statement_timeout') as ms`,
    );
    t.strictSame({ ...left }, { ro: 'off', ms: '0' });
  });
}

/** The model's type of each column of `odd.typed`, or that of the database where its text is read. */
const TYPES = {
  ...{
    id: 'uuid',
    m: 'enum odd.mood',
    ms: 'odd.mood[]',
    paid: 'numeric',
    n: 'text',
    at: 'inet',
    b: 'varbit',
    r: 'int4range',
    p: 'point',
    x: 'xml',
  },
  ...{ j: 'json', t: 'tsvector', o: 'oid', c: '"char"', v: 'text[]', i: 'interval', y: 'bytea' },
};

test('the manifest of these tests is what it says', async (t) => {
  t.equal(parseManifest(LIBRARY_MANIFEST, 'library').entities.size, 3);
});
