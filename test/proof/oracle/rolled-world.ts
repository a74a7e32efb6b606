import type * as Compiler from 'osl-compiler';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { toQueryRequest } from '../../../src/surfaces/rest/bodies/query.js';
import { accessOf } from '../../model/graph/world.js';
import type { Engine } from '../golden/engine.js';
import { padOf } from '../golden/outcome.js';
import type { Dice } from './dice.js';

/** Sales with NULLs, equal keys and moments at the edges of periods; random rollups and a random policy over them. */

const COLUMNS: Readonly<Record<string, readonly [type: string, label: string | null]>> = {
  id: ['int8', null],
  region: ['text', null],
  kind: ['text', null],
  secret: ['text', 'pii'],
  status: ['int4', null],
  day: ['date', 'birth'],
  at: ['timestamptz', null],
  local: ['timestamp', null],
  qty: ['int4', null],
  big: ['int8', null],
  amount: ['numeric', 'pay'],
};
const DIMENSIONS = ['region', 'kind', 'secret', 'status', 'day'] as const;
const MEASURES = ['qty', 'big', 'amount'] as const;
const GRAINS = ['hour', 'day', 'week', 'week', 'month'] as const;

type Rows = readonly (string | null)[][];

function randomRows(dice: Dice): Rows {
  const or = (text: string): string | null => (dice.chance(0.12) ? null : text);
  const two = (n: number): string => String(n).padStart(2, '0');
  const moment = (): string => {
    const hour = dice.chance(0.4)
      ? '00:00:00'
      : `${two(dice.upTo(23))}:${dice.of(['00:00', '30:00', '59:59'])}`;
    return `2026-${two(1 + dice.upTo(3))}-${dice.of(['01', '02', '15', '28'])} ${hour}`;
  };
  return dice.times(0, 60, (id) => [
    String(id),
    or(dice.of(['eu', 'us', 'EU'])),
    or(dice.of(['a', 'b'])),
    or(dice.of(['x', 'y', 'z'])),
    or(String(dice.upTo(2))),
    or(`2026-01-${dice.of(['01', '10', '20'])}`),
    or(`${moment()}+00`),
    or(moment()),
    or(String(dice.upTo(9) - 3)),
    or(dice.of(['9007199254740993', '-1', '7'])),
    or(dice.of(['1.50', '2', '-0.125', '10.0'])),
  ]);
}

function literal(value: string | null): string {
  return value === null ? 'NULL' : `'${value}'`;
}

function randomManifest(dice: Dice): string {
  const columns = Object.fromEntries(
    Object.entries(COLUMNS).map(([name, [type, label]]) => [
      name,
      label === null ? { type } : { type, sensitivity: label },
    ]),
  );
  const rollups = dice.times(1, 2, (i): [string, unknown] => {
    const time = dice.chance(0.8)
      ? { column: dice.of(['at', 'local', 'local']), grain: dice.of(GRAINS) }
      : null;
    const parts = { dimensions: dice.some(DIMENSIONS, 0.9), measures: dice.some(MEASURES, 0.9) };
    return [`r${i}`, { entity: 'sale', max_age: 60, ...parts, ...(time === null ? {} : { time }) }];
  });
  return JSON.stringify({
    version: 1,
    tenant: 'acme',
    connectors: { db: { kind: 'pglite', tables: { 's.sales': { columns } } } },
    entities: {
      sale: {
        source: 'db.s.sales',
        primary_key: ['id'],
        columns: Object.keys(COLUMNS),
        time_dimension: dice.of(['at', 'local']),
      },
    },
    metrics: {
      rows: { entity: 'sale', expression: 'count(*)' },
      pieces: { entity: 'sale', expression: 'sum(qty)' },
      mean: { entity: 'sale', expression: 'avg(amount)' },
      open: { entity: 'sale', expression: 'sum(amount)', filter: 'status = 1' },
      share: { type: 'ratio', numerator: 'pieces', denominator: 'rows' },
    },
    rollups: Object.fromEntries(rollups),
  });
}

const FILTERS = [
  "region = 'eu'",
  "region = attribute('region')",
  "region = attribute('region')",
  "kind = 'a' or status = 1",
  'status = 1 or status is null',
  "kind <> 'a'",
  "secret = 'x'",
  'qty > 2',
  'amount is not null',
  "day >= date '2026-01-10'",
];

