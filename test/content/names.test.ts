import { test } from 'tap';
import { metadataColumn, storeTable } from '../../src/model/facets/store-names.js';
import { fc } from '../support/fast-check.js';

test('a facet version has a table of its own, whatever the names', async (t) => {
  t.equal(storeTable('readme', 'masked'), 'readme__masked');
  const long = 'x'.repeat(63);
  const pairs = [
    ['a', 'b__c'],
    ['a__b', 'c'],
    ['a_', 'b'],
    ['a', '_b'],
    [long, 'raw'],
    [long, 'masked'],
    [`${long.slice(1)}y`, 'raw'],
  ] as const;
  const names = pairs.map(([facet, version]) => storeTable(facet, version));
  t.equal(new Set(names).size, pairs.length);
  t.ok(names.every((name) => Buffer.byteLength(name) <= 63));
});

test('property: two facet versions never share a table', async (t) => {
  const name = fc.stringMatching(/^[ab]_{0,2}[ab_]{0,6}$/);
  fc.assert(
    fc.property(
      name,
      name,
      name,
      name,
      (a, b, c, d) => (a === c && b === d) || storeTable(a, b) !== storeTable(c, d),
    ),
    { numRuns: 20_000 },
  );
  t.pass();
});

test('a metadata field of a name that the store uses has another column', async (t) => {
  t.equal(metadataColumn('kind'), 'kind');
  t.equal(metadataColumn('text'), '__text');
});
