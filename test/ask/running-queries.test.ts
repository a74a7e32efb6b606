import type { GovernedPlan } from 'osl-compiler';
import { test } from 'tap';
import { compileSnapshot, type Identity, RevokedTokens } from '../../policy/index.js';
import { RunningQueries } from '../../src/ask/data/running-queries.js';
import type { Caller } from '../../src/ask/request/caller.js';
import { CATALOG, policy } from '../policy/fixtures.js';
import { identity } from '../policy/tokens.js';

/* Queries that run while the policy changes. Those whose rights are other ones now are stopped, and no others. */

const ISSUER = { issuer: 'https://issuer.example', subject: 'user:{sub}', ceiling: ['analyst'] };

/** The policy, in which role `restricted` denies these columns. */
function denying(...columns: readonly string[]) {
  return policy({
    subjects: { 'user:ann': { ceiling: ['analyst', 'restricted'] } },
    roles: {
      analyst: { grants: [{ on: 'order', columns: '*' }] },
      restricted: { grants: [], deny: [{ on: 'order', columns }] },
    },
    exchange: [{ name: 'staff', ...ISSUER }],
  });
}

const PLAN = { runtime: [], query: {} } as unknown as GovernedPlan; // not looked at: the manifest stays the same

/** True if a query of `caller` goes on when the second policy replaces the first. */
function goesOn(caller: Identity, before = denying('ssn'), after = denying('ssn', 'email')): boolean {
  const manifest = { catalog: CATALOG };
  const modelOf = (document: typeof before) => ({ manifest, snapshot: compileSnapshot(document, CATALOG) });
  const [model, next] = [modelOf(before), modelOf(after)];
  const running = new RunningQueries(new RevokedTokens());
  const asker = { identity: caller, model, ...model } as unknown as Caller; // as much of one as is looked at
  const { signal, end } = running.begin(asker, PLAN, null, asker.model);
  running.changed(next as unknown as Caller['model']);
  end();
  return !signal.aborted;
}

test('a deny rule that a token does not claim stops the query of an exchanged token, which it applies to', async (t) => {
  const [{ id: rule = '' } = {}] = compileSnapshot(denying('ssn'), CATALOG).exchange.rules;
  const members = [{ rule, roles: ['analyst'], attributes: new Map() }];
  const exchanged = identity({ chain: ['user:ann'], aclRoles: ['analyst'], members });
  t.notOk(goesOn(exchanged));
  t.ok(goesOn(exchanged, denying('ssn'), denying('ssn')), 'nothing has changed');
  t.ok(
    goesOn(identity({ chain: ['user:ann'], aclRoles: ['analyst'] })),
    'an actor token has the roles it claims',
  );
  t.notOk(goesOn(identity({ chain: ['user:ann'], aclRoles: ['analyst', 'restricted'] })));
});
