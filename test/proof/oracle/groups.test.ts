import {
  type Access,
  bindPredicate,
  type Catalog,
  type Column,
  compile,
  emit,
  type GovernedPlan,
  governSample,
  type Relation,
  type RelationGrant,
  ready,
} from 'osl-compiler';
import t from 'tap';
import { fc } from '../../support/fast-check.js';
import { openEngine } from '../golden/engine.js';
import { type Dice, diceArbitrary } from './dice.js';
import { type Query, verifyMinima, walk } from './internals.js';

/**
 * Rows that may only be aggregated, recounted by hand: what a group holds of them counts if it is of enough people,
 * and else is as if it were not there. `OSL_GROUPS_RUNS` questions, from `OSL_ORACLE_SEED`.
 */
const RUNS = Number(process.env['OSL_GROUPS_RUNS'] ?? 300);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? 20_260_103);
const PER_WORLD = 15;

await ready();
const engine = await openEngine(['grp']);
t.teardown(() => engine.close());
t.setTimeout(3_600_000);

interface Person {
  readonly id: number;
  readonly dept: string | null;
  readonly city: string;
  readonly amt: number | null;
}

const columns: readonly Column[] = (
  [
    ['id', 'int4'],
    ['dept', 'text'],
    ['city', 'text'],
    ['amt', 'int4'],
  ] as const
).map(([name, type]) => ({
  name,
  physical: name,
  type,
  description: null,
  nullable: name !== 'id',
  sensitivity: null,
  keyDomain: null,
}));

const PERSON: Relation = {
  kind: 'entity',
  name: 'person',
  description: null,
  connector: 'main',
  schema: 'grp',
  table: 'person',
  columns,
  primaryKey: ['id'],
  sealedKeys: ['id'],
};

const CATALOG: Catalog = {
  version: 'v',
  relations: new Map([['person', PERSON]]),
  metrics: new Map(),
  facets: new Map(),
  edges: [],
};

/** A condition as SQL and as the recount has it; null is unknown. */
interface Condition {
  readonly sql: string;
  readonly holds: (p: Person) => boolean | null;
}

const CONDITIONS: readonly Condition[] = [
  { sql: "city = 'rome'", holds: (p) => p.city === 'rome' },
  { sql: "dept = 'a'", holds: (p) => (p.dept === null ? null : p.dept === 'a') },
  { sql: "dept <> 'a'", holds: (p) => (p.dept === null ? null : p.dept !== 'a') },
  { sql: 'amt > 2', holds: (p) => (p.amt === null ? null : p.amt > 2) },
  { sql: 'amt is null', holds: (p) => p.amt === null },
  { sql: 'id < 6', holds: (p) => p.id < 6 },
  { sql: 'id <> 3', holds: (p) => p.id !== 3 },
  { sql: 'id = 3', holds: (p) => p.id === 3 },
  { sql: "city like 'r%'", holds: (p) => p.city.startsWith('r') },
];

interface World {
  readonly people: readonly Person[];
  readonly minimum: number;
  /** Whose rows are shown, if anybody's; and whose may be aggregated. */
  readonly shown: Condition | null;
  readonly counted: Condition | null;
}

function randomWorld(dice: Dice): World {
  return {
    people: dice.times(3, 14, (i) => ({
      id: i + 1,
      dept: dice.chance(0.1) ? null : dice.of(['a', 'b', 'c']),
      city: dice.of(['rome', 'riga', 'oslo']),
      amt: dice.chance(0.25) ? null : dice.upTo(6),
    })),
    minimum: 2 + dice.upTo(2),
    shown: dice.chance(0.5) ? dice.of(CONDITIONS) : null,
    counted: dice.chance(0.5) ? dice.of(CONDITIONS) : null,
  };
}

function accessOf({ minimum, shown, counted }: World): Access {
  const grant = (id: string, filter: Condition | null): RelationGrant => ({
    id,
    columns: new Set(columns.map((c) => c.name)),
    unmask: new Set(),
    filter: filter === null ? null : bindPredicate(filter.sql, PERSON),
  });
  const grants = [
    { ...grant('counted', counted), groups: { minimum, metrics: null } },
    ...(shown === null ? [] : [grant('shown', shown)]),
  ];
  const rights = { grants, masks: new Map(), denied: new Set<string>() };
  return { signature: 's', policyVersion: 'p', chainLength: 1, relations: new Map([['person', rights]]) };
}

