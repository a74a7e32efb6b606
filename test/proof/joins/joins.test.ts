import t from 'tap';
import { type Forms, startForms } from '../../language/forms/fixture.js';
import type { WireClient } from '../../support/frontends.js';
import { diceFrom } from '../oracle/dice.js';
import { type Question, questionsFrom, type Verdict } from './generate.js';
import { MANIFEST, POLICY, SCRIPT } from './world.js';

/**
 * The join rule, asked over REST and the wire: what a question must come to follows from the parts that it is put
 * together from, and from no line of the compiler.
 */

t.setTimeout(6_000_000);

const RUNS = Number(process.env['OSL_JOIN_RUNS'] ?? 40);
const SEED = Number(process.env['OSL_NIGHTLY_SEED'] ?? 26);
const SQLSTATES = { E0514: '42P10', E0515: '42501' } as const;

async function serviceWith(joins: 'declared' | 'any'): Promise<Forms> {
  const forms = await startForms({
    manifest: `${MANIFEST}features: { joins: ${joins} }\n`,
    policy: POLICY,
    script: SCRIPT,
    schema: 'j',
  });
  t.teardown(() => forms.close());
  return forms;
}

const services = { declared: await serviceWith('declared'), any: await serviceWith('any') };
const questions = questionsFrom(diceFrom(SEED), RUNS);

for (const joins of ['declared', 'any'] as const)
  t.test(`joins: ${joins}, over REST`, async (t) => {
    const wrong: string[] = [];
    // What `any` answers hangs on less.
    const asked = joins === 'any' ? questions.filter((_, i) => i % 2 === 0) : questions;
    for (const question of asked) {
      const { status, code, message } = await services[joins].ask('user:ann', question.sql);
      const expected = question[joins];
      const holds = expected === null ? status === 200 : code === expected;
      if (!holds) wrong.push(`${expected ?? 'rows'}, and came to ${code} ${message}: ${told(question)}`);
    }
    t.same(wrong, [], `${asked.length} questions`);
    const verdicts = new Map<Verdict, number>();
    for (const q of asked) verdicts.set(q[joins], (verdicts.get(q[joins]) ?? 0) + 1);
    t.comment(JSON.stringify(Object.fromEntries(verdicts)));
    t.ok((verdicts.get(null) ?? 0) > asked.length / 12, 'enough of them are answered');
  });

t.test('the same on the wire', async (t) => {
  for (const joins of ['declared', 'any'] as const) {
    const client: WireClient = await services[joins].wire('user:ann');
    for (const question of questions.filter((_, i) => i % 12 === 0)) {
      const { outcome } = await client.extended(question.sql);
      const expected = question[joins];
      const state = outcome.kind === 'refused' ? outcome.sqlstate : null;
      t.equal(state, expected === null ? null : SQLSTATES[expected], `${joins}: ${told(question)}`);
    }
  }
});

t.test('a refusal says where, on what could be joined, and which switch allows it', async (t) => {
  const sql = 'select count(*) from customer a join (select amount from purchase) b on a.score = b.amount';
  const { json } = await services.declared.ask('user:ann', sql);
  t.match(json, {
    status: 400,
    code: 'E0514',
    detail: 'a join condition must be an equality of sealed keys, one of each side',
    hint: 'sealed keys here: a.id; `features.joins: any` in the manifest allows any condition',
    position: { line: 1, column: sql.indexOf('= b.amount') + 1 },
  });
});

function told({ sql, shape, kind, wrapper }: Question): string {
  return `${sql} (${shape}, ${kind}, ${wrapper})`;
}
