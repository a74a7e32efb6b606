import { type Access, type Catalog, compile, emit, QueryError } from 'osl-compiler';
import t from 'tap';
import { IS_WHOLE, partOf, range } from '../../support/part.js';
import { allClear, copyCatalog } from './copies.js';
import { type Dice, diceFrom } from './dice.js';
import { Expressions, type Term } from './expressions.js';
import { asAsked, randomQuestion } from './questions.js';
import { asBytes, openOracle, planOrRefusal, stage, valuesFor } from './trial.js';
import { accessOf, catalogOf, randomWorld, visibleColumns, type World } from './world.js';

/**
 * Raw SQL against the oracle. A question of OSL-SQL, asked of tables, is the same SQL; and what only raw SQL can join
 * answers as the same text over copies that were filtered and masked beforehand.
 */

/** Joins that are asked; `OSL_RAW_RUNS` asks for more. */
const RUNS = Number(process.env['OSL_RAW_RUNS'] ?? 360);
const PER_WORLD = 20;

t.setTimeout(3_600_000);

/** More questions of each world, on conditions that may fail. */
const FAILING = 10;

const RAW = { world: 'physical' } as const;
const own = (_: string, column: string): string => column;

/** `catalog` with all of its tables allowed. */
function open(catalog: Catalog): Catalog {
  const tables = [...catalog.relations.values()].map((r) => [`${r.schema}.${r.table}`, r] as const);
  return { ...catalog, rawTables: new Map(tables) };
}

/** `text` over the tables in `schema`, with the names that `nameOf` gives their columns. */
function overTables(text: string, schema: string, nameOf: (table: string, column: string) => string): string {
  const tables = new Map([...text.matchAll(/\b(alpha|beta|gamma) as (\w+)/g)].map(([, of, as]) => [as, of]));
  return text
    .replace(/\b(alpha|beta|gamma) as /g, `${schema}.$1 as `)
    .replace(/\b(a\d+)\.(\w+)/g, (_, alias: string, column: string) => {
      return `${alias}.${nameOf(tables.get(alias) ?? '', column)}`;
    });
}

function physicalIn(world: World): (table: string, column: string) => string {
  return (table, column) => {
    const found = world.tables.find((w) => w.name === table)?.columns.find((c) => c.name === column);
    return found?.physical ?? column;
  };
}

