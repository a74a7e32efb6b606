import { compile, emit, type Position, QueryError } from 'osl-compiler';
import t from 'tap';
import { CALLERS, CATALOG } from '../../proof/golden/catalog.js';
import { callerNamed } from '../../proof/golden/outcome.js';

function errorOf(text: string, caller = 'owner'): QueryError {
  try {
    emit(compile(text, CATALOG, callerNamed(caller).access));
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
  throw new Error(`no error: ${text.slice(0, 80)}`);
}

/** The position that the mark `‸` has in `marked`, which is left out of the text. */
function expected(marked: string): { readonly text: string; readonly position: Position } {
  const offset = marked.indexOf('‸');
  const before = marked.slice(0, offset).split('\n');
  const column = (before.at(-1) ?? '').length + 1;
  return { text: marked.replace('‸', ''), position: { offset, line: before.length, column } };
}

t.test('positions are UTF-16 offsets in the text as it was sent', async (t) => {
  const marked = [
    'select ‸nope from customer',
    "select 'é', ‸nope from customer",
    "select 'é😀漢', ‸nope from customer",
    '-- 😀\nselect id,\n  ‸nope\nfrom customer',
    "select '😀', id from ‸custmer",
    "select '😀', id ‸+ name from customer",
    "select id from customer where name = 'é' and id = ‸'x'",
    "select '😀', id from customer ‸‸".replace('‸‸', 'where ‸'),
    "select '漢' as x, ‸, 1",
    '/* EXTRACT(é */ select ‸EXTRACT(name) from customer',
    'select \'é\', extract(year from placed), ‸nope from "order"',
    'select extract ( year from placed), ‸EXTRACT(note) from "order"',
    'select \'😀\' as "ü", ‸"ö" from customer',
    'select id\r\nfrom customer\r\nwhere ‸nope = 1',
    'select 1; ‸select 2',
  ];
  for (const m of marked) {
    const { text, position } = expected(m);
    const found = errorOf(text).position;
    if (m.startsWith('select 1;')) t.equal(found?.line, position.line, m);
    else t.same(found, position, m);
  }
});

t.test('positions after an EXTRACT that had to be quoted', async (t) => {
  for (const m of [
    'select nullif(1, 1), ‸EXTRACT(name), nope from customer',
    'select coalesce(‸nope, EXTRACT(name)) from customer',
    "select 'é', ‸nope, EXTRACT(name, 2), extract(year from born) from customer",
    "select (select 'é' where EXTRACT (1) = 1 and ‸) from customer",
    "select 'é😀', EXTRACT(1), ‸, 2",
    "select EXTRACT(1), 'é😀', extract(2), ‸, 2",
  ]) {
    const { text, position } = expected(m);
    t.same(errorOf(text).position, position, m);
  }
});

/** Every name of the catalog, and those that one caller may see. */
function namesOf(caller: string) {
  const { access } = callerNamed(caller);
  const all = new Set([...CATALOG.relations.keys(), ...CATALOG.metrics.keys()]);
  for (const relation of CATALOG.relations.values()) for (const c of relation.columns) all.add(c.name);
  const seen = new Set(access.relations.keys());
  for (const { grants } of access.relations.values()) {
    for (const g of grants) for (const c of g.columns) seen.add(c);
  }
  for (const { name, entity } of CATALOG.metrics.values()) {
    // What is there but has no answer here is visible too.
    const said = saidOf(`select measure(${name}) from "${entity ?? 'order'}"`, caller);
    if (!said.includes(`\`${name}\` is not declared`)) seen.add(name);
  }
  return { all, seen };
}

t.test('did-you-mean never names what is hidden', async (t) => {
  const leaks: string[] = [];
  let asked = 0;
  for (const caller of CALLERS.keys()) {
    const { all, seen } = namesOf(caller);
    for (const name of all) {
      for (const typed of [name, `${name}s`, name.slice(1), name.slice(0, -1), name.toUpperCase()]) {
        for (const text of questionsWith(typed)) {
          asked++;
          const named = [...saidOf(text, caller).matchAll(/`([^`]+)`/g)].map((m) => m[1] ?? '');
          const hidden = named.filter((n) => all.has(n) && !seen.has(n) && !text.includes(n));
          if (hidden.length > 0) leaks.push(`${caller}: ${text}: ${hidden.join(', ')}`);
        }
      }
    }
  }
  t.same(leaks, []);
  t.ok(asked > 5_000, `${asked} questions`);
});

function questionsWith(typed: string): readonly string[] {
  return [
    `select "${typed}" from customer`,
    `select 1 from "${typed}"`,
    `select c."${typed}" from customer c join "order" o on o.customer_id = c.id`,
    `select measure("${typed}") from "order"`,
    `select measure("${typed}") from customer`,
    `select "${typed}" from (select * from customer) d`,
    `select 1 from customer c join "order" o on o."${typed}" = c.id`,
    `select 1 from customer c where exists (select 1 from "order" o where o."${typed}" = c.id)`,
  ];
}

function saidOf(text: string, caller: string): string {
  try {
    compile(text, CATALOG, callerNamed(caller).access);
    return '';
  } catch (error) {
    if (error instanceof QueryError) return `${error.hint ?? ''} ${error.message}`;
    throw error;
  }
}

t.test('an object that is hidden and one that is not declared have the same error', async (t) => {
  for (const [hidden, undeclared] of [
    ['select score from customer', 'select scxre from customer'],
    ['select id from product', 'select id from prxduct'],
    ['select c.born from customer c', 'select c.bxrn from customer c'],
    ['select id from customer where tax_no = $1', 'select id from customer where txx_no = $1'],
    ['select measure(revenue) from "order"', 'select measure(rxvxnxe) from "order"'],
  ]) {
    const [one, two] = [errorOf(hidden ?? '', 'narrow'), errorOf(undeclared ?? '', 'narrow')];
    t.same(
      [one.code, one.sqlstate, one.http, one.hint, one.position],
      [two.code, two.sqlstate, two.http, two.hint, two.position],
      hidden ?? '',
    );
  }
});

t.test('nesting beyond reason is refused, and the parser lives on', async (t) => {
  const deep: Readonly<Record<string, string>> = {
    parentheses: `select ${'('.repeat(10_000)}1${')'.repeat(10_000)}`,
    'a chain of +': `select 1${' + 1'.repeat(5_000)}`,
    'a long chain of +': `select 1${'+1'.repeat(200_000)}`,
    subqueries: `select ${'(select '.repeat(1_000)}1${')'.repeat(1_000)}`,
    'derived tables': `select * from ${'(select * from '.repeat(1_000)}(select 1) x${') x'.repeat(1_000)}`,
    'set operations': `select 1${' union select 1'.repeat(3_000)}`,
    casts: `select 1${'::int4'.repeat(5_000)}`,
    calls: `select ${'abs('.repeat(5_000)}1${')'.repeat(5_000)}`,
    NOT: `select ${'not '.repeat(20_000)}true`,
    CASE: `select ${'case when true then '.repeat(3_000)}1${' end'.repeat(3_000)}`,
    arrays: `select ${'array['.repeat(3_000)}1${']'.repeat(3_000)}`,
    joins: `select 1 from tag t0${Array.from({ length: 2_000 }, (_, i) => ` join tag t${i + 1} on t${i + 1}.id = t0.id`).join('')}`,
  };
  for (const [name, text] of Object.entries(deep)) {
    const error = errorOf(text);
    t.equal(error.code, 'E0511', name);
    t.equal(error.sqlstate, '54001', name);
    t.equal(
      emit(compile('select 1', CATALOG, callerNamed('owner').access)).sql,
      'select $1::int4 as c1',
      'still works',
    );
  }
});

t.test('wide is not deep', async (t) => {
  const owner = callerNamed('owner').access;
  const wide: Readonly<Record<string, string>> = {
    'AND of 5,000': `select id from tag where ${'id > 0 and '.repeat(5_000)}true`,
    'OR of 5,000': `select id from tag where ${'id = 1 or '.repeat(5_000)}false`,
    '1,000 columns': `select ${Array.from({ length: 1_000 }, () => 'id').join(', ')} from tag`,
    '60 joins': `select 1 from tag t0${Array.from({ length: 60 }, (_, i) => ` join tag t${i + 1} on t${i + 1}.id = t0.id`).join('')}`,
    '150 concatenations': `select ${Array.from({ length: 150 }, () => 'label').join(' || ')} from tag`,
  };
  for (const [name, text] of Object.entries(wide)) t.ok(emit(compile(text, CATALOG, owner)).sql, name);
});

t.test('NUL, size and number of values', async (t) => {
  const nul = errorOf("select 'é\0'");
  t.equal(nul.code, 'E0511');
  t.same(nul.position, { offset: 9, line: 1, column: 10 });
  const large = errorOf(`select 1 -- ${'x'.repeat(1_048_576)}`);
  t.equal(large.code, 'E0511');
  t.equal(large.sqlstate, '54000');
  const fits = `select 1 -- ${'x'.repeat(1_048_576 - 12)}`;
  t.equal(fits.length, 1_048_576);
  t.ok(compile(fits, CATALOG, callerNamed('owner').access));
});

t.test('an IN list of 100,000 values is one array parameter', async (t) => {
  const text = `select name from customer where id in (${Array.from({ length: 100_000 }, (_, i) => i).join(',')})`;
  const { sql, slots } = emit(compile(text, CATALOG, callerNamed('owner').access));
  t.match(sql, '= any ($1::int4[])');
  t.equal(slots.length, 1);
  const [slot] = slots;
  t.equal(slot?.kind === 'literal' && slot.value.length, 100_000);
});
