import { type Attack, type AttackClass, CLASSES } from './attacks/index.js';
import { type Endpoint, type EndpointKind, NotExpressible } from './endpoint.js';
import { type AttackOutcome, type AttackVerdict, judge } from './judge.js';
import { createWorlds, dropWorlds } from './world.js';

export interface EndpointRun {
  readonly name: string;
  readonly what: string;
  readonly seconds: number;
  readonly verdicts: readonly AttackVerdict[];
  /** By class: legitimate questions that were answered, of how many. */
  readonly usable: ReadonlyMap<AttackClass, { readonly answered: number; readonly of: number }>;
}

/** Tries attacks on endpoints one after another, in worlds that are made for them and dropped afterwards. */
export async function runEndpoints(
  kinds: readonly EndpointKind[],
  url: string,
  attacks: readonly Attack[],
  onRun: (run: EndpointRun) => void = () => undefined,
): Promise<readonly EndpointRun[]> {
  const runs: EndpointRun[] = [];
  const done = (run: EndpointRun): void => {
    runs.push(run);
    onRun(run);
  };
  const groups = new Map<string, EndpointKind[]>();
  for (const kind of kinds) {
    const name = kind.shares ?? kind.name;
    groups.set(name, [...(groups.get(name) ?? []), kind]);
  }
  for (const [name, group] of groups) await runGroup(name, group, url, attacks, done);
  return runs;
}

async function runGroup(
  name: string,
  kinds: readonly EndpointKind[],
  url: string,
  attacks: readonly Attack[],
  done: (run: EndpointRun) => void,
): Promise<void> {
  const prefix = `leakbench_${name.replace(/\W+/g, '_').toLowerCase()}`;
  const worlds = await createWorlds(url, prefix, kinds[0]?.data ?? 'everything');
  const endpoints: Endpoint[] = [];
  try {
    for (const kind of kinds) {
      const start = performance.now();
      const endpoint = await kind.start(worlds);
      endpoints.push(endpoint);
      const verdicts: AttackVerdict[] = [];
      for (const attack of coldFirst(attacks)) verdicts.push(await judge(endpoint, attack));
      const usable = await usability(endpoint);
      const seconds = (performance.now() - start) / 1_000;
      done({ name: kind.name, what: endpoint.what, seconds, verdicts, usable });
    }
  } finally {
    for (const endpoint of endpoints) await endpoint.close();
    await dropWorlds(url, prefix);
  }
}

/** The attacks that others warm caches for come first: the clerk has then filled none. */
export function coldFirst(attacks: readonly Attack[]): readonly Attack[] {
  const isWarm = ({ before }: Attack): boolean => before !== undefined;
  return [...attacks.filter(isWarm), ...attacks.filter((attack) => !isWarm(attack))];
}

async function usability(endpoint: Endpoint): Promise<EndpointRun['usable']> {
  const usable = new Map<AttackClass, { answered: number; of: number }>();
  for (const of of CLASSES) {
    let answered = 0;
    for (const question of QUESTIONS[of]) if (await isAnswered(endpoint, question)) answered++;
    usable.set(of, { answered, of: QUESTIONS[of].length });
  }
  return usable;
}

async function isAnswered(endpoint: Endpoint, [expected, ...steps]: LegitimateQuestion): Promise<boolean> {
  const session = await endpoint.open('a');
  try {
    let cell: string | null = null;
    for (const step of steps) {
      const { rows, error } = await session.ask(step);
      if (error !== null) return false;
      cell = rows[0]?.[0] ?? null;
    }
    return plain(cell) === expected;
  } catch (error) {
    if (error instanceof NotExpressible) return false;
    throw error;
  } finally {
    await session.close();
  }
}

/** A cell without the quotes of JSON, and truth values as words. */
function plain(cell: string | null): string | null {
  const text = cell?.replace(/^"(.*)"$/, '$1') ?? null;
  return text === 't' ? 'true' : text === 'f' ? 'false' : text;
}

