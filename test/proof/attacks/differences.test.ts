import t from 'tap';
import { type Asker, startFrontends } from '../../support/frontends.js';
import { manifestText, policyText } from '../../support/model-text.js';
import { startTestService } from '../../support/service.js';
import { type Attack, Attacker, Dice, isolatedBy, MINIMUM, type Person, persons } from './differences.js';

/** A program that plays difference attacks, with and without `overlap`; at night 10,000 of them. */
t.setTimeout(3_600_000);

const ATTACKS = Number(process.env['OSL_DIFFERENCE_ATTACKS'] ?? 60);
/** Attacks of the same subjects, whose answers are all compared. */
const EACH = 5;
const TEAMS = Math.ceil(ATTACKS / EACH);
const SEED = Number(process.env['OSL_NIGHTLY_SEED'] ?? 152);

const COLUMNS = 'columns: [id, name, region, team, club, age, salary]';
const dice = new Dice(SEED);
const people = persons(240, dice);
const teams = Array.from({ length: TEAMS }, (_, i) => i);

/** The first third of the teams are single subjects, the second are groups of two, the third chains. */
const formOf = (team: number) => (['one', 'group', 'chain'] as const)[team % 3] ?? 'one';

const subjects = Object.fromEntries(
  teams.flatMap((i) => [
    [`user:a${i}`, formOf(i) === 'group' ? `team${i}` : 'alone'],
    [`user:b${i}`, formOf(i) === 'group' ? `team${i}` : 'alone'],
  ]),
);
const grant = (overlap: string): string =>
  `grants: [{ on: person, ${COLUMNS}, min_group_size: ${MINIMUM}${overlap} }]`;
const roles = teams
  .filter((i) => formOf(i) === 'group')
  .map((i) => `  team${i}: { ${grant(`, overlap: { mode: refuse, with: team${i} }`)} }`);

const test = await startTestService({
  manifest: manifestText(
    'demo',
    {
      'shop.person':
        'id int4, name text not null, region text not null, team text not null, club text not null, age int4 not null, salary int4',
    },
    `entities:
  person: { source: db.shop.person, primary_key: [id], columns: [id, name, region, team, club, age, salary] }
`,
  ),
  policy: policyText(
    'demo',
    { ...subjects, 'user:free': 'free' },
    `roles:
  alone: { ${grant(', overlap: { mode: refuse }')} }
  free: { ${grant('')} }
${roles.join('\n')}
masks: {}
limits: { query: 100000, catalog: 100000 }
`,
  ),
  script: `create schema shop;
create table shop.person (id int4 primary key, name text not null, region text not null, team text not null,
  club text not null, age int4 not null, salary int4);
insert into shop.person values ${people.map(rowOf).join(', ')}`,
});
const fronts = await startFrontends(test.open, { fast: true });
t.teardown(async () => {
  await fronts.stop();
  await test.close();
});

function rowOf(p: Person): string {
  return `(${p.id}, '${p.name}', '${p.region}', '${p.team}', '${p.club}', ${p.age}, ${p.salary})`;
}

interface Played {
  readonly sum: number | null;
  readonly figures: readonly (readonly Person[])[];
  readonly answered: number;
}

async function play(attack: Attack, askers: readonly Asker[]): Promise<Played> {
  const answers: ReadonlyMap<string, number>[] = [];
  const figures: (readonly Person[])[] = [];
  let answered = 0;
  for (const question of attack.questions) {
    const asker = askers[question.by];
    if (asker === undefined) throw new Error('nobody asks');
    const { outcome } = await asker.ask(question.sql);
    if (outcome.kind === 'refused' && outcome.code !== 'E0537')
      throw new Error(`${question.sql}: ${outcome.code} ${outcome.message}`);
    const found = outcome.kind === 'rows' ? question.figures(outcome.rows) : new Map<string, number>();
    if (outcome.kind === 'rows') answered += 1;
    for (const label of found.keys()) figures.push(question.rests.get(label) ?? []);
    answers.push(found);
  }
  return { sum: attack.combine(answers), figures, answered };
}

const isRight = (attack: Attack, sum: number | null): boolean =>
  sum !== null && sum === attack.victims.reduce((total, p) => total + p.salary, 0);

async function askersOf(team: number): Promise<readonly Asker[]> {
  const own = (subject: string, aclRoles: readonly string[], chain?: readonly string[]) =>
    fronts.asker('REST', { subject, aclRoles, ...(chain !== undefined && { chain }) });
  const [a, b] = [`user:a${team}`, `user:b${team}`];
  switch (formOf(team)) {
    case 'one':
      return [await own(a, ['alone'])];
    case 'group':
      return [await own(a, [`team${team}`]), await own(b, [`team${team}`])];
    case 'chain':
      return [await own(a, ['alone']), await own(b, ['alone'], [a, b])];
  }
}

t.test(`${ATTACKS} difference attacks`, async (t) => {
  const free = await fronts.asker('REST', { subject: 'user:free', aclRoles: ['free'] });
  const attacker = new Attacker(people, new Dice(SEED + 1));
  const succeeded = new Map<string, number>();
  let [asked, answered] = [0, 0];
  const began = performance.now();
  for (const team of teams) {
    const askers = await askersOf(team);
    const figures: (readonly Person[])[] = [];
    for (let i = 0; i < EACH; i++) {
      const attack = attacker.next(askers.length);
      const played = await play(attack, askers);
      t.notOk(isRight(attack, played.sum), `nothing is isolated: ${attack.kind}`);
      if (isRight(attack, played.sum)) t.comment(attack.questions.map((q) => q.sql).join(';\n'));
      asked += attack.questions.length;
      answered += played.answered;
      figures.push(...played.figures);
      const alone = { ...attack, questions: attack.questions.map((q) => ({ ...q, by: 0 })) };
      if (team < 6 && isRight(attack, (await play(alone, [free])).sum))
        succeeded.set(attack.kind, (succeeded.get(attack.kind) ?? 0) + 1);
    }
    t.equal(isolatedBy(figures), null, `no two answers of team ${team} isolate anybody`);
  }
  t.comment(
    `${answered} of ${asked} questions were answered, in ${Math.round(performance.now() - began)} ms; without overlap succeed ${JSON.stringify([...succeeded])}`,
  );
  t.ok(answered > asked / 5, 'questions are answered as long as they isolate nobody');
  t.ok(succeeded.size >= 4, 'most kinds of attack succeed without it');
  t.ok([...succeeded.values()].reduce((a, b) => a + b, 0) > 10, 'and so do most attacks');
});
