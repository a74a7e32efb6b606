import { readFileSync } from 'node:fs';
import {
  compile,
  emit,
  GovernedPlan,
  type GovernedPlanFields,
  InternalError,
  QueryError,
} from 'osl-compiler';
import t, { type Test } from 'tap';
import { parseCases } from '../../proof/golden/cases.js';
import { CALLERS, CATALOG } from '../../proof/golden/catalog.js';
import { CASES, caseFiles } from '../../proof/golden/files.js';
import { callerNamed } from '../../proof/golden/outcome.js';
import { diceFrom } from '../../proof/oracle/dice.js';
import { asAsked, randomQuestion } from '../../proof/oracle/questions.js';
import { accessOf, catalogOf, randomWorld } from '../../proof/oracle/world.js';

const plan = compile('select email from customer', CATALOG, callerNamed('masked').access);

function refused(t: Test, name: string, forged: unknown): void {
  t.equal(GovernedPlan.is(forged), false, `${name}: is`);
  t.throws(() => emit(forged as GovernedPlan), InternalError, `${name}: emit`); // the forger has no types
}

t.test('a plan that govern made is one', async (t) => {
  t.equal(GovernedPlan.is(plan), true);
  t.type(emit(plan).sql, 'string');
});

t.test('a plan cannot be forged', async (t) => {
  refused(t, 'a spread', { ...plan });
  refused(t, 'a spread with another query', { ...plan, query: { ...plan.query } });
  refused(t, 'an object of its prototype', Object.create(GovernedPlan.prototype));
  refused(t, 'one with its fields', Object.assign(Object.create(GovernedPlan.prototype), plan));
  refused(t, 'one that inherits from a plan', Object.create(plan));
  refused(t, 'a copy with the prototype set', Object.setPrototypeOf({ ...plan }, GovernedPlan.prototype));
  refused(t, 'a proxy', new Proxy(plan, {}));
  refused(t, 'a clone', cloned());
  refused(t, 'JSON', JSON.parse(JSON.stringify({ query: plan.query })));
  refused(t, 'nothing', null);
  refused(t, 'text', 'select 1');
});

/** `structuredClone` refuses what has functions or drops the class; either way nothing that is a plan comes out. */
function cloned(): unknown {
  try {
    return structuredClone(plan);
  } catch {
    return structuredClone({ objects: plan.objects });
  }
}

t.test('the constructor takes a key that only govern has', async (t) => {
  const fields: GovernedPlanFields = plan;
  t.throws(() => new GovernedPlan(Symbol('mint'), fields), InternalError);
  t.throws(() => new GovernedPlan(Symbol.for('mint'), fields), InternalError);
  class Forged extends GovernedPlan {
    constructor() {
      super(Symbol('mint'), fields);
    }
  }
  t.throws(() => new Forged(), InternalError, 'a subclass');
  t.throws(() => Reflect.construct(GovernedPlan, [Symbol('mint'), fields], Object), InternalError, 'Reflect');
});

t.test('a plan cannot be changed', async (t) => {
  t.ok(Object.isFrozen(plan));
  t.ok(deeplyFrozen(plan.query), 'nor anything in its query');
  t.throws(() => Object.assign(plan, { query: null }), TypeError);
});

function deeplyFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return (
    Object.isFrozen(value) && Object.entries(value).every(([key, v]) => key === 'relation' || deeplyFrozen(v))
  );
}

t.test('the package does not export the mint', async (t) => {
  t.notOk('mint' in (await import('osl-compiler')));
});

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

/** Objects to which a plan refers and that it does not own. */
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
