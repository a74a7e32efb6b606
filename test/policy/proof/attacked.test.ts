import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ready } from 'osl-compiler';
import t, { test } from 'tap';
import { decide, openTrials } from '../../../cli/policy-proof/decide.js';
import { Solver } from '../../../cli/policy-proof/solver.js';
import { observe } from '../../../cli/policy-tests/observe.js';
import { openTestService } from '../../../cli/policy-tests/test-service.js';
import { compileSnapshot, type GrantDocument, type PolicyDocument } from '../../../policy/index.js';
import { type Claim, obligationsOf } from '../../../policy/proof/index.js';
import { SEED } from '../../support/fast-check.js';

/**
 * Tries what is proved of random policies with random rows and callers, through the product. `OSL_PROOFS` says how
 * many policies; each is tried with 120 rows and several callers.
 */

const POLICIES = Number(process.env['OSL_PROOFS'] ?? 10);
const ROWS = 120;

t.setTimeout(600_000);
await ready();

const COLUMNS = ['id', 'owner', 'region', 'balance', 'opened', 'active'];
const MANIFEST = `version: 1
tenant: acme
connectors:
  app:
    kind: pglite
    tables:
      public.account:
        columns:
          id: { type: int4, nullable: false }
          owner: { type: text }
          region: { type: text }
          balance: { type: numeric }
          opened: { type: date }
          active: { type: bool }
entities:
  account:
    source: app.public.account
    primary_key: [id]
    columns: [${COLUMNS.join(', ')}]
`;

const ATOMS = [
  "region = attribute('region')",
  "region = attribute('region')",
  "region = 'eu'",
  "region <> 'us'",
  'region is null',
  'active',
  'not active',
  'active is not true',
  'balance > 100',
  'balance <= 100',
  'balance is null',
  "opened > '2026-01-01'",
  "opened between '2025-12-31' and '2026-01-01'",
  'id < 40',
  'id in (1, 2, 3)',
  "owner like 'a%'",
  "coalesce(owner, 'ann') = 'ann'",
  "lower(owner) = 'ann'",
];

const VALUES: Readonly<Record<string, readonly (string | null)[]>> = {
  owner: [null, 'ann', 'Ann', 'bob', 'a', ''],
  region: [null, 'eu', 'us', 'ap'],
  balance: [null, '100', '100.01', '99', 'NaN', 'Infinity'],
  opened: [null, '2025-12-31', '2026-01-01', '2026-01-02', 'infinity'],
  active: [null, 'true', 'false'],
};

/** Values of the attribute `region`; undefined if the caller has none. */
const REGIONS = [undefined, [], ['eu'], ['us'], ['eu', 'ap'], { any: true }] as const;

class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#state / 4_294_967_296;
  }

  one<T>(of: readonly T[]): T {
    const found = of[Math.floor(this.next() * of.length)];
    if (found === undefined) throw new Error('nothing to choose from');
    return found;
  }
}

function predicate(random: Random): string {
  const [a, b, c] = [random.one(ATOMS), random.one(ATOMS), random.one(ATOMS)];
  return random.one([
    a,
    `(${a}) and (${b})`,
    `(${a}) or (${b})`,
    `(${a}) and not (${b})`,
    `((${a}) or (${b})) and (${c})`,
  ]);
}

function grants(random: Random): readonly GrantDocument[] {
  return Array.from({ length: 1 + Math.floor(2 * random.next()) }, () => {
    const columns = ['id', ...COLUMNS.slice(1).filter(() => random.next() < 0.6)];
    return { on: 'account', columns, ...(random.next() < 0.9 && { rows: predicate(random) }) };
  });
}

function policyOf(random: Random, where: string): PolicyDocument {
  const wide = grants(random);
  // Narrower ones are rare by chance, so that half of them are made of the others.
  const narrow = wide.map((g) => ({
    ...g,
    rows: g.rows === undefined ? predicate(random) : `(${g.rows}) and (${predicate(random)})`,
  }));
  const regional = random.next() < 0.3;
  const own = random.next() < 0.5 ? narrow : grants(random);
  const bound = (g: GrantDocument): GrantDocument =>
    regional ? { ...g, rows: `region = attribute('region') and (${g.rows ?? 'true'})` } : g;
  const subjects = Object.fromEntries(
    REGIONS.flatMap((region, i) =>
      ['a', 'b', 'where'].map((role) => [
        `user:${role}${i}`,
        { ceiling: [role], attributes: region === undefined ? {} : { region } },
      ]),
    ),
  );
  return {
    version: 1,
    tenant: 'acme',
    subjects,
    roles: {
      a: { grants: own.map(bound) },
      b: { grants: wide.map(bound) },
      where: { grants: [{ on: 'account', columns: ['id'], rows: where }] },
    },
    masks: {},
  };
}

