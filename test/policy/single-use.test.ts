import t from 'tap';
import { createSingleUse } from '../../policy/single-use.js';
import { identity, NOW } from './tokens.js';

const USED = { code: 'E3001', message: /used before/ };
const token = (tokenId: string, expiresAt = NOW + 290) => identity({ chain: ['alice'], tokenId, expiresAt });

t.test('a token is taken once, until it is over anyway', async (t) => {
  let now = NOW * 1_000;
  const registry = createSingleUse({ now: () => now });
  registry.take(token('a'));
  registry.take(token('b'));
  t.throws(() => registry.take(token('a')), USED);
  t.throws(() => registry.take(identity({ chain: ['mallory'], tokenId: 'a' })), USED, 'whoever brings it');
  registry.take(identity({ chain: ['alice'], tokenId: 'a', tenant: 'globex' }));
  now = (NOW + 290 + 29) * 1_000;
  t.throws(() => registry.take(token('a')), USED, 'within the skew it is still remembered');
  now = (NOW + 290 + 30) * 1_000;
  t.throws(() => registry.take(token('a')), { code: 'E3001', message: /expired/ });
  registry.take(token('a', NOW + 600));
});

t.test('a full registry refuses; it never forgets a token that is still good', async (t) => {
  let now = NOW * 1_000;
  const registry = createSingleUse({ now: () => now, capacity: 2 });
  registry.take(token('a', NOW + 10));
  registry.take(token('b'));
  t.throws(() => registry.take(token('c')), { code: 'E5031' });
  t.throws(() => registry.take(token('b')), USED);
  now = (NOW + 40) * 1_000;
  registry.take(token('c'));
  t.throws(() => registry.take(token('b')), USED);
});
