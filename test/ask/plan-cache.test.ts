import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { compileTemplate, emit, ready, shapeOf } from 'osl-compiler';
import t from 'tap';
import { NOTHING_APPROVED } from '../../policy/index.js';
import { createPlanCache } from '../../src/ask/data/plan-cache.js';
import { Route } from '../../src/ask/routes/route.js';
import { shapeOf as rowShapeOf } from '../../src/surfaces/rest/json-answer.js';
import { CALLERS, CATALOG } from '../proof/golden/catalog.js';

setFlagsFromString('--expose_gc');
const collect = runInNewContext('gc') as () => void; // what the flag adds

const PLANS = 400;

/** Questions of which each number makes a new shape. */
const QUESTIONS: Readonly<Record<string, (number: number) => string>> = {
  'of a row': (n) => `select id as a${n} from osl.entities.customer where id = 1`,
  'of groups': (n) =>
    `select region as a${n}, count(*) as n, max(id) from osl.entities."order" group by region order by 2 desc limit 5`,
  'of a join': (n) =>
    `select c.id as a${n}, c.name, o.id, o.region from osl.entities.customer c
     join osl.entities."order" o on o.customer_id = c.id where c.id > 0 order by o.id limit 3`,
  'of a common table': (n) =>
    `with t as (select customer_id, count(*) as n from osl.entities."order" group by customer_id)
     select c.name as a${n}, t.n, t.n * 2 as b, t.n + 1 as c from osl.entities.customer c
     join t on t.customer_id = c.id where t.n > 1 and c.id between 1 and 9 limit 3`,
};

const used = (): number => {
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

t.test('the weight of kept plans is what V8 holds of them', async (t) => {
  await ready();
  const access = CALLERS.get('regional')?.access;
  if (access === undefined) throw new Error('there is no such caller');
  const caches: unknown[] = []; // none is freed while another is measured
  for (const [name, question] of Object.entries(QUESTIONS)) {
    const cache = createPlanCache(2 ** 30);
    caches.push(cache);
    const fill = (from: number, to: number): void => {
      for (let n = from; n < to; n++) {
        const text = question(n);
        const shaped = shapeOf(text);
        const compiled = compileTemplate(text, shaped, CATALOG, access);
        cache.add('rights', text, shaped, compiled);
        emit(compiled.plan);
        rowShapeOf(compiled.plan);
      }
    };
    fill(0, 200); // what is made once is made here
    const [before, weighed] = [used(), cache.stats().bytes];
    fill(200, 200 + PLANS);
    const held = (used() - before) / PLANS;
    const weight = (cache.stats().bytes - weighed) / PLANS;
    t.ok(
      held < 1.1 * weight && weight < 3 * held,
      `${name}: ${Math.round(held)} held, ${Math.round(weight)} weighed`,
    );
  }
  t.equal(caches.length, Object.keys(QUESTIONS).length, 'of all kinds');
});

t.test(
  'a route is of one chain: rights that are equal may come with other values of attributes',
  async (t) => {
    const model = {};
    const caller = (tenant: string, ...chain: string[]) => ({
      model,
      identity: { tenant, chain },
      access: { signature: 's', attributesKey: '' },
      purpose: null,
      circumstances: { emergency: null, approved: NOTHING_APPROVED },
    });
    const isOf = (other: object): boolean => {
      const route: unknown = Object.create(Route.prototype, {
        permit: { value: { caller: caller('t', 'user:ann') } },
      });
      return Route.prototype.isFor.call(route as Route, other as Parameters<Route['isFor']>[0]); // as far as it looks
    };
    t.equal(isOf(caller('t', 'user:ann')), true);
    t.equal(isOf(caller('t', 'user:bob')), false, 'another person of the same roles');
    t.equal(isOf(caller('t', 'user:ann', 'agent:scout')), false, 'a longer chain');
    t.equal(isOf(caller('u', 'user:ann')), false, 'another tenant');
    t.equal(isOf({ ...caller('t', 'user:ann'), model: {} }), false, 'another model');
  },
);
