import { mentionedNames, ready } from 'osl-compiler';
import t from 'tap';
import { CATALOG } from '../../proof/golden/catalog.js';

await ready();

/** A refusal is recorded with these names, so nothing that is refused may fail here. */
t.test('a text of any depth has names, or none', async (t) => {
  const customer = CATALOG.relations.get('customer');
  if (customer === undefined) throw new Error('the shop has customers');
  const catalog = { ...CATALOG, rawTables: new Map([['shop.customers', customer]]) };
  let named = 0;
  for (let depth = 250; depth <= 16_000; depth += 250) {
    const text = `select ${'1+'.repeat(depth)}1 from shop.nothing`;
    for (const world of ['either', 'physical'] as const) {
      const { declared, undeclared } = mentionedNames(text, world, catalog);
      t.same(declared, []);
      named += undeclared.length;
    }
  }
  t.ok(named > 0, `${named} names`);
});
