import { type Test, test } from 'tap';
import { eachDataRow } from '../../../src/engine/index.js';
import { textValuesOf } from '../../../src/engine/protocol/backend-messages.js';
import { FrontendEncoder } from '../../../src/engine/protocol/encoder.js';
import {
  type CatalogContents,
  type ColumnModel,
  ContentsWriter,
  type TableModel,
} from '../../../src/surfaces/catalog/engine-contract.js';
import { BaseImage, type EngineThread } from '../../../src/surfaces/catalog/engine-thread.js';
import { readReply } from '../../../src/surfaces/catalog/reply.js';
import { FILLED_CATALOGS } from '../../../src/surfaces/catalog/worker/rows.js';
import { referenceDdl } from './support/reference-ddl.js';
import { IMAGE_DIR } from './support/world.js';

/**
 * A catalog is filled with rows, not by commands: these tests hold the rows against those that the same engine writes
 * for CREATE TABLE, ADD PRIMARY KEY, ADD FOREIGN KEY and COMMENT.
 */

const image = new BaseImage(IMAGE_DIR);

test('an engine that could not be loaded once is loaded the next time', async (t) => {
  const other = new BaseImage(IMAGE_DIR);
  const { compile } = WebAssembly;
  WebAssembly.compile = () => Promise.reject(new Error('too many open files'));
  try {
    await t.rejects(other.fill([], 32), { message: 'too many open files' });
  } finally {
    WebAssembly.compile = compile;
  }
  const { thread } = await other.fill([], 32);
  t.ok(thread.alive);
  thread.end('cancelled');
  await thread.exited;
});

const column = (name: string, type: string, notNull = false, comment: string | null = null): ColumnModel => ({
  name,
  type,
  notNull,
  comment,
});
const table = (
  name: string,
  columns: readonly ColumnModel[],
  primaryKey: readonly string[] = [],
  comment: string | null = null,
): TableModel => ({ name, columns, primaryKey, comment });
const link = (
  from: string,
  columns: readonly string[],
  target: string,
  targetColumns: readonly string[],
  comment: string | null = null,
) => ({
  table: from,
  columns,
  target,
  targetColumns,
  comment,
});

const ID = column('id', 'int8', true);
const LONG = 'x'.repeat(63);
const UMLAUTS = 'ü'.repeat(31);

const CONTENTS: Readonly<
  Record<string, Pick<CatalogContents, 'tables' | 'foreignKeys'> & Partial<CatalogContents>>
