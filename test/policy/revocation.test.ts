import { randomUUID } from 'node:crypto';
import t from 'tap';
import { type Identity, type RevocationKey, RevokedTokens } from '../../policy/index.js';

/** When something was revoked, seconds since the epoch. */
const AT = 1_700_000_000;

/** A token of `user:ann` that an agent shows for her, issued a minute before. */
const TOKEN: Identity = {
  tenant: 'shop',
  subject: 'agent:scout',
  chain: ['user:ann', 'agent:scout'],
  roles: [],
  aclRoles: [],
  issuedAt: AT - 60,
  expiresAt: AT + 240,
  tokenId: 'one',
};

function revoked(...all: readonly RevocationKey[]): RevokedTokens {
  const tokens = new RevokedTokens();
  tokens.add(all.map((what) => ({ ...what, id: randomUUID(), at: AT * 1_000, until: (AT + 360) * 1_000 })));
  return tokens;
}

const SOURCE = { chain: ['user:ann'], tokenId: 'source', issuedAt: AT - 3_000 };

t.test('what is revoked', async (t) => {
  const cases: readonly (readonly [string, RevocationKey, Partial<Identity>, boolean])[] = [
    ['by its id', { kind: 'token', name: 'one' }, {}, true],
    ['not by another id', { kind: 'token', name: 'two' }, {}, false],
    ['an id is no subject', { kind: 'subject', name: 'one' }, {}, false],
    ['by who shows it', { kind: 'subject', name: 'agent:scout' }, {}, true],
    ['by whom it is shown for', { kind: 'subject', name: 'user:ann' }, {}, true],
    ['not by somebody else', { kind: 'subject', name: 'user:bob' }, {}, false],
    ['issued just then', { kind: 'subject', name: 'user:ann' }, { issuedAt: AT }, true],
    [
      'issued after, as far as clocks can say',
      { kind: 'subject', name: 'user:ann' },
      { issuedAt: AT + 30 },
      true,
    ],
    [
      'issued after, whatever the clocks',
      { kind: 'subject', name: 'user:ann' },
      { issuedAt: AT + 31 },
      false,
    ],
    [
      'by an issuer of other clocks',
      { kind: 'subject', name: 'user:ann' },
      { issuedAt: AT + 31, skewSeconds: 60 },
      true,
    ],
    ['made from one', { kind: 'token', name: 'source' }, { sources: [SOURCE] }, true],
    [
      'made anew from an older one of a subject',
      { kind: 'subject', name: 'user:ann' },
      { issuedAt: AT + 100, sources: [SOURCE] },
      true,
    ],
  ];
  for (const [name, what, more, expected] of cases)
    t.equal(revoked(what).has({ ...TOKEN, ...more }), expected, name);
});

t.test(
  'of two revocations of a subject the later counts, in whichever order they are heard of',
  async (t) => {
    for (const order of [
      [AT, AT + 100],
      [AT + 100, AT],
    ]) {
      const tokens = new RevokedTokens();
      for (const at of order)
        tokens.add([
          { kind: 'subject', name: 'user:ann', id: randomUUID(), at: at * 1_000, until: (at + 360) * 1_000 },
        ]);
      t.equal(tokens.has({ ...TOKEN, issuedAt: AT + 100 }), true);
      tokens.prune((AT + 400) * 1_000);
      t.equal(tokens.has({ ...TOKEN, issuedAt: AT + 100 }), true, 'the earlier has ended by itself');
      tokens.prune((AT + 460) * 1_000);
      t.same(tokens.all(), []);
      t.equal(tokens.has(TOKEN), false);
    }
  },
);

t.test('who follows hears of each that is new, and of none twice', async (t) => {
  const tokens = new RevokedTokens();
  let heard = 0;
  const unfollow = tokens.follow(() => {
    heard += 1;
  });
  const one = {
    kind: 'token',
    name: 'one',
    id: randomUUID(),
    at: AT * 1_000,
    until: (AT + 360) * 1_000,
  } as const;
  t.equal(tokens.add([one]).length, 1);
  t.equal(tokens.add([one]).length, 0);
  t.equal(heard, 1);
  unfollow();
  tokens.add([{ ...one, id: randomUUID() }]);
  t.equal(heard, 1);
});