/** An aggregate as SQL and as the recount has it. */
interface Figure {
  readonly sql: string;
  /** Rows that it takes account of, before any filter. */
  readonly takes: (p: Person) => boolean;
  readonly of: (people: readonly Person[]) => string | null;
}

const given = (p: Person): boolean => p.amt !== null;
const total = (people: readonly Person[]): number => people.reduce((n, p) => n + (p.amt ?? 0), 0);
const FIGURES: readonly Figure[] = [
  { sql: 'count(*)', takes: () => true, of: (people) => String(people.length) },
  { sql: 'count(amt)', takes: given, of: (people) => String(people.length) },
  { sql: 'sum(amt)', takes: given, of: (people) => (people.length === 0 ? null : String(total(people))) },
  {
    sql: 'count(distinct city)',
    takes: () => true,
    of: (people) => String(new Set(people.map((p) => p.city)).size),
  },
];

type Key = 'dept' | 'city' | 'id';

interface Question {
  readonly sql: string;
  readonly keys: readonly Key[];
  /** The grouping sets, each with some of the keys; null where all of them group together. */
  readonly sets: readonly (readonly Key[])[] | null;
  readonly where: Condition | null;
  readonly figures: readonly { readonly figure: Figure; readonly filter: Condition | null }[];
}

function randomQuestion(dice: Dice): Question {
  const keys = dice.some(['dept', 'city', 'id'] as const, 0.35);
  const where = dice.chance(0.5) ? dice.of(CONDITIONS) : null;
  const figures = dice.times(1, 3, () => ({
    figure: dice.of(FIGURES),
    filter: dice.chance(0.3) ? dice.of(CONDITIONS) : null,
  }));
  const outputs = figures.map(
    ({ figure, filter }) => figure.sql + (filter === null ? '' : ` filter (where ${filter.sql})`),
  );
  const list = [...keys, ...outputs].join(', ');
  const rollup = keys.length > 0 && dice.chance(0.4);
  const sets = rollup ? [...keys.keys(), keys.length].map((n) => keys.slice(0, n)) : null;
  const by = rollup ? `rollup (${keys.join(', ')})` : keys.join(', ');
  const tail = keys.length === 0 ? '' : ` group by ${by}`;
  return { keys, sets, where, figures, sql: `select ${list} from person${conditionSql(where)}${tail}` };
}

function conditionSql(where: Condition | null): string {
  return where === null ? '' : ` where ${where.sql}`;
}

const meets = (condition: Condition | null, p: Person): boolean =>
  condition === null || condition.holds(p) === true;

/** The groups of one grouping set, by their keys as they are shown. */
function groupedBy(
  set: readonly Key[],
  { keys }: Question,
  people: readonly Person[],
): ReadonlyMap<string, Person[]> {
  const groups = new Map<string, Person[]>();
  if (keys.length === 0) groups.set('[]', []);
  for (const p of people) {
    const shown = keys.map((k) => (p[k] === null || !set.includes(k) ? null : String(p[k])));
    const key = JSON.stringify(shown);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [p]);
    else group.push(p);
  }
  return groups;
}

/** The answer, by the rules of `min_group_size` and nothing of the compiler's. */
function recounted(question: Question, { people, minimum, shown, counted }: World): readonly string[] {
  const isShown = (p: Person): boolean => shown !== null && meets(shown, p);
  const visible = people.filter((p) => (isShown(p) || meets(counted, p)) && meets(question.where, p));
  const enough = (some: readonly Person[]): boolean =>
    new Set(some.filter((p) => !isShown(p)).map((p) => p.id)).size >= minimum;
  const groups = (question.sets ?? [question.keys]).flatMap((set) => [...groupedBy(set, question, visible)]);
  const rows: string[] = [];
  for (const [key, group] of groups) {
    const present = question.keys.length === 0 || enough(group) || group.some(isShown);
    if (!present) continue;
    const values = question.figures.map(({ figure, filter }) => {
      const taken = group.filter((p) => figure.takes(p) && meets(filter, p));
      if (enough(taken)) return figure.of(taken);
      return shown === null ? null : figure.of(taken.filter(isShown));
    });
    rows.push(JSON.stringify([...(JSON.parse(key) as unknown[]), ...values])); // made two lines above
  }
  return rows.sort();
}