/** Verdicts of a run by class and outcome. */
export function countsOf(
  run: Pick<EndpointRun, 'verdicts'>,
): ReadonlyMap<AttackClass, Readonly<Record<AttackOutcome, number>>> {
  return new Map(
    CLASSES.map((of) => {
      const own = run.verdicts.filter((v) => v.attack.class === of);
      const count = (outcome: AttackOutcome): number => own.filter((v) => v.outcome === outcome).length;
      return [
        of,
        {
          leak: count('leak'),
          answered: count('answered'),
          refused: count('refused'),
          'not expressible': count('not expressible'),
          noise: count('noise'),
        },
      ];
    }),
  );
}

/**
 * A question that the clerk may ask: the first cell of its answer, then its statements. An endpoint that refuses
 * everything would be of no use.
 */
type LegitimateQuestion = readonly [answer: string, ...steps: string[]];

const QUESTIONS: Readonly<Record<AttackClass, readonly LegitimateQuestion[]>> = {
  errors: [
    ['1', 'select id from customer where 100 / credit > 0 order by id'],
    ['101', 'select code::int from customer order by id limit 1'],
    ['1970', 'select extract(year from born)::int from customer order by id limit 1'],
  ],
  predicates: [
    ['7', "select id from customer where name = 'Customer 7'"],
    ['12', 'select count(*) from customer where vip'],
    ['60', "select count(*) from customer where tags @> array['all']"],
  ],
  joins: [
    ['200', 'select count(*) from purchase p join customer c on c.id = p.customer_id'],
    ['North', 'select r.label from customer c join region r on r.code = c.region limit 1'],
    ['3', 'select count(*) from region r left join customer c on c.region = r.code and c.id = 1'],
  ],
  aggregates: [
    ['60', 'select count(*) from customer'],
    ['12', 'select count(*) from customer group by vip order by 1 limit 1'],
    ['60', 'select row_number() over (order by id) from customer order by 1 desc limit 1'],
  ],
  casts: [
    ['1', 'select * from customer order by id limit 1'],
    ['customer 1', 'select lower(name) from customer order by id limit 1'],
    ['1', 'select id::text from customer order by id limit 1'],
  ],
  catalog: [
    [
      '8',
      "select count(*) from information_schema.columns where table_name = 'customer' and column_name not in ('email', 'ssn', 'notes')",
    ],
    ['1', "select count(*) from information_schema.tables where table_name = 'purchase'"],
    ['customer', "select relname from pg_class where relname = 'customer' limit 1"],
  ],
  cursors: [
    ['1', 'begin', 'declare c cursor for select id from customer order by id', 'fetch 1 from c'],
    ['1', 'prepare p as select id from customer order by id', 'execute p'],
    ['2', 'prepare p(int) as select id from customer where id = $1', 'execute p(2)'],
  ],
  copy: [
    ['1\n', 'copy (select id from customer order by id limit 1) to stdout'],
    ['60\n', 'copy (select count(*) from customer) to stdout'],
    ['North\n', "copy (select label from region where code = 'north') to stdout"],
  ],
  session: [
    ['60', "set application_name = 'report'", 'select count(*) from customer'],
    ['60', 'begin read only', 'select count(*) from customer'],
    ['60', 'set statement_timeout = 5000', 'select count(*) from customer'],
  ],
  identity: [
    ['true', 'select current_user is not null'],
    ['60', 'select count(*) from customer'],
    ['200', 'select count(*) from purchase'],
  ],
  inference: [
    ['1', 'select id from customer order by id limit 1'],
    ['7', 'select count(distinct credit) from customer'],
    ['60', 'select max(id) from customer'],
  ],
  timing: [
    ['60', 'select count(*) from customer'],
    ['9', 'select count(distinct item) from purchase'],
    ['13', 'select count(distinct amount) from purchase'],
  ],
};
