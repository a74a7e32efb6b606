import { writeFileSync } from 'node:fs';
import tap, { test } from 'tap';
import type { AuditRecord } from '../../../audit/index.js';
import { proveAtOnce } from '../../proof/lanes/thrice.js';
import { nativeOfRun } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { type Reply, type RestFixture, startRest } from './fixture.js';

/*
 * Questions of REST that are like one before them take the fast lane, as those of the wire do. It stands on sessions that
 * callers share, which the embedded engine has none of.
 */

/** Asked so often at the most, a question goes fast: the machine may be busy. */
const OFTEN = 300;

const postgres = await nativeOfRun();
if (postgres === null) tap.pass('no native Postgres for this run');
else {
  proveAtOnce();
  const rest = await startRest({ postgres });
  tap.teardown(async () => {
    await rest.close();
    await postgres.stop();
  });
  suite(rest);
}

function suite(rest: RestFixture): void {
  const { service } = rest.test;
  const QUESTIONS: Readonly<Record<string, readonly [user: string, often: object, then: object]>> = {
    'by key': [
      'user:ada',
      { osql: 'select name, email from customer where id = 1' },
      { osql: 'select name, email from customer where id = 3' },
    ],
    masked: [
      'user:ann',
      { osql: 'select email, born from customer where id = 1' },
      { osql: 'select email, born from customer where id = 2' },
    ],
    'rows of a region': [
      'user:eu',
      { osql: 'select id from customer where id < 2' },
      { osql: 'select id from customer where id < 100' },
    ],
    'raw SQL': [
      'user:ada',
      { sql: 'select name from shop.customers where id = 1' },
      { sql: 'select name from shop.customers where id = 2' },
    ],
    'a fault of the database': [
      'user:ada',
      { osql: 'select 100 / (id - 1) as x from customer where id = 2' },
      { osql: 'select 100 / (id - 1) as x from customer where id = 1' },
    ],
  };
  for (const [name, [user, often, then]] of Object.entries(QUESTIONS)) {
    for (const accept of ['application/json', 'application/x-ndjson']) {
      test(`${name}, ${accept}`, async (t) => {
        const ask = asker(rest, await rest.test.token(user), accept);
        const first = await ask(often);
        const fast = await untilFast(() => ask(often));
        t.equal(bodyOf(fast), bodyOf(first), 'the same answer');
        t.strictSame(await recordsOf(rest, fast), await recordsOf(rest, first), 'and records');
        const other = await ask(then);
        const slow = await asker(rest, await rest.test.token(user), accept)(then); // a token that is new goes the one way
        t.equal(bodyOf(other), bodyOf(slow), 'another value, the same answer');
        t.strictSame(await recordsOf(rest, other), await recordsOf(rest, slow), 'and records');
      });
    }
  }

  test('what a policy takes away is gone with the next question', async (t) => {
    const ask = asker(rest, await rest.test.token('user:ada'), 'application/json');
    const question = { osql: 'select email from customer where id = 2' };
    t.match((await untilFast(() => ask(question))).text, /bo@/);
    writeFileSync(
      rest.test.policyFile,
      SHOP_POLICY.replace('ceiling: [auditor, analyst]', 'ceiling: [analyst]'),
    );
    await rest.test.open.reload();
    t.notMatch((await ask(question)).text, /bo@/);
    t.notMatch((await untilFast(() => ask(question))).text, /bo@/);
    writeFileSync(rest.test.policyFile, SHOP_POLICY);
    await rest.test.open.reload();
  });

  test('one text means one thing as OSL-SQL and another as SQL', async (t) => {
    const ask = asker(rest, await rest.test.token('user:ada'), 'application/json');
    const text = 'select name from customer where id = 1';
    await untilFast(() => ask({ osql: text }));
    t.equal((await ask({ sql: text })).status, 403, 'there is no such table');
  });

  async function untilFast(ask: () => Promise<Reply>): Promise<Reply> {
    for (let i = 0; i < OFTEN; i++) {
      const before = looked();
      const reply = await ask();
      if (looked() === before) return reply;
    }
    throw new Error('it never went fast');
  }

  /** How often a plan was looked for: the fast lane looks for none. */
  function looked(): number {
    const { hits, shapeHits, misses } = service.plans.stats();
    return hits + shapeHits + misses;
  }
}

type Ask = (body: object) => Promise<Reply>;

/** Asks with one token, as a client does that keeps it. */
function asker(rest: RestFixture, token: string, accept: string): Ask {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}`, accept };
  return (body) => rest.send('/osl/query', { method: 'POST', headers, body });
}

function bodyOf({ status, text, requestId }: Reply): string {
  return `${status} ${text.replaceAll(requestId, 'ID')}`;
}

/** What the log says of a request, but for its id and its times. */
async function recordsOf(rest: RestFixture, { requestId }: Reply): Promise<readonly Partial<AuditRecord>[]> {
  const records = await rest.test.records(requestId);
  return records.map(({ request_id: _id, seq: _seq, ts: _ts, duration_us: _duration, ...common }) => common);
}
