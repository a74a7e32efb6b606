import type { PolicyDocument } from '../../../policy/document.js';
import type { PolicySnapshot } from '../../../policy/index.js';
import type { Manifest } from '../../../src/model/manifest/index.js';
import { fieldsOf } from '../../output.js';

/** A part of the policy that row security does not express, so that callers see less, or the same in another way. */
export interface LeftPart {
  /** Such as an entity, `subjects` or `limits`. */
  readonly object: string;
  /** Null if it is about all roles. */
  readonly role: string | null;
  readonly reason: string;
}

/** The parts of a policy that are about more than one table, and that row security does not express. */
export function leftOfPolicy(
  { catalog }: Manifest,
  { document }: PolicySnapshot,
  used: ReadonlySet<string>,
): readonly LeftPart[] {
  const left: LeftPart[] = [];
  const leave = (object: string, reason: string, role: string | null = null): void =>
    void left.push({ object, role, reason });
  for (const [role, { grants, max_cost, limits }] of Object.entries(document.roles)) {
    for (const on of new Set(grants.map((grant) => grant.on)))
      if (catalog.relations.get(on)?.kind === 'facet')
        leave(on, 'passages of text, which the gateway searches', role);
    if (max_cost !== undefined) leave('max_cost', 'a limit of the gateway', role);
    if (limits !== undefined) leave('limits', 'a limit of the gateway', role);
  }
  for (const key of [
    'limits',
    'order',
    'purposes',
    'privacy_units',
    'service_accounts',
    'certificates',
    'exchange',
  ] as const)
    if (Object.keys(document[key] ?? {}).length > 0) leave(key, REASONS[key]);
  if (Object.keys(document.subjects).length > 0)
    leave(
      'subjects',
      'who has which role: GRANT role TO login; a chain of several subjects has no equivalent',
    );
  for (const name of anyAttributes(document))
    if (used.has(name))
      leave('subjects', `attribute \`${name}\` with {any: true}: no setting says so, so they see less`);
  if (catalog.metrics.size > 0) leave('metrics', 'the gateway computes them');
  if (catalog.joins === 'declared') leave('joins', 'SQL may join on any column');
  return left;
}

const REASONS = {
  limits: 'limits of the gateway',
  order: 'an order of results without ORDER BY',
  purposes: 'grants for a purpose are left out',
  privacy_units: 'grants of aggregates are left out',
  service_accounts: 'logins of the gateway: GRANT role TO login',
  certificates: 'logins of the gateway: GRANT role TO login',
  exchange: 'roles by claims of tokens: GRANT role TO login, or SET ROLE',
} as const;

function anyAttributes({ subjects, exchange = [] }: PolicyDocument): ReadonlySet<string> {
  const all = [...Object.values(subjects), ...exchange].flatMap(({ attributes }) =>
    Object.entries(attributes ?? {}),
  );
  return new Set(all.filter(([, value]) => fieldsOf(value)['any'] === true).map(([name]) => name));
}