function randomPolicy(dice: Dice): string {
  const columns = (): unknown =>
    dice.chance(0.5) ? '*' : ['id', 'at', 'local', ...dice.some([...DIMENSIONS, ...MEASURES], 0.85)];
  const grants = dice.times(1, 2, () => ({
    on: 'sale',
    columns: columns(),
    ...(dice.chance(0.5) && { rows: dice.of(FILTERS) }),
    ...(dice.chance(0.8) && { unmask: dice.some(['pii', 'birth', 'pay'], 0.7) }),
    ...(dice.chance(0.04) && { min_group_size: 3 }),
  }));
  return JSON.stringify({
    version: 1,
    tenant: 'acme',
    subjects: { ann: { ceiling: ['r'], attributes: { region: dice.of([['eu'], ['us', 'EU'], []]) } } },
    roles: { r: { grants } },
    masks: {
      pii: dice.of(['redact', 'hash', 'partial', 'null']),
      birth: dice.of(['year', 'null', 'redact']),
      pay: 'null',
    },
  });
}

const KEYS = [
  'region',
  'kind',
  'secret',
  'status',
  'day',
  'qty',
  'upper(region)',
  "date_trunc('day', local)",
  "date_trunc('month', local)",
  "date_trunc('month', local)",
  "date_trunc('week', local)",
  "date_trunc('hour', local)",
  "coalesce(kind, '-')",
];
const FIGURES = [
  'count(*)',
  'count(qty)',
  'count(amount)',
  'count(secret)',
  'count(status)',
  'count(distinct region)',
  'count(distinct qty)',
  'sum(qty)',
  'sum(big)',
  'sum(amount)',
  'sum(status)',
  'sum(status)',
  'sum(status)',
  'sum(distinct qty)',
  'sum(qty * 2)',
  'avg(qty)',
  'avg(big)',
  'avg(amount)',
  'min(qty)',
  'max(qty)',
  'max(big)',
  'min(region)',
  'max(day)',
  'max(secret)',
  'min(local)',
  'max(amount)',
  'bool_or(status = 1)',
  'bool_and(qty > 0)',
  "string_agg(kind, ',' order by kind)",
  'sum(sum(qty)) over ()',
  'min(7)',
  'count(distinct random())',
];
const CONDITIONS = [
  "region = 'eu'",
  "kind in ('a', 'b')",
  'status > 0',
  'kind is null',
  'qty > 2',
  "secret = 'x'",
  "day >= date '2026-01-10'",
  "local >= timestamp '2026-02-01 00:00:00'",
  "local < timestamp '2026-03-01'",
  "local < timestamp '2026-02-02 00:00:00'",
  "local >= timestamp '2026-02-01 00:30:00'",
  "local > timestamp '2026-02-01 00:00:00'",
  "local <= timestamp '2026-02-01 00:00:00'",
  "at >= timestamptz '2026-02-01 00:00:00+00'",
  "at >= timestamptz '2026-02-01 00:00:00+02'",
  "at < timestamptz '2026-02-15 00:00:00+00'",
];

/** A question in OSL-SQL, or a metrics body. */
export type RolledQuestion =
  | { readonly text: string }
  | { readonly metrics: Extract<ReturnType<typeof toQueryRequest>['body'], { kind: 'metrics' }>['request'] };

function randomText(dice: Dice): string {
  const keys = dice.some(KEYS, 0.11);
  const figures = dice.times(1, 2, () => {
    const figure = dice.of(FIGURES);
    const filtered = dice.chance(0.15) && !figure.includes('over');
    return filtered ? `${figure} filter (where ${dice.of(CONDITIONS)})` : figure;
  });
  const where = dice.chance(0.5) ? ` where ${dice.times(1, 2, () => dice.of(CONDITIONS)).join(' and ')}` : '';
  const group = keys.length === 0 ? '' : ` group by ${keys.join(', ')}`;
  const having = dice.chance(0.15) ? ` having ${dice.of(['count(*) > 1', 'sum(qty) > 3'])}` : '';
  const limit =
    keys.length > 0 && dice.chance(0.2) ? ` order by ${keys.map((_, i) => i + 1).join(', ')} limit 3` : '';
  const listed = [...keys, ...figures].map((e, i) => `${e} as o${i}`).join(', ');
  const text = `select ${listed} from sale${where}${group}${having}${limit}`;
  return dice.chance(0.1) ? `select count(*) as n, max(o0) as m from (${text}) as x` : text;
}