> = {
  'types, with and without modifiers': {
    tables: [
      table(
        'typed',
        [
          ...[
            'bool',
            'int2',
            'int4',
            'int8',
            'float4',
            'float8',
            'numeric',
            'numeric(12,2)',
            'text',
            'varchar(20)',
          ],
          ...[
            'bpchar',
            'char(3)',
            '"char"',
            'name',
            'uuid',
            'date',
            'time',
            'timetz',
            'timestamp',
            'timestamptz(3)',
          ],
          ...[
            'interval',
            'bytea',
            'json',
            'jsonb',
            'inet',
            'text[]',
            'int4[]',
            'numeric(5,1)[]',
            'bit(4)',
            'oid',
          ],
        ].map((type, i) => column(`c${i}`, type, i % 3 === 0)),
      ),
      table('nothing', []),
    ],
    foreignKeys: [],
  },
  'keys of several columns, their order, and what refers to them': {
    tables: [
      table(
        'a',
        [column('x', 'text', true), column('y', 'varchar(9)', true), column('z', 'date')],
        ['y', 'x'],
      ),
      table('b', [column('p', 'text'), column('q', 'text', true), column('own', 'text', true)], ['own']),
      table('loop', [ID, column('parent', 'int8')], ['id']),
    ],
    foreignKeys: [
      link('b', ['p', 'q'], 'a', ['x', 'y']),
      link('b', ['q', 'p'], 'a', ['x', 'y'], 'the other way'),
      link('b', ['q'], 'b', ['own']),
      link('loop', ['parent'], 'loop', ['id']),
      link('loop', ['id'], 'loop', ['id']),
    ],
  },
  'names that Postgres cuts, and makes different': {
    tables: [
      table(LONG, [ID, column(`${LONG.slice(1)}y`, 'int8'), column('ref', 'int8')], ['id']),
      table(`${LONG.slice(1)}y`, [ID, column('ref', 'int8')], ['id']),
      table(`${LONG.slice(1)}z`, [ID, column('ref', 'int8')], ['id']),
      table(UMLAUTS, [ID, column(`${UMLAUTS}a`, 'int8'), column(`${UMLAUTS}`, 'int8')], ['id']),
      table(`${'é'.repeat(30)}abc`, [ID, column('漢'.repeat(21), 'int8')], ['id']),
    ],
    foreignKeys: [
      link(LONG, [`${LONG.slice(1)}y`], LONG, ['id']),
      link(LONG, [`${LONG.slice(1)}y`], UMLAUTS, ['id']),
      link(LONG, ['ref'], UMLAUTS, ['id']),
      link(`${LONG.slice(1)}y`, ['ref'], LONG, ['id']),
      link(`${LONG.slice(1)}z`, ['ref'], LONG, ['id']),
      link(UMLAUTS, [`${UMLAUTS}a`], LONG, ['id']),
      link(UMLAUTS, [`${UMLAUTS}`], LONG, ['id']),
      link(`${'é'.repeat(30)}abc`, ['漢'.repeat(21)], LONG, ['id']),
    ],
  },
  'names that are those of types, keys and constraints': {
    tables: [
      table('t', [ID, column('u', 'int8')], ['id']),
      table('_t', [ID], ['id']),
      table('__t', [ID], ['id']),
      table('t_pkey', [ID, column('u', 'int8')], ['id']),
      table('t_pkey1', [ID], ['id']),
      table('_moody', [ID, column('feels', 'entities."mood"')], ['id']),
      table('Quoted "Table"', [column('Ä "b" c', 'int8', true), column('pg_type', 'text')], ['Ä "b" c']),
    ],
    foreignKeys: [
      link('t', ['u'], 't_pkey', ['id']),
      link('t_pkey', ['u'], 't', ['id']),
      link('t', ['u'], 't', ['id']),
    ],
    enums: [{ name: 'sad', labels: ['very', 'a little'] }],
  },
  'enums, also as keys': {
    tables: [
      table('kind', [column('k', 'entities."mood"', true), column('n', 'int4')], ['k']),
      table('thing', [ID, column('kind', 'entities."mood"')], ['id']),
    ],
    foreignKeys: [link('thing', ['kind'], 'kind', ['k'])],
  },
  comments: {
    tables: [
      table(
        'said',
        [
          column('a', 'text', false, `it's "quoted" \\ \\t and\ta tab\nand lines\r\nand 漢字`),
          column('b', 'text', true, '\\N'),
          column('c', 'text', false, ''),
          column('d', 'text', false, 'long '.repeat(2_000)),
        ],
        ['b'],
        '\\.',
      ),
      table('silent', [column('a', 'text')], [], ''),
    ],
    foreignKeys: [link('said', ['a'], 'said', ['b'], 'a\tlink\\')],
  },
};

/** What is compared, with names for OIDs. Without what nothing stores: TOAST tables, numbers of pages, transactions. */
const OF_SCHEMA = `'entities'::regnamespace`;
const CLASSES = `(SELECT oid FROM pg_class WHERE relnamespace = ${OF_SCHEMA})`;
const COMPARED: Readonly<Record<string, string>> = {
  pg_class: `SELECT to_jsonb(c) - ARRAY['oid', 'relfilenode', 'reltype', 'reltoastrelid', 'relfrozenxid', 'relminmxid'],
      reltype::regtype, relfilenode = oid FROM pg_class c WHERE relnamespace = ${OF_SCHEMA} ORDER BY relname`,
  pg_type: `SELECT to_jsonb(t) - ARRAY['oid', 'typrelid', 'typelem', 'typarray'], typrelid::regclass, typelem::regtype,
      typarray::regtype FROM pg_type t WHERE typnamespace = ${OF_SCHEMA} ORDER BY typname`,
  pg_attribute: `SELECT attrelid::regclass, atttypid::regtype, to_jsonb(a) - ARRAY['attrelid', 'atttypid']
      FROM pg_attribute_as_stored a WHERE attrelid IN ${CLASSES} ORDER BY attrelid::regclass::text, attnum`,
  pg_index: `SELECT indexrelid::regclass, indrelid::regclass, to_jsonb(i) - ARRAY['indexrelid', 'indrelid']
      FROM pg_index i WHERE indrelid IN ${CLASSES} ORDER BY 1::text`,
  pg_constraint: `SELECT conrelid::regclass, confrelid::regclass, conindid::regclass, pg_get_constraintdef(oid),
      to_jsonb(c) - ARRAY['oid', 'conrelid', 'confrelid', 'conindid'] FROM pg_constraint c
      WHERE connamespace = ${OF_SCHEMA} AND contype <> 'n' ORDER BY conname`,
  pg_trigger: `SELECT tgrelid::regclass, tgconstrrelid::regclass, tgconstrindid::regclass,
      (SELECT conname FROM pg_constraint WHERE oid = tgconstraint),
      to_jsonb(t) - ARRAY['oid', 'tgname', 'tgrelid', 'tgconstrrelid', 'tgconstrindid', 'tgconstraint'],
      regexp_replace(tgname, '\\d+', '') FROM pg_trigger t ORDER BY 4, tgname`,
  pg_depend: `SELECT described, deptype FROM (
      SELECT regexp_replace(pg_describe_object(classid, objid, objsubid) || ' on ' ||
        pg_describe_object(refclassid, refobjid, refobjsubid), '_[ac]_\\d+', '_', 'g') AS described, deptype
      FROM pg_depend WHERE objid >= 16384 AND NOT EXISTS (SELECT FROM pg_constraint WHERE oid = objid AND contype = 'n')
    ) d WHERE described LIKE '%entities%' AND described NOT LIKE '%toast%' ORDER BY 1, 2`,
  pg_shdepend: `SELECT dbid, pg_describe_object(classid, objid, objsubid), refclassid::regclass, refobjid::regrole, deptype
      FROM pg_shdepend WHERE objid IN ${CLASSES} ORDER BY 2`,
  pg_description: `SELECT pg_describe_object(classoid, objoid, objsubid), description FROM pg_description
      WHERE objoid >= 16384 ORDER BY 1`,
};

