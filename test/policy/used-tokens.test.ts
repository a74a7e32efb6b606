import t from 'tap';
import { UsedTokens } from '../../policy/tokens/used-tokens.js';

t.test('a token is used once; one of before the start counts as used', async (t) => {
  let now = 1_000_000;
  const used = new UsedTokens(() => now);
  t.ok(used.first('a', 1_000, 1_300_000));
  t.notOk(used.first('a', 1_000, 1_300_000));
  t.ok(used.first('b', 1_001, 1_300_000));
  t.notOk(used.first('old', 998, 1_300_000));
  t.ok(used.first('this second', 999.5, 1_300_000));
  now = 2_000_000;
  t.notOk(used.first('a', 1_000, 1_300_000), 'also when it has ended');
});

t.test('where no more can be remembered each counts as used, until some have ended', async (t) => {
  let now = 1_000_000;
  const used = new UsedTokens(() => now);
  for (let i = 0; i < 100_000; i++) used.first(`t${i}`, 1_000, 1_300_000);
  t.notOk(used.first('one more', 1_000, 1_300_000));
  now = 1_400_000;
  t.ok(used.first('one more', 1_399, 1_700_000));
});