function randomMetrics(dice: Dice): RolledQuestion {
  const named = dice.some(['rows', 'pieces', 'mean', 'open', 'share'], 0.4);
  const dimensions = dice.some(['sale__region', 'sale__status', 'sale__kind'], 0.35);
  const grain = dice.of(['day', 'week', 'month', 'hour']);
  const days = ['2026-01-01', '2026-02-01', '2026-02-02', '2026-03-01'];
  const { body } = toQueryRequest({
    metrics: named.length === 0 ? ['rows'] : named,
    group_by: [...dimensions, ...(dice.chance(0.5) ? [`metric_time__${grain}`] : [])],
    ...(dice.chance(0.4) && { time_constraint: { start: dice.of(days), end: dice.of(days) } }),
  });
  if (body.kind !== 'metrics') throw new Error('no metrics body');
  return { metrics: body.request };
}

/** Tables, rollups and a caller; and what the caller is answered. */
export interface RolledWorld {
  readonly manifest: ReturnType<typeof parseManifest>;
  readonly access: Compiler.Access;
  readonly rollups: ReadonlySet<string>;
  question(): RolledQuestion;
  /** The rows of a plan, in no order. */
  answer(compiler: typeof Compiler, plan: Compiler.GovernedPlan): Promise<string>;
}

/** Null where the policy is none. */
export async function rolledWorld(dice: Dice, engine: Engine): Promise<RolledWorld | null> {
  const manifest = parseManifest(randomManifest(dice), 'manifest.yaml');
  const policy = randomPolicy(dice);
  const access = accessOf(manifest, policy, 'ann');
  const rows = randomRows(dice);
  const columns = Object.entries(COLUMNS).map(([name, [type]]) => `${name} ${type}`);
  const values = rows.map((r) => `(${r.map(literal).join(', ')})`);
  const facts = [...manifest.rollups.values()];
  await engine.setUp(
    [
      'drop table if exists s.sales',
      `create table s.sales (${columns.join(', ')})`,
      ...(values.length === 0 ? [] : [`insert into s.sales values ${values.join(', ')}`]),
      ...facts.flatMap(({ rollup, query }) => [
        `drop table if exists osl_rollups."${rollup.table}"`,
        `create table osl_rollups."${rollup.table}" as ${query}`,
      ]),
    ].join('; '),
  );
  return {
    manifest,
    access,
    rollups: new Set(manifest.rollups.keys()),
    question: () => (dice.chance(0.25) ? randomMetrics(dice) : { text: randomText(dice) }),
    async answer(compiler, plan) {
      const { sql, slots } = compiler.emit(plan);
      const given = compiler.valuesOf<string | null>(slots, {
        text: (v) => v,
        client: () => null,
        attribute: (subject, name) => access.attributeValues(subject, name),
        pad: (pad, domain) => padOf(pad, domain).toString('hex'),
        runtime: () => '[]',
        keys: () => [],
        given: () => '',
      });
      const { sqlstate, rows: got } = await engine.ask(sql, given);
      return sqlstate ?? JSON.stringify(got.map((r) => JSON.stringify(r)).sort());
    },
  };
}

/** The plan of a question, or why there is none: its code, or `alarm` where the verifier raised one. */
export function planIn(
  compiler: typeof Compiler,
  { manifest, access }: RolledWorld,
  question: RolledQuestion,
  rollups: ReadonlySet<string>,
): Compiler.GovernedPlan | string {
  try {
    return 'text' in question
      ? compiler.compile(question.text, manifest.catalog, access, { rollups })
      : compiler.compileMetrics(question.metrics, manifest.catalog, access, { rollups });
  } catch (error) {
    if (error instanceof compiler.QueryError) return error.code;
    if (error instanceof compiler.InternalError) return 'alarm';
    throw error;
  }
}
