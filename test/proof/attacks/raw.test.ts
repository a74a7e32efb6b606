import t, { type Test } from 'tap';
import {
  type Caller,
  type Frontends,
  type Reply,
  SURFACES,
  type SurfaceName,
} from '../../support/frontends.js';
import { RAW_ATTACKS } from './raw-table.js';
import { brief, echoes, expectedOf, inOrder, mayShow, observable, readings, shown } from './reading.js';
import { AUDITOR, CLERK, leaksIn, RAW_SQL } from './shop.js';
import { ATTACKS, type Expected, type Try } from './table.js';
import { askerOf, openTwins } from './twins.js';

/**
 * The attacks in raw SQL: those of `table.ts` with tables in the place of entities, and those of `raw-table.ts`. Two
 * shops that differ only in what a clerk may not see must be one and the same here too.
 */

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

const twins = await openTwins(t, RAW_SQL);
const { realFronts, twinFronts } = twins;

async function ask(of: Frontends, surface: SurfaceName, caller: Caller, text: string): Promise<Reply> {
  return (await askerOf(twins, of, surface, caller, 'sql')).ask(text);
}

/** The text with tables in the place of entities; the same text where it names none in FROM. */
function asRaw(text: string): string {
  const entity = '(?:osl\\.)?(?:entities\\.)?(?<![\\w.])("?(?:customer|purchase|likes|vault)"?)(?![\\w.(])';
  return text
    .replace(new RegExp(`\\b(from|join)(\\s+(?:only\\s+)?)${entity}`, 'gi'), '$1$2shop.$3')
    .replace(new RegExp(`(,\\s*)${entity}(?=\\s+[a-z]\\b(?!\\.))`, 'gi'), '$1shop.$2');
}

/** Turns an attack on entities into one on the tables in their place. */
function whatBecomes(text: string, expected: Expected): 'the same' | 'refused otherwise' | 'anything hidden' {
  // Raw SQL joins on any column and reads a bridge alone, so that what was no sealed key may be answered, or E0515, or E0511.
  if ('code' in expected && expected.code === 'E0514') return 'anything hidden';
  if (
    /\b(measure|retrieve|traverse)\s*\(|\bonly\b|natural|full join|from likes|\bon\b.*\(\s*select/i.test(text)
  )
    return 'anything hidden';
  const aliased = /\bcustomer (as )?t\(/i.test(text);
  const outside = aliased || /\bvault\b/i.test(text) || ('code' in expected && expected.sqlstate === '42P01');
  if (outside) return 'refused otherwise';
  return 'the same';
}

const translated = ATTACKS.flatMap(({ n, name, tries, benign }) => {
  const raw = [...tries, ...benign].filter(([text]) => asRaw(text) !== text);
  return raw.length === 0 ? [] : [{ n, name, tries: raw }];
});

t.test('the table of attacks is translated for its greater part', async (t) => {
  const all = ATTACKS.flatMap((a) => [...a.tries, ...a.benign]).length;
  const raw = translated.flatMap((a) => a.tries).length;
  const same = translated.flatMap((a) => a.tries).filter(([text, e]) => whatBecomes(text, e) === 'the same');
  t.comment(`${raw} of ${all} texts name tables, ${same.length} must be answered as with entities`);
  t.ok(raw > all / 2 && same.length > raw / 2);
});

for (const surface of SURFACES) {
  t.test(surface, async (t) => {
    for (const { n, name, tries } of translated) {
      await t.test(`${n}. ${name}, over tables`, async (t) => {
        for (const [text, expected, caller = CLERK] of tries) {
          const outcome = whatBecomes(text, expected);
          await attempt(t, surface, [asRaw(text), expected, caller], outcome);
        }
      });
    }
    for (const { n, name, tries, benign } of RAW_ATTACKS) {
      await t.test(`${n}. ${name}`, async (t) => {
        for (const one of [...tries, ...benign]) await attempt(t, surface, one, 'the same');
      });
    }
  });
}

async function attempt(
  t: Test,
  surface: SurfaceName,
  [text, expected, caller = CLERK]: Try,
  outcome: ReturnType<typeof whatBecomes>,
) {
  const asker = await askerOf(twins, realFronts, surface, caller, 'sql');
  const replies: Reply[] = [];
  for (const [i, reading] of readings(text).entries()) {
    realFronts.takeAudit();
    const reply = await asker.ask(reading);
    const decisions = realFronts.takeAudit().filter((e) => e.kind === 'decision');
    replies.push(reply);
    t.equal(decisions.length, 1, brief(reading));
    if (outcome === 'the same')
      t.strictSame(shown(reply, text), expectedOf(expected, text, i), brief(reading));
    if (outcome === 'refused otherwise') t.match(shown(reply, text), { code: /^E0/ }, brief(reading));
    const [allowed] = decisions;
    if (reply.outcome.kind === 'rows') t.match(allowed, { decision: 'allow' });
    else if (reply.outcome.code !== 'E0529') t.match(allowed, { code: reply.outcome.code });
    if (caller === AUDITOR || mayShow(expected)) continue;
    t.strictSame(leaksIn(reply.raw), [], 'no secret in any byte');
    if (surface === 'simple wire') continue;
    const other = await ask(twinFronts, surface, caller, reading);
    t.strictSame(
      unordered(other, reading),
      unordered(reply, reading),
      'a shop with other secrets answers the same',
    );
  }
  const [right, wrong] = replies;
  if (right !== undefined && wrong !== undefined && !echoes(expected))
    t.strictSame(observable(right), observable(wrong), 'a right guess looks like a wrong one');
}

function unordered({ outcome }: Reply, text: string): unknown {
  return outcome.kind === 'refused' ? outcome : { ...outcome, rows: inOrder(text, outcome.rows) };
}

t.test('suggestions are tables that are allowed and visible', async (t) => {
  for (const surface of SURFACES) {
    const hintFor = async (text: string, caller: Caller = CLERK): Promise<string | null> => {
      const { outcome } = await ask(realFronts, surface, caller, text);
      return outcome.kind === 'refused' ? outcome.hint : 'was answered';
    };
    t.equal(await hintFor('select 1 from shop.custommer'), 'perhaps you meant `shop.customer`');
    t.equal(await hintFor('select 1 from shp.customer'), 'perhaps you meant `shop.customer`');
    t.equal(
      await hintFor('select 1 from shop.custommer', { subject: 'user:buyer', aclRoles: ['buyer'] }),
      null,
    );
    t.equal(await hintFor('select 1 from shop.vaul', AUDITOR), null);
    t.equal(await hintFor('select sn from shop.customer c'), 'perhaps you meant `ssn`');
    t.equal(await hintFor('select not from shop.customer c'), null);
  }
});

t.test('the harness finds what it looks for', async (t) => {
  const text = 'select id, ssn, salary from shop.customer order by id';
  for (const surface of SURFACES) {
    const mine = await ask(realFronts, surface, AUDITOR, text);
    t.ok(leaksIn(mine.raw).length > 3, `${surface}: an auditor is shown secrets`);
    t.notSame(observable(await ask(twinFronts, surface, AUDITOR, text)), observable(mine));
  }
});
