import { readFileSync } from 'node:fs';
import t from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { articlesWorld, NOTES } from '../../language/forms/articles.js';
import { type Forms, startForms } from '../../language/forms/fixture.js';
import { differ } from '../../support/differ.js';
import { type Caller, SURFACES, type SurfaceName } from '../../support/frontends.js';
import { REGISTER, type Registered } from './register.js';
import { ATTACKS } from './table.js';

t.setTimeout(600_000);

/** 42: hidden documents that shift a score, a rank, a cluster, a count or a plan. Twins answer alike on every surface. */

const OPTIONS = articlesWorld();
/** Sees notes about articles of odd numbers. */
const READER: Caller = { subject: 'user:eu', aclRoles: [] };
const HIDDEN = NOTES.filter((n) => n.article % 2 === 0).map((n) => n.id);

const from = (query: string, k: number): string =>
  `from RETRIEVE(facet => 'notes', query => '${query}', top_k => ${k})`;
const STATEMENTS = [
  `select text, score, article_id ${from('report on the windmill', 5)}`,
  `select text, rank(text) as rank, cluster(text, k => 3) as cluster, outlier(text, k => 2) as o, dedup(text) as d ${from('orchard', 20)}`,
  `select count(*) as n, sum(score) as total ${from('windmill harbour ledger telescope', 50)}`,
  `select a.id, r.text from osl.entities.article a join ${from('orchard', 10).slice(5)} r on a.id = r.article_id order by 1, 2`,
  'select id, title, evidence from osl.entities.article where id in (1, 2, 3, 4)',
];

async function answers(forms: Forms, surface: SurfaceName): Promise<readonly string[]> {
  const ceiling = forms.test.open.service.model().snapshot?.subjects.get(READER.subject)?.ceiling ?? [];
  const asker = await forms.fronts.asker(surface, { ...READER, aclRoles: [...ceiling] });
  const all: string[] = [];
  for (const statement of STATEMENTS) {
    forms.fronts.takeAudit();
    const { outcome, types } = await asker.ask(statement);
    const audited = forms.fronts
      .takeAudit()
      .map((e) => (e.kind === 'decision' ? [e.decision, e.code, e.objects] : [e.outcome, e.rows]));
    all.push(JSON.stringify([outcome, types, audited]));
  }
  asker.end();
  return all;
}

const original = await startForms(OPTIONS);
const twin = await startForms(OPTIONS);
t.teardown(() => Promise.all([original.close(), twin.close()]));
const { system } = twin.test.engine;

for (const [change, sql] of [
  ['updated', `update press.note set body = 'windmill windmill orchard report' where id = any ($1)`],
  ['removed', 'delete from press.note where id = any ($1)'],
] as const) {
  t.test(`hidden documents are ${change}`, async (t) => {
    await system.query(generatedSql(sql), [HIDDEN]);
    await twin.reindex();
    for (const surface of SURFACES) {
      const [before, after] = [await answers(original, surface), await answers(twin, surface)];
      t.ok(
        before.every((a) => a.includes('"kind":"rows"')),
        `${surface}: all are answered`,
      );
      for (const [i, answer] of after.entries()) t.equal(answer, before[i], `${surface}: ${STATEMENTS[i]}`);
    }
  });
}

t.test('a visible document that changes is noticed', async (t) => {
  const before = await answers(twin, 'REST');
  await system.query(sql`update press.note set body = 'orchard orchard' where article_id = 1`);
  await twin.reindex();
  differ(t, await answers(twin, 'REST'), before);
});

/** The list of attacks has 46; each is made somewhere, on every surface that it has a form on. */
const LISTED = 46;

function sourceOf(file: string): string {
  return readFileSync(new URL(`../../../../test/${file}.test.ts`, import.meta.url), 'utf8');
}

/** Tests of a file by the beginnings of their names, whichever quotes they stand in. */
function hasTest(file: string, name: string): boolean {
  return ["'", '"', '`'].some((quote) => sourceOf(file).includes(`${quote}${name}`));
}

for (let n = 1; n <= LISTED; n++) {
  t.test(`${n}`, async (t) => {
    const entry: Registered | undefined = REGISTER.find((r) => r.n === n);
    const table = ATTACKS.filter((a) => a.n === n).flatMap((a) => a.tries);
    t.ok(table.length > 0 || (entry?.made.length ?? 0) > 0, 'it is made');
    for (const { file, test } of entry?.made ?? []) t.ok(hasTest(file, test), `${file}: ${test}`);
    const tried = new Set([
      ...(table.length > 0 ? SURFACES : []),
      ...(entry?.made ?? []).flatMap((m) => m.on),
    ]);
    const untried = SURFACES.filter((s) => !tried.has(s));
    if (entry?.why == null) t.strictSame(untried, [], 'on every surface');
    else t.not(untried.length, 0, `not on ${untried.join(', ')}: ${entry.why}`);
  });
}

t.test('nothing is registered that is not listed', async (t) => {
  const numbers = REGISTER.map((r) => r.n);
  t.equal(new Set(numbers).size, numbers.length);
  t.ok(numbers.every((n) => n >= 1 && n <= LISTED));
});
