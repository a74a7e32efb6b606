import { test } from 'tap';
import { creditsOf, peopleIn, personOf } from '../../../cli/demo/people.js';

const CASES: readonly (readonly [entry: unknown, name: string, email: string | null, url: string | null])[] =
  [
    [
      'Ada Lovelace <ada@example.org> (https://ada.example.org)',
      'Ada Lovelace',
      'ada@example.org',
      'https://ada.example.org',
    ],
    [
      'Ada Lovelace (https://ada.example.org) <ada@example.org>',
      'Ada Lovelace',
      'ada@example.org',
      'https://ada.example.org',
    ],
    ['Ada', 'Ada', null, null],
    ['ada@example.org', 'unnamed', 'ada@example.org', null],
    ['Ada ada@example.org', 'Ada', 'ada@example.org', null],
    ['Ada <>', 'Ada', null, null],
    ['Ada <broken', 'Ada', null, null],
    [
      { name: 'Ada', email: 'ada@example.org', url: 'ada.example.org' },
      'Ada',
      'ada@example.org',
      'https://ada.example.org',
    ],
    [{ name: 'Ada <ada@example.org>' }, 'Ada', 'ada@example.org', null],
    [{ name: 'Ada', email: '<ada@example.org>' }, 'Ada', 'ada@example.org', null],
    [{ name: 'Ada', url: 'mailto:ada@example.org' }, 'Ada', 'ada@example.org', null],
    [{ name: 'Ada', url: 'javascript:alert(1)' }, 'Ada', null, null],
    [{ email: 'ada@example.org' }, 'unnamed', 'ada@example.org', null],
    [{ name: 'A\u0000da' }, 'Ada', null, null],
  ];

test('a person is read from every form that npm knows', async (t) => {
  for (const [entry, name, email, url] of CASES)
    t.strictSame(personOf(entry), { name, email, url }, JSON.stringify(entry));
});

test('what names nobody is nobody', async (t) => {
  for (const entry of [null, 3, '', ' ', {}, [], { url: 'https://example.org' }, '(https://example.org)']) {
    t.equal(personOf(entry), null, JSON.stringify(entry));
  }
});

test('roles come from the three keys, as one or many', async (t) => {
  const named = peopleIn({ author: 'A', maintainers: ['B', { name: 'C' }], contributors: 'D' });
  t.strictSame(
    named.map((n) => `${n.role} ${n.person.name}`),
    ['author A', 'maintainer B', 'maintainer C', 'contributor D'],
  );
});

test('one person is one name and address; ids are running numbers', async (t) => {
  const { people, credits } = creditsOf([
    [
      'node_modules/a',
      peopleIn({
        author: 'Ada <ada@example.org>',
        contributors: ['ada <ADA@example.org> (https://a.example)'],
      }),
    ],
    [
      'node_modules/b',
      peopleIn({ author: 'Ada', maintainers: ['Ada <ada@example.org>', 'Ada <ada@example.org>'] }),
    ],
  ]);
  t.strictSame(people, [
    { id: 'p0001', name: 'Ada', email: 'ada@example.org', url: 'https://a.example' },
    { id: 'p0002', name: 'Ada', email: null, url: null },
  ]);
  t.strictSame(
    credits.map((c) => `${c.person_id} ${c.role} ${c.package_path}`),
    [
      'p0001 author node_modules/a',
      'p0001 contributor node_modules/a',
      'p0002 author node_modules/b',
      'p0001 maintainer node_modules/b',
    ],
  );
});
