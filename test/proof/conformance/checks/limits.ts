import type { Heard } from '../surfaces.js';
import type { Check } from './check.js';

/** What one subject asks at once, in multiples of a second's limit: so many that it is passed on a slow machine too. */
const TIMES = 4;
/** A burst that takes longer than this may be let through whole, rightly. */
const TRIES = 20;

/** Within a second a subject has `limit` such requests answered, then 429 with the time to wait, and others none of it. */
function limited(limit: number, path: string, body?: unknown): Check {
  return async (t, world) => {
    const server = await world.plain();
    const send = (subject: string) =>
      body === undefined ? server.get(subject, path) : server.post(subject, path, body);
    const asked = TIMES * limit;
    let [answered, refused]: [number, readonly Heard[]] = [0, []];
    // What was asked before this counts as well, until its second is over.
    for (let attempt = 0; attempt < TRIES && (answered < limit || refused.length === 0); attempt++) {
      const began = performance.now();
      const burst = await Promise.all(Array.from({ length: asked }, () => send('user:ann')));
      const seconds = 1 + Math.ceil((performance.now() - began) / 1_000);
      refused = burst.filter(({ status }) => status === 429);
      answered = asked - refused.length;
      t.ok(answered <= limit * seconds, `${answered} in less than ${seconds} s`);
    }
    t.ok(answered >= limit, `${answered} were answered`);
    t.ok(refused.length > 0, `${refused.length} were refused`);
    for (const { headers, code } of refused) {
      t.match(headers['retry-after'], /^[1-9]\d*$/);
      t.equal(code, 'E4290');
    }
    t.equal((await send('user:ada')).status, 200, 'another subject has its own');
  };
}

export const LIMIT_CHECKS = {
  'limits.query': limited(60, '/osl/query', { osql: 'select id from book where id = 1' }),
  'limits.sample': limited(30, '/osl/sample', { kind: 'table', name: 'book', limit: 1 }),
  'limits.schema': async (t, world) => {
    await limited(5, '/osl/schema?governed=true')(t, world);
    const { headers } = await world.get('user:ann', '/osl/schema?governed=true');
    const known = await world.get('user:ann', '/osl/schema?governed=true', {}, String(headers['etag']));
    t.same([known.status, known.text], [304, ''], 'the client keeps it');
  },
  'limits.3': async (t, world) => {
    // The policy of this service sets 100,000.
    const burst = Array.from({ length: TIMES * 60 }, () => world.osql('user:ann', 'select 1 as one'));
    t.ok((await Promise.all(burst)).every(({ status }) => status === 200));
    // The policy of the other one sets nothing.
    const server = await world.plain();
    const path = '/osl/schema?governed=true';
    const others = await Promise.all(Array.from({ length: 20 }, () => server.get('user:eu', path)));
    t.ok(others.some(({ status, code }) => status === 429 && code === 'E4290'));
  },
} satisfies Readonly<Record<string, Check>>;