function tableSql(people: readonly Person[]): string {
  const text = (v: string | number | null): string => (v === null ? 'null' : `'${v}'`);
  const rows = people.map((p) => `(${p.id}, ${text(p.dept)}, ${text(p.city)}, ${text(p.amt)})`);
  return `drop table if exists grp.person; create table grp.person (id int4, dept text, city text, amt int4);
    insert into grp.person values ${rows.join(', ')}`;
}

t.test('figures rest on enough rows, or on those that are shown', async (t) => {
  const counts = { asked: 0, withheld: 0 };
  await fc.assert(
    fc.asyncProperty(diceArbitrary, async (dice) => {
      const world = randomWorld(dice);
      await engine.setUp(tableSql(world.people));
      for (let i = 0; i < PER_WORLD; i++) {
        const question = randomQuestion(dice);
        const { sql, slots } = emit(compile(question.sql, CATALOG, accessOf(world)));
        const answer = await engine.ask(
          sql,
          slots.map((s) => (s.kind === 'literal' && typeof s.value === 'string' ? s.value : null)),
        );
        const got = answer.rows.map((r) => JSON.stringify(r)).sort();
        const wanted = recounted(question, world);
        counts.asked++;
        if (wanted.join().includes('null') || wanted.length === 0) counts.withheld++;
        if (answer.sqlstate !== null || got.join('\n') !== wanted.join('\n')) {
          const told = [JSON.stringify(world), question.sql, sql, ...got, 'but the recount says', ...wanted];
          throw new Error(told.join('\n'));
        }
      }
    }),
    { numRuns: Math.ceil(RUNS / PER_WORLD), seed: SEED, endOnFailure: true },
  );
  t.comment(JSON.stringify({ seed: SEED, ...counts }));
  t.ok(counts.withheld > counts.asked / 10, 'many figures are withheld');
});

t.test('a sample has the rows that are shown, or is refused', async (t) => {
  const world = { ...randomWorld(diceOfOne), shown: null, counted: null };
  t.throws(() => governSample('table', 'person', CATALOG, accessOf(world)), { code: 'E2103' });
  const [first] = CONDITIONS;
  const { grants } = plansOf(accessOf({ ...world, shown: first ?? null }));
  t.strictSame(grants, ['shown']);
});

function plansOf(access: Access): GovernedPlan {
  const { source } = governSample('table', 'person', CATALOG, access);
  if (source.kind !== 'table') throw new Error('an entity is a table');
  return source.plan;
}

t.test('a plan that lost a part of its minimum does not pass', async (t) => {
  const world = { ...randomWorld(diceOfOne), shown: null, counted: null };
  const { query, slots } = compile(
    'select dept, sum(amt) from person group by dept',
    CATALOG,
    accessOf(world),
  );
  verifyMinima(query, slots);
  if (query.kind !== 'select') throw new Error('a SELECT is one');
  const faulty: Readonly<Record<string, Query>> = {
    'no HAVING': { ...query, having: [] },
    'no fence': { ...query, offset: null },
    'a set of none': { ...query, having: [], groupBy: [], groupingSets: [[], []] },
    'not grouped': { ...query, grouped: false },
    'a bare aggregate': walk.mapQuery(query, {
      expr: (e) => (e.kind === 'case' ? (e.arms[0]?.result ?? e) : e),
    }),
    'a count of more rows than are summed': walk.mapQuery(query, {
      expr: (e) => (e.kind === 'aggregate' && e.distinct ? { ...e, filter: null } : e),
    }),
    'the key itself': walk.mapQuery(query, {
      expr: (e) => (e.kind === 'column' && e.name === 'dept' ? { ...e, name: '#group' } : e),
    }),
  };
  for (const [name, plan] of Object.entries(faulty)) t.throws(() => verifyMinima(plan, slots), name);
});

const diceOfOne: Dice = {
  upTo: () => 0,
  chance: () => false,
  of: ([first]) => {
    if (first === undefined) throw new Error('nothing to choose from');
    return first;
  },
  some: () => [],
  times: (min, _max, make) => Array.from({ length: min }, (_, i) => make(i)),
};
