import { test } from 'tap';
import { licenseOf } from '../../../cli/demo/license.js';
import { creditsOf, peopleIn, personOf } from '../../../cli/demo/package.js';

const PEOPLE: readonly (readonly [entry: unknown, name: string, email: string | null, url: string | null])[] =
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
  for (const [entry, name, email, url] of PEOPLE)
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

const LICENSES: readonly (readonly [stated: string | null, license: string, license_class: string])[] = [
  ['MIT', 'MIT', 'permissive'],
  ['mit', 'MIT', 'permissive'],
  ['MIT License', 'MIT', 'permissive'],
  ['ISC', 'ISC', 'permissive'],
  ['0BSD', '0BSD', 'permissive'],
  ['BSD-3-Clause', 'BSD-3-Clause', 'permissive'],
  ['BSD', 'BSD', 'permissive'],
  ['Apache 2.0', 'Apache-2.0', 'permissive'],
  ['Apache-2.0 WITH LLVM-exception', 'Apache-2.0 WITH LLVM-exception', 'permissive'],
  ['(MIT OR Apache-2.0)', 'MIT OR Apache-2.0', 'permissive'],
  ['(WTFPL OR MIT)', 'WTFPL OR MIT', 'permissive'],
  ['MIT or GPL-3.0-only', 'MIT OR GPL-3.0-only', 'permissive'],
  ['MIT AND GPL-3.0-only', 'MIT AND GPL-3.0-only', 'copyleft'],
  ['MIT AND (BSD-2-Clause OR GPL-2.0)', 'MIT AND (BSD-2-Clause OR GPL-2.0)', 'permissive'],
  ['MIT AND Zlib', 'MIT AND Zlib', 'other'],
  ['LGPL-2.1+', 'LGPL-2.1+', 'copyleft'],
  ['MPL-2.0', 'MPL-2.0', 'copyleft'],
  ['CC-BY-SA-4.0', 'CC-BY-SA-4.0', 'copyleft'],
  ['CC-BY-3.0', 'CC-BY-3.0', 'other'],
  ['BlueOak-1.0.0', 'BlueOak-1.0.0', 'other'],
  ['MITNFA', 'MITNFA', 'other'],
  ['UNLICENSED', 'UNLICENSED', 'other'],
  ['LicenseRef-ours', 'LicenseRef-ours', 'unknown'],
  ['SEE LICENSE IN LICENSE.md', 'SEE LICENSE IN LICENSE.md', 'unknown'],
  ['MIT OR', 'MIT OR', 'unknown'],
  ['(MIT', '(MIT', 'unknown'],
  ["MIT'; drop table", "MIT'; drop table", 'unknown'],
  [null, 'UNKNOWN', 'unknown'],
];

test('licences are normalised and classed', async (t) => {
  for (const [stated, license, license_class] of LICENSES) {
    t.strictSame(licenseOf(stated), { license, license_class }, `${stated}`);
  }
  t.equal(licenseOf('('.repeat(100_000)).license_class, 'unknown');
});
