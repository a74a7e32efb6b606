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
import { type Expr, type Query, verifyMinima, walk } from './internals.js';

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
  /** Of whom the row is, where a minimum counts households. */
  readonly home: number | null;
}

const columns: readonly Column[] = (
  [
    ['id', 'int4'],
    ['dept', 'text'],
    ['city', 'text'],
    ['amt', 'int4'],
    ['home', 'int4'],
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
  readonly rules: Rules;
}

/** What a grant asks beside its minimum. */
interface Rules {
  readonly unit?: 'home';
  readonly distinct?: ReadonlyMap<'city' | 'dept', number>;
  readonly dominance?: number;
}

function randomRules(dice: Dice): Rules {
  const columns = dice.some(['city', 'dept'] as const, 0.3);
  return {
    ...(dice.chance(0.3) && { unit: 'home' as const }),
    ...(columns.length > 0 && { distinct: new Map(columns.map((c) => [c, 2 + dice.upTo(1)])) }),
    ...(dice.chance(0.4) && { dominance: dice.of([30, 40, 50, 60, 80]) }),
  };
}

function randomWorld(dice: Dice): World {
  const counted = dice.chance(0.5) ? dice.of(CONDITIONS) : null;
  const shown = dice.chance(0.5) ? dice.of(CONDITIONS) : null;
  return {
    people: dice.times(3, 14, (i) => ({
      id: i + 1,
      dept: dice.chance(0.1) ? null : dice.of(['a', 'b', 'c']),
      city: dice.of(['rome', 'riga', 'oslo']),
      amt: dice.chance(0.25) ? null : dice.chance(0.2) ? dice.of([-20, 20, 9]) : dice.upTo(6),
      home: dice.chance(0.1) ? null : dice.upTo(5),
    })),
    minimum: 2 + dice.upTo(2),
    // Where all rows are shown there is no minimum, and of no rows a total all the same.
    shown: shown === counted ? null : shown,
    counted,
    rules: randomRules(dice),
  };
}

function accessOf({ minimum, shown, counted, rules }: World): Access {
  const grant = (id: string, filter: Condition | null): RelationGrant => ({
    id,
    columns: new Set(columns.map((c) => c.name)),
    unmask: new Set(),
    filter: filter === null ? null : bindPredicate(filter.sql, PERSON),
  });
  const grants = [
    { ...grant('counted', counted), groups: { minimum, metrics: null, ...rules } },
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
  /** What each row brings to it, where one may not bring most of it. */
  readonly parts?: (people: readonly Person[]) => readonly number[];
}

const given = (p: Person): boolean => p.amt !== null;
const total = (people: readonly Person[]): number => people.reduce((n, p) => n + (p.amt ?? 0), 0);
const distinctOf = (people: readonly Person[]): number[] => [...new Set(people.map((p) => p.amt ?? 0))];
const FIGURES: readonly Figure[] = [
  { sql: 'count(*)', takes: () => true, of: (people) => String(people.length) },
  { sql: 'count(amt)', takes: given, of: (people) => String(people.length) },
  {
    sql: 'sum(amt)',
    takes: given,
    of: (people) => (people.length === 0 ? null : String(total(people))),
    parts: (people) => people.map((p) => p.amt ?? 0),
  },
  {
    sql: 'sum(distinct amt)',
    takes: given,
    of: (people) => (people.length === 0 ? null : String(distinctOf(people).reduce((n, a) => n + a, 0))),
    parts: (people) => distinctOf(people),
  },
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
function recounted(
  question: Question,
  { people: all, minimum, shown, counted, rules }: World,
): readonly string[] {
  const { unit, distinct, dominance } = rules;
  // Where households are counted, who is of none is nobody.
  const people = unit === undefined ? all : all.filter((p) => p.home !== null);
  const isShown = (p: Person): boolean => shown !== null && meets(shown, p);
  const visible = people.filter((p) => (isShown(p) || meets(counted, p)) && meets(question.where, p));
  const enough = (some: readonly Person[]): boolean => isVaried(some.filter((p) => !isShown(p)));
  const isVaried = (hidden: readonly Person[]): boolean =>
    new Set(hidden.map((p) => (unit === undefined ? p.id : p.home))).size >= minimum &&
    [...(distinct ?? [])].every(
      ([column, least]) => new Set(hidden.flatMap((p) => p[column] ?? [])).size >= least,
    );
  const isShared = (figure: Figure, some: readonly Person[]): boolean => {
    if (dominance === undefined || figure.parts === undefined) return true;
    const parts = figure.parts(some.filter((p) => !isShown(p))).map(Math.abs);
    const whole = parts.reduce((n, part) => n + part, 0);
    return parts.every((part) => part * 100 <= whole * dominance);
  };
  const groups = (question.sets ?? [question.keys]).flatMap((set) => [...groupedBy(set, question, visible)]);
  const rows: string[] = [];
  for (const [key, group] of groups) {
    const present = question.keys.length === 0 || enough(group) || group.some(isShown);
    if (!present) continue;
    const values = question.figures.map(({ figure, filter }) => {
      const taken = group.filter((p) => figure.takes(p) && meets(filter, p));
      if (enough(taken) && isShared(figure, taken)) return figure.of(taken);
      return shown === null ? null : figure.of(taken.filter(isShown));
    });
    rows.push(JSON.stringify([...(JSON.parse(key) as unknown[]), ...values])); // made two lines above
  }
  return rows.sort();
}

function tableSql(people: readonly Person[]): string {
  const text = (v: string | number | null): string => (v === null ? 'null' : `'${v}'`);
  const rows = people.map(
    (p) => `(${p.id}, ${text(p.dept)}, ${text(p.city)}, ${text(p.amt)}, ${text(p.home)})`,
  );
  return `drop table if exists grp.person; create table grp.person (id int4, dept text, city text, amt int4, home int4);
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

/** What a compiler would make of the world that had forgotten a rule; each must give itself away. */
const FORGETFUL: Readonly<Record<string, (rules: Rules) => Rules>> = {
  unit: ({ unit: _, ...rest }) => rest,
  distinct: ({ distinct: _, ...rest }) => rest,
  dominance: ({ dominance: _, ...rest }) => rest,
  'a value too few': (rules) => ({
    ...rules,
    ...(rules.distinct !== undefined && {
      distinct: new Map([...rules.distinct].map(([c, n]) => [c, n - 1])),
    }),
  }),
  'a percent too many': (rules) => ({ ...rules, dominance: Math.min(100, (rules.dominance ?? 100) + 12) }),
};

for (const [fault, forget] of Object.entries(FORGETFUL)) {
  t.test(`the recount notices a plan without: ${fault}`, async (t) => {
    const noticed = await fc.check(
      fc.asyncProperty(diceArbitrary, async (dice) => {
        const world = { ...randomWorld(dice), shown: null };
        await engine.setUp(tableSql(world.people));
        const forgetful = accessOf({ ...world, rules: forget(world.rules) });
        for (let i = 0; i < PER_WORLD; i++) {
          const question = randomQuestion(dice);
          if (!same(await askedAs(question, forgetful), recounted(question, world))) return false;
        }
        return true;
      }),
      { numRuns: 200, seed: SEED, endOnFailure: true },
    );
    t.ok(noticed.failed, `after ${noticed.numRuns} worlds`);
  });
}

const same = (a: readonly string[], b: readonly string[]): boolean => a.join('\n') === b.join('\n');

async function askedAs(question: Question, access: Access): Promise<readonly string[]> {
  const { sql, slots } = emit(compile(question.sql, CATALOG, access));
  const values = slots.map((s) => (s.kind === 'literal' && typeof s.value === 'string' ? s.value : null));
  const { rows } = await engine.ask(sql, values);
  return rows.map((r) => JSON.stringify(r)).sort();
}

t.test('a sample has the rows that are shown, or is refused', async (t) => {
  const world = { ...randomWorld(diceOfOne), shown: null, counted: null, rules: {} };
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
  const world = { ...randomWorld(diceOfOne), shown: null, counted: null, rules: {} };
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
  const strict: Rules = { distinct: new Map([['city', 2]]), dominance: 50 };
  const ruled = compile(
    'select dept, sum(amt) from person group by dept',
    CATALOG,
    accessOf({ ...world, rules: strict }),
  );
  verifyMinima(ruled.query, ruled.slots);
  const without = (gone: (e: Expr) => boolean): Query =>
    walk.mapQuery(ruled.query, {
      expr: (e) => (e.kind === 'and' ? { ...e, args: e.args.filter((a) => !gone(a)) } : e),
    });
  const about = (e: Expr, name: string): boolean => e.kind === 'operation' && e.definition.name === name;
  const less: Readonly<Record<string, Query>> = {
    'no count of values': without((e) => JSON.stringify(e).includes('"#group 0"') && about(e, '>=')),
    'no share of one': without((e) => about(e, '<=')),
    'the share of the greatest alone': without((e) => about(e, '<=') && JSON.stringify(e).includes('"min"')),
  };
  for (const [name, plan] of Object.entries(less)) t.throws(() => verifyMinima(plan, ruled.slots), name);
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