test('no row and no caller contradicts what was proved', async (t) => {
  const random = new Random(SEED);
  const dir = t.testdir();
  writeFileSync(join(dir, 'manifest.yaml'), MANIFEST);
  writeFileSync(join(dir, 'policy.yaml'), 'version: 1\ntenant: acme\nsubjects: {}\nroles: {}\nmasks: {}\n');
  const files = { manifestFile: join(dir, 'manifest.yaml'), policyFile: join(dir, 'policy.yaml') };
  const solver = await Solver.start();
  const trials = openTrials(files);
  const stand = await openTestService({ ...files, data: new Map() });
  t.teardown(async () => {
    solver.stop();
    await trials.close();
    await stand.close();
  });
  const rows: readonly Readonly<Record<string, unknown>>[] = Array.from({ length: ROWS }, (_, id) => ({
    id,
    ...Object.fromEntries(Object.entries(VALUES).map(([name, of]) => [name, random.one(of)])),
  }));
  await stand.refill(new Map([['app.public.account', rows]]));
  const { catalog } = stand.service.model().manifest;
  const counts = { proved: 0, refuted: 0, unknown: 0, tried: 0 };

  for (let n = 0; n < POLICIES; n++) {
    const where = predicate(random);
    const snapshot = compileSnapshot(policyOf(random, where), catalog, 'acme');
    /** By row: the columns whose values a caller sees; other cells are NULL or redacted. */
    const seenBy = async (subject: string): Promise<ReadonlyMap<number, string>> => {
      const seen = new Map<number, string>();
      for (const column of COLUMNS) {
        const outcome = await observe(stand, snapshot, {
          chain: [subject],
          roles: null,
          from: {},
          asked: { kind: 'osql', text: `select id, ${column} as x from osl.entities.account` },
        });
        if (outcome.kind !== 'answer') continue;
        for (const { id, x } of outcome.rows) {
          const own = seen.get(Number(id)) ?? '';
          const value = rows[Number(id)]?.[column];
          seen.set(Number(id), x !== null && String(x) === String(value) ? `${own} ${column}` : own);
          counts.tried += 1;
        }
      }
      return seen;
    };
    const seen = new Map<string, ReadonlyMap<number, string>>();
    for (const [i] of REGIONS.entries())
      for (const role of ['a', 'b', 'where']) seen.set(`${role}${i}`, await seenBy(`user:${role}${i}`));
    const of = (role: string, i: number): ReadonlyMap<number, string> => seen.get(`${role}${i}`) ?? new Map();
    const callers = REGIONS.map((_, i) => i);
    const isApart = (i: number, j: number): boolean => (i === 2 && j === 3) || (i === 3 && j === 4);
    /** A contradiction to each claim, as a sentence; null if there is none. */
    const claims: readonly { readonly claim: Claim; readonly contradiction: () => string | null }[] = [
      {
        claim: { kind: 'never', roles: ['a'], sees: 'account', where },
        contradiction: () =>
          first(
            callers,
            (i) =>
              [...of('a', i).keys()]
                .filter((id) => !of('where', i).has(id))
                .map((id) => JSON.stringify(rows[id]))[0],
          ),
      },
      {
        claim: { kind: 'narrower', role: 'a', than: 'b' },
        contradiction: () =>
          first(callers, (i) => {
            const [id, columns] =
              [...of('a', i)].find(([id, columns]) => {
                const theirs = of('b', i).get(id);
                return theirs === undefined || columns.split(' ').some((c) => !theirs.split(' ').includes(c));
              }) ?? [];
            if (id === undefined) return undefined;
            return `${JSON.stringify(rows[id])}: a sees${columns}, and b${of('b', i).get(id) ?? ' not the row'}`;
          }),
      },
      {
        claim: { kind: 'disjoint', attribute: 'region', on: ['account'] },
        contradiction: () =>
          first(
            callers,
            (i) =>
              callers
                .filter((j) => isApart(i, j))
                .flatMap((j) =>
                  ['a', 'b'].flatMap((r) => ['a', 'b'].map((s) => [of(r, i), of(s, j)] as const)),
                )
                .flatMap(([one, two]) => [...one.keys()].filter((id) => two.has(id)))
                .map((id) => JSON.stringify(rows[id]))[0],
          ),
      },
    ];
    for (const { claim, contradiction } of claims) {
      // Of `disjoint` the role that evaluates the predicate is no part.
      const policy = { catalog, snapshot: claim.kind === 'disjoint' ? without(snapshot, 'where') : snapshot };
      const verdict = await decide(obligationsOf(claim, policy), solver, trials.run);
      counts[verdict.kind] += 1;
      const against = contradiction();
      if (verdict.kind === 'proved' && against !== null)
        t.fail(`${JSON.stringify(claim)} was proved: ${against}\n${JSON.stringify(snapshot.document.roles)}`);
      if (verdict.kind === 'unknown' && !JSON.stringify([snapshot.document.roles, claim]).includes('lower'))
        t.fail(
          `${JSON.stringify(claim)} is unknown: ${verdict.because}\n${JSON.stringify(snapshot.document.roles)}`,
        );
    }
  }
  t.ok(counts.proved > POLICIES / 4 && counts.refuted > POLICIES / 4, JSON.stringify(counts));
});

function first(callers: readonly number[], of: (caller: number) => string | undefined): string | null {
  for (const caller of callers) {
    const found = of(caller);
    if (found !== undefined) return `caller ${caller}, row ${found}`;
  }
  return null;
}

function without(snapshot: ReturnType<typeof compileSnapshot>, role: string): typeof snapshot {
  return { ...snapshot, roles: new Map([...snapshot.roles].filter(([name]) => name !== role)) };
}
