import { readFileSync } from 'node:fs';
import { compile, type GovernedPlan, QueryError } from 'osl-compiler';
import t from 'tap';
import { parseCases } from '../../proof/golden/cases.js';
import { CALLERS, CATALOG } from '../../proof/golden/catalog.js';
import { CASES, caseFiles } from '../../proof/golden/files.js';
import { diceFrom } from '../../proof/oracle/dice.js';
import { asAsked, randomQuestion } from '../../proof/oracle/questions.js';
import { accessOf, catalogOf, randomWorld } from '../../proof/oracle/world.js';

/** Passes over a plan give back what they do not change, so whatever enters it must be frozen where it is made. */
function thawed(value: unknown, path: string): string | null {
  if (typeof value !== 'object' || value === null || value instanceof Map || value instanceof Set)
    return null;
  if (!Object.isFrozen(value)) return path;
  for (const [key, inner] of Object.entries(value)) {
    if (SHARED.has(key)) continue;
    const found = thawed(inner, `${path}.${key}`);
    if (found !== null) return found;
  }
  return null;
}

/** What a plan refers to and does not own. */
const SHARED: ReadonlySet<string> = new Set(['relation', 'definition', 'equality', 'facet']);

function thawedIn(plan: GovernedPlan): string | null {
  return thawed({ ...Object.freeze({ query: plan.query }) }.query, 'query') ?? thawed(plan.slots, 'slots');
}

t.test('no plan has a part that could be changed', async (t) => {
  for (const file of caseFiles()) {
    for (const { name, query, caller } of parseCases(readFileSync(new URL(file, CASES), 'utf8'))) {
      const access = CALLERS.get(caller)?.access;
      if (access === undefined) continue;
      try {
        const found = thawedIn(compile(query, CATALOG, access));
        if (found !== null) t.fail(`${file}, ${name}: ${found}`);
      } catch (error) {
        if (!(error instanceof QueryError)) throw error;
      }
    }
  }
  t.pass();
});

t.test('nor of a random question', async (t) => {
  const dice = diceFrom(4_711);
  for (let i = 0; i < 40; i++) {
    const world = randomWorld(dice);
    const [catalog, access] = [catalogOf(world, 'whole'), accessOf(world)];
    for (let j = 0; j < 10; j++) {
      try {
        const found = thawedIn(compile(asAsked(randomQuestion(world, dice)), catalog, access));
        if (found !== null) t.fail(found);
      } catch (error) {
        if (!(error instanceof QueryError)) throw error;
      }
    }
  }
  t.pass();
});
