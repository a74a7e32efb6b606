import { test } from 'tap';
import { createPasswordGuesses, type GuessOptions } from '../../policy/index.js';

type Step = readonly ['wrong' | 'right', account: string, address: string, opens?: boolean];

/** Attempts, in order, and for right passwords whether they open a session. Budgets: 2 an address, 5 an account. */
const CASES: Readonly<Record<string, readonly Step[]>> = {
  'right ones always open': [
    ['right', 'a', '10.0.0.1', true],
    ['right', 'a', '10.0.0.1', true],
    ['right', 'a', '10.0.0.2', true],
  ],
  'a few wrong ones cost nothing': [
    ['wrong', 'a', '10.0.0.1'],
    ['right', 'a', '10.0.0.1', true],
  ],
  'after the budget the right one is refused, for this account at this address': [
    ['wrong', 'a', '10.0.0.1'],
    ['wrong', 'a', '10.0.0.1'],
    ['right', 'a', '10.0.0.1', false],
    ['right', 'b', '10.0.0.1', true],
    ['right', 'a', '10.0.0.2', true],
  ],
  'also where it was right before': [
    ['right', 'a', '10.0.0.1', true],
    ['wrong', 'a', '10.0.0.1'],
    ['wrong', 'a', '10.0.0.1'],
    ['right', 'a', '10.0.0.1', false],
  ],
  'a household is one address': [
    ['wrong', 'a', '2001:db8::1'],
    ['wrong', 'a', '2001:db8::2'],
    ['right', 'a', '2001:db8::3', false],
    ['right', 'a', '2001:db8:0:1::3', true],
  ],
  'many addresses together spend the budget of the account, for strangers': [
    ['right', 'a', '10.0.0.9', true],
    ...['1', '2', '3', '4', '5'].map((n) => ['wrong', 'a', `10.0.0.${n}`] as const),
    ['right', 'a', '10.0.0.6', false],
    ['right', 'b', '10.0.0.6', true],
    ['right', 'a', '10.0.0.9', true],
  ],
  'one address cannot spend it alone': [
    ...Array.from({ length: 20 }, () => ['wrong', 'a', '10.0.0.1'] as const),
    ['right', 'a', '10.0.0.2', true],
  ],
  'names cannot be confused with addresses': [
    ['wrong', 'a","10.0.0.1', '10.0.0.2'],
    ['wrong', 'a","10.0.0.1', '10.0.0.2'],
    ['right', 'a', '10.0.0.1', true],
  ],
};

test('guesses are counted by account and address', async (t) => {
  const options: GuessOptions = { perAddress: 2, perAccount: 5 };
  for (const [name, steps] of Object.entries(CASES)) {
    const guesses = createPasswordGuesses(options);
    for (const [i, [what, account, address, opens]] of steps.entries()) {
      if (what === 'wrong') guesses.countWrong(account, address);
      else t.equal(guesses.acceptsRight(account, address), opens, `${name}: step ${i + 1}`);
    }
  }
});

test('guesses that come at once are counted before any answer', async (t) => {
  const guesses = createPasswordGuesses({ perAddress: 2 });
  for (let i = 0; i < 50; i++) guesses.countWrong('a', '10.0.0.1');
  t.equal(guesses.acceptsRight('a', '10.0.0.1'), false);
});

test('a flood of addresses shares one count, which those that logged in before do not', async (t) => {
  const guesses = createPasswordGuesses({ perAddress: 2, perAccount: 1_000_000, maxCounted: 3 });
  t.equal(guesses.acceptsRight('a', '10.1.0.1'), true);
  for (let i = 0; i < 1_000; i++) guesses.countWrong('a', `10.0.${i >> 8}.${i & 255}`);
  t.equal(guesses.acceptsRight('a', '10.2.0.1'), false, 'a stranger waits');
  t.equal(guesses.acceptsRight('a', '10.1.0.1'), true, 'who is known does not');
});
