import t from 'tap';
import { startRest } from '../surfaces/rest/fixture.js';

const rest = await startRest();
t.teardown(() => rest.close());
const token = (): Promise<string> => rest.test.token('user:root', { roles: ['TENANT_ADMIN'] });

async function publish(bearer: string, name: string, base = rest.test.service.model().manifest.version) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${bearer}` };
  const metrics = { [name]: { entity: 'order', expression: 'count(*)' } };
  return rest.send('/osl/objects', {
    method: 'POST',
    headers,
    body: { fragment: { metrics }, base_version: base },
  });
}

t.test('a token is good for one change of what is served', async (t) => {
  const one = await token();
  t.equal((await publish(one, 'first', 'another')).status, 412, 'what changes nothing does not use it up');
  t.equal((await publish(one, 'first')).status, 201);
  t.equal((await publish(one, 'first')).status, 200, 'nor does asking again for what is there');
  const replayed = await publish(one, 'second');
  t.match(replayed.json(), {
    code: 'E3001',
    detail: /^this token was already used for a change/,
    hint: /get a new token for each change$/,
  });
  t.equal(replayed.status, 401);
  t.match(await rest.trail(replayed.requestId), [
    { kind: 'decision', action: 'publish', subject: 'user:root', decision: 'deny', code: 'E3001' },
  ]);
  const asked = { 'content-type': 'application/json', authorization: `Bearer ${one}` };
  const body = { osql: 'select id from osl.entities.order limit 1' };
  t.equal(
    (await rest.send('/osl/query', { method: 'POST', headers: asked, body })).status,
    200,
    'questions go on',
  );
  t.equal((await publish(await token(), 'second')).status, 201);
});

t.test('two changes at once with one token are one', async (t) => {
  const one = await token();
  const both = await Promise.all([publish(one, 'left'), publish(one, 'right')]);
  t.equal(both.filter(({ status }) => status === 201).length, 1);
});
