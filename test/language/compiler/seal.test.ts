import { compile, emit, GovernedPlan, type GovernedPlanFields, InternalError } from 'osl-compiler';
import t, { type Test } from 'tap';
import { CATALOG } from '../../proof/golden/catalog.js';
import { callerNamed } from '../../proof/golden/outcome.js';

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