async function run(engine: EngineThread, sql: string): Promise<readonly string[]> {
  const encoder = new FrontendEncoder();
  encoder.query(sql);
  const { bytes } = await engine.exec(encoder.view(), { deadlineMs: 60_000, maxBytes: 1e8, signal: null });
  const { error, rows } = readReply(bytes);
  if (error !== null) throw new Error(`${error.message}: ${sql.slice(0, 200)}`);
  return rows.flatMap((run) => [...eachDataRow(run)].map((row) => textValuesOf(row).join(' | ')));
}

async function engineWith(t: Test, contents: CatalogContents): Promise<EngineThread> {
  const writer = new ContentsWriter();
  for (const one of contents.enums) writer.add('enums', one);
  for (const one of contents.tables) writer.add('tables', one);
  for (const one of contents.foreignKeys) writer.add('foreignKeys', one);
  const { thread } = await image.fill(writer.parts(), 32);
  t.teardown(() => thread.end('cancelled'));
  await run(thread, 'SET search_path = pg_catalog');
  return thread;
}

const EMPTY: CatalogContents = { enums: [], tables: [], foreignKeys: [], metrics: [], facets: [] };
const MOOD = { name: 'mood', labels: ['good', 'bad'] };

const met = new Set<string>();

for (const [name, part] of Object.entries(CONTENTS)) {
  test(name, async (t) => {
    const contents = { ...EMPTY, ...part, enums: [MOOD, ...(part.enums ?? [])] };
    const filled = await engineWith(t, contents);
    const commanded = await engineWith(t, EMPTY);
    await run(commanded, 'SET default_transaction_read_only = off');
    for (const script of referenceDdl(contents, 18)) await run(commanded, script);
    for (const [catalog, query] of Object.entries(COMPARED)) {
      const rows = await run(commanded, query);
      if (rows.length > 0) met.add(catalog);
      t.strictSame(await run(filled, query), rows, catalog);
    }
  });
}

test('each catalog was compared', (t) => {
  t.strictSame([...met].sort(), Object.keys(COMPARED).sort());
  t.end();
});

test('nothing is left of what was asked for patterns', async (t) => {
  const engine = await engineWith(t, { ...EMPTY, tables: [table('a', [ID], ['id'])] });
  t.strictSame(
    await run(
      engine,
      `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'osl%' UNION ALL
      SELECT relname FROM pg_class WHERE relname ~ '^(keyed|typed_|(key|link)_[0-9])'`,
    ),
    [],
  );
});

test('the planner knows how many rows there are', async (t) => {
  const tables = Array.from({ length: 300 }, (_, i) => table(`t${i}`, [ID, column('n', 'text')], ['id']));
  const engine = await engineWith(t, { ...EMPTY, tables });
  for (const catalog of FILLED_CATALOGS) {
    const [counted = ''] = await run(
      engine,
      `SELECT (SELECT count(*) FROM pg_catalog.${catalog}), reltuples::int8
      FROM pg_class WHERE oid = 'pg_catalog.${catalog}'::regclass`,
    );
    const [rows, known] = counted.split(' | ');
    t.equal(known, rows, catalog);
  }
});

test('a table whose key nothing can order has none', async (t) => {
  const engine = await engineWith(t, {
    ...EMPTY,
    tables: [table('a', [column('id', 'json', true)], ['id']), table('b', [column('a', 'json')])],
    foreignKeys: [link('b', ['a'], 'a', ['id'])],
  });
  t.strictSame(await run(engine, `SELECT relname FROM pg_class WHERE relnamespace = ${OF_SCHEMA}`), [
    'a',
    'b',
  ]);
});