t.test('a question of OSL-SQL, asked of tables, is the same SQL', async (t) => {
  const count = { same: 0, keyed: 0, refused: 0 };
  for (const seed of partOf('raw', range(0, 60), 3)) {
    const dice = diceFrom(seed);
    const world = randomWorld(dice, false);
    const [catalog, access] = [open(catalogOf(world, 'whole')), accessOf(world)];
    for (let i = 0; i < PER_WORLD; i++) {
      const question = asAsked(randomQuestion(world, dice));
      const semantic = planOrRefusal(question, catalog, access);
      const raw = rawPlan(overTables(question, 'whole', physicalIn(world)), catalog, access);
      if (semantic === null) {
        count.refused++;
        t.equal(raw, null, `refused for its key either way: ${question}`);
      } else if (raw !== null && emit(raw).sql === emit(semantic).sql) {
        count.same++;
        t.strictSame(emit(raw).slots, emit(semantic).slots);
        t.strictSame(raw.redactedColumns, semantic.redactedColumns);
      } else if (/ where /.test(question)) {
        // In raw SQL an equality of two tables' columns is one of keys in WHERE too, and ON asks what a fence does.
        count.keyed++;
        if (raw !== null) t.match(emit(raw).sql, /#key|#shown/, question);
      } else t.fail(question);
    }
  }
  t.comment(`${count.same} the same, ${count.keyed} with keys in WHERE, ${count.refused} refused`);
  t.ok(count.same > (IS_WHOLE ? 1_000 : 300) && count.keyed < (IS_WHOLE ? 60 : 30));
});

function rawPlan(text: string, catalog: Catalog, access: Access) {
  try {
    return compile(text, catalog, access, RAW);
  } catch (error) {
    if (error instanceof QueryError && error.entry === 'keyNotClear') return null;
    throw error instanceof QueryError ? new Error(`${error.code} ${error.message}: ${text}`) : error;
  }
}

/** Random joins of two or three tables; `‹a1.k›` is a column where it is a key. @param fails of two, on what may fail */
function randomJoin(world: World, dice: Dice, fails = false): string | null {
  const tables = world.tables.filter((w) => visibleColumns(w).length > 0);
  if (tables.length === 0) return null;
  const sources = dice.times(2, dice.of([2, 2, 3]), (i) => {
    const table = dice.of(tables);
    const columns = visibleColumns(table).map(({ column }): Term => {
      const sealed = table.sealed.includes(column.name);
      return { sql: `a${i + 1}.${column.name}`, type: column.type, sealed };
    });
    return { text: `${table.name} as a${i + 1}`, columns };
  });
  const seen: Term[] = [];
  const where: string[] = [];
  let from = '';
  for (const { text, columns } of sources) {
    const keys = seen.filter((l) => l.sealed);
    const all = keys.flatMap((l) =>
      columns.filter((r) => r.sealed && r.type === l.type).map((r) => [l, r] as const),
    );
    // Masked texts are alike, so that what matches by mistake is there to be seen.
    const texts = all.filter(([l]) => l.type === 'text');
    const pairs = (texts.length > 0 && dice.chance(0.7) ? texts : all).map(
      ([l, r]) => `‹${l.sql}› = ‹${r.sql}›`,
    );
    const first = seen.length === 0;
    seen.push(...columns);
    // Wrapped, it is not an equality of keys, whatever it holds.
    const anything = (): string => `(${new Expressions(dice, seen).predicate(2)}) is true`;
    const key = pairs.length > 0 && dice.chance(0.5) ? [dice.of(pairs)] : [];
    const failing = fails && pairs[0] !== undefined ? failingOf(seen) : null;
    if (first) from = text;
    else if (failing !== null) {
      // Alone beside the key, so that no other condition decides on which pairs it is tried.
      from += ` ${dice.of(['join', 'left join', 'right join'])} ${text} on ${pairs[0]} and ${failing}`;
      return `select ${seen.map((c, i) => `${c.sql} as o${i + 1}`).join(', ')} from ${from}`;
    } else if (dice.chance(0.15)) from += ` cross join ${text}`;
    else if (key.length > 0 && dice.chance(0.3)) from += ` full join ${text} on ${key.join('')}`;
    else if (dice.chance(0.25)) {
      from += ` join ${text} on true`;
      where.push(...key, anything());
    } else {
      const how = dice.of(['join', 'left join', 'right join']);
      from += ` ${how} ${text} on ${[...key, anything()].join(' and ')}`;
    }
  }
  if (dice.chance(0.3)) where.push(`(${new Expressions(dice, seen).predicate(1)}) is true`);
  const outputs = seen.map((c, i) => `${c.sql} as o${i + 1}`).join(', ');
  return `select ${outputs} from ${from}${where.length === 0 ? '' : ` where ${where.join(' and ')}`}`;
}

/** Fails for pairs whose numbers together are 57, of one of each table; null where there are none. */
function failingOf(columns: readonly Term[]): string | null {
  const numbers = (alias: string) =>
    columns.filter((c) => c.type === 'int4' && c.sql.startsWith(`${alias}.`));
  const [one, other] = [numbers('a1').at(-1), numbers('a2').at(-1)];
  return one === undefined || other === undefined ? null : `57 / (${one.sql} + ${other.sql} - 57) < 1`;
}

t.test('what only raw SQL joins answers as over copies of what is visible', async (t) => {
  const engine = await openOracle();
  t.teardown(() => engine.close());
  const count = { asked: 0, refused: 0, empty: 0, masked: 0, full: 0, told: 0, failing: 0, failed: 0 };
  for (let seed = 0; seed < RUNS / PER_WORLD; seed++) {
    const dice = diceFrom(seed);
    const world = randomWorld(dice, false);
    const { answer } = await stage(world, engine);
    const [whole, copies] = [open(catalogOf(world, 'whole')), open(copyCatalog(world, 'copies'))];
    const clear = allClear(copies);
    for (let i = 0; i < PER_WORLD + FAILING; i++) {
      const fails = i >= PER_WORLD;
      const join = randomJoin(world, dice, fails);
      if (join === null || (fails && !join.includes(' and 57 / '))) continue;
      count.asked++;
      const asked = overTables(join.replace(/[‹›]/g, ''), 'whole', physicalIn(world));
      const plan = rawPlan(asked, whole, accessOf(world));
      // OSL-SQL joins entities so where the manifest says so, and its statement is the same one.
      const entities = planOrRefusal(join.replace(/[‹›]/g, ''), { ...whole, joins: 'any' }, accessOf(world));
      t.equal(entities === null ? null : emit(entities).sql, plan === null ? null : emit(plan).sql, join);
      if (plan === null) {
        count.refused++;
        continue;
      }
      const copied = overTables(join.replace(/‹([\w.]+)›/g, '$1_key'), 'copies', own);
      const truth = emit(compile(copied, copies, clear, RAW));
      const [got, wanted] = [
        await answer(emit(plan)),
        await engine.ask(truth.sql, valuesFor(truth.slots, world)),
      ];
      if (got.rows.length === 0) count.empty++;
      if (plan.redactedColumns.length > 0) count.masked++;
      if (asked.includes(' full join ')) count.full++;
      if (fails) count.failing++;
      if (got.sqlstate !== null) count.failed++;
      if (asBytes(got) === asBytes(wanted)) {
        const shown = emit(compile(overTables(join.replace(/[‹›]/g, ''), 'copies', own), copies, clear, RAW));
        const other = await engine.ask(shown.sql, valuesFor(shown.slots, world));
        if (asBytes(other) !== asBytes(got)) count.told++;
        continue;
      }
      t.fail(
        [
          `world ${seed}`,
          asked,
          copied,
          emit(plan).sql,
          asBytes(got),
          'the copies say',
          asBytes(wanted),
        ].join('\n'),
      );
    }
  }
  t.comment(JSON.stringify(count));
  t.ok(count.asked - count.refused > RUNS / 2);
  t.ok(count.masked > RUNS / 4 && count.full > 10 && count.empty < count.asked * 0.7);
  t.ok(count.failing > 50 && count.failed > 5, 'conditions that may fail stood in ON');
  t.ok(count.told > 0, 'were a masked key to match, some answers would be others');
});
